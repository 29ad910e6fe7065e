/* run.h: what the files of jaxc-run share, one section for each file.
 *
 *   main.c       the order of work
 *   options.c    the command line
 *   types.c      element types and shapes: f32[8,4]
 *   values.c     numbers in text and in memory
 *   npy.c        .npy files
 *   array.c      --arg
 *   elf.c        names that a loaded library exports
 *   library.c    the library, its tables, and what a name in it stands for
 *   attributes.c --attr
 *   function.c   a call against the description of a function that jaxc built
 *   fields.c     a call against the table of a hand-written handler
 *   describe.c   --list
 *   call.c       a call of the host from all of that
 *   bench.c      --bench
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_RUN_RUN_H
#define JAXC_RUN_RUN_H

#include <jaxc/call.h>
#include <jaxc/handler.h>
#include <jaxc/host.h>
#include <jaxc/library.h>
#include <stdio.h>
#include <string.h>

/* What the program ends with. */
enum {
  JAXCI_EXIT_DONE = 0,
  JAXCI_EXIT_ERROR = 1, /* of the handler */
  JAXCI_EXIT_USAGE = 2, /* an option, a file, a call that does not fit the handler */
  JAXCI_EXIT_DAMAGE = 3 /* written where nothing may be, or not given back */
};

/* ---- types.c ---- */

#define JAXCI_MAX_RANK 64 /* NumPy's */

typedef struct {
  int32_t dtype;
  int32_t rank;
  int64_t dims[JAXCI_MAX_RANK];
} jaxci_shape;

/* Enough for a shape that is likely; longer ones are cut. */
typedef struct {
  char text[256];
} jaxci_text;

/* Adds to the text; what does not fit is cut. */
void jaxci_text_add(jaxci_text *text, const char *format, ...) JAXC_PRINTF(2, 3);

/* The type of that name, NumPy's or XLA's; JAXC_DTYPE_INVALID when there is none. */
int32_t jaxci_dtype_find(const char *name, size_t length);

/* Whether the text begins as a shape does, and not as a file's name. */
int jaxci_shape_is_meant(const char *text);

/* Reads "f32[8,4]"; `rest` is what follows. INVALID_ARGUMENT. */
JAXC_MUST_USE jaxc_status jaxci_shape_parse(const char *text, jaxci_shape *out,
                                            const char **rest, jaxc_message *message);

/* "float32[8,4]" */
jaxci_text jaxci_shape_text(const jaxci_shape *shape);

/* Number of elements and bytes of one; 0 on overflow. */
int jaxci_shape_count(const jaxci_shape *shape, int64_t *out);

/* ---- values.c ---- */

#define JAXCI_MAX_ELEMENT 16 /* bytes of a complex128 */

/* A half in memory and as a float. */
float jaxci_half_to(uint16_t bits);
uint16_t jaxci_half_from(float value);

/* Reads one element into `out` (JAXCI_MAX_ELEMENT bytes). INVALID_ARGUMENT for text that
 * is no such value and for values that the type cannot hold. */
JAXC_MUST_USE jaxc_status jaxci_value_parse(int32_t dtype, const char *text,
                                            size_t length, void *out,
                                            jaxc_message *message);

/* Whether a value of the type can be read from text. */
int jaxci_value_has_text(int32_t dtype);

/* Reads a whole number between the limits. */
JAXC_MUST_USE jaxc_status jaxci_number_parse(const char *text, int64_t least,
                                             int64_t most, int64_t *out,
                                             jaxc_message *message);

/* Prints the first elements and the last ones. */
void jaxci_values_print(FILE *file, int32_t dtype, int64_t count, const void *data);

/* ---- npy.c ---- */

/* An argument: elements of a file, or one value in all places, or zeros. */
typedef struct {
  const char *text; /* as given, for messages */
  jaxci_shape shape;
  size_t bytes;
  void *data; /* of a file; owned */
  int is_filled;
  unsigned char fill[JAXCI_MAX_ELEMENT];
} jaxci_array;

/* Reads a file. `dtype` names the type of elements that NumPy has no name for, or is
 * JAXC_DTYPE_INVALID. INVALID_ARGUMENT for a file that is damaged or that holds something
 * else, NOT_FOUND for one that cannot be read; RESOURCE_EXHAUSTED. */
JAXC_MUST_USE jaxc_status jaxci_npy_read(const char *path, int32_t dtype,
                                         jaxci_array *out, jaxc_message *message);

/* Writes a file of version 1, or 2 when the header is long. UNAVAILABLE. */
JAXC_MUST_USE jaxc_status jaxci_npy_write(const char *path, const jaxci_shape *shape,
                                          const void *data, jaxc_message *message);

/* INVALID_ARGUMENT for types that a file cannot hold. */
JAXC_MUST_USE jaxc_status jaxci_npy_can_write(int32_t dtype, jaxc_message *message);

/* ---- array.c ---- */

/* What --arg says. As jaxci_npy_read. */
JAXC_MUST_USE jaxc_status jaxci_array_parse(const char *text, jaxci_array *out,
                                            jaxc_message *message);

/* ---- options.c ---- */

typedef struct {
  const char **items; /* in argv */
  int count;
} jaxci_list;

/* Numbers are int64_t so that one table of places reads them all. */
typedef struct {
  const char *library;
  const char *handler;
  jaxci_list args, results, outputs, attrs, aliases;
  const char *instantiate, *prepare, *initialize;
  const char *platform; /* "cpu", "gpu" or NULL */
  const char *threads;  /* a number, "inline", "late", "none" or NULL */
  int64_t thread_count;
  int64_t minor;
  int64_t flush_denormals;
  int64_t fail_allocation, fail_request, fail_error;
  int64_t short_frame, unknown_extensions, misalign;
  int64_t exact;
  int64_t timeout; /* seconds, or 0 */
  int64_t repeat;
  int64_t bench;
  double bench_seconds;
  int64_t list, check, no_check, help, version;
} jaxci_options;

/* Reads the command line. INVALID_ARGUMENT naming option and value; RESOURCE_EXHAUSTED.
 * To be followed by jaxci_options_free in any case. */
JAXC_MUST_USE jaxc_status jaxci_options_parse(int argc, const char *const *argv,
                                              jaxci_options *out, jaxc_message *message);
void jaxci_options_free(jaxci_options *options);

extern const char jaxci_options_help[];

/* ---- elf.c ---- */

#include "elf.h"

/* ---- library.c ---- */

#define JAXCI_HANDLER_PREFIX "jaxc_handler_"

typedef struct {
  const char *path;
  void *handle;
  const jaxc_library *table; /* of a library that jaxc built, or NULL */
} jaxci_library;

/* What a name stands for; at most one of function and handler. */
typedef struct {
  const char *name;
  const jaxc_function *function;
  const jaxc_handler *handler;
  jaxc_abi_bundle bundle;
  const char *platform; /* by its own word: "cpu", "cuda"; NULL when it says none */
} jaxci_target;

static inline int jaxci_target_is_gpu(const jaxci_target *target) {
  return target->platform != NULL && strcmp(target->platform, "cpu") != 0;
}

/* Loads the library and checks its table. NOT_FOUND with the loader's words. */
JAXC_MUST_USE jaxc_status jaxci_library_open(const char *path, jaxci_library *out,
                                             jaxc_message *message);
void jaxci_library_close(jaxci_library *library);

/* The table of a hand-written handler, NULL when there is none; it may have no execute
 * stage. INVALID_ARGUMENT when it is of another version or damaged. */
JAXC_MUST_USE jaxc_status jaxci_library_handler(const jaxci_library *library,
                                                const char *name,
                                                const jaxc_handler **out,
                                                jaxc_message *message);

/* Finds a name. NOT_FOUND, naming what there is. */
JAXC_MUST_USE jaxc_status jaxci_library_find(const jaxci_library *library,
                                             const jaxci_options *options,
                                             jaxci_target *out, jaxc_message *message);

/* Names of functions and handlers of the library, for messages. */
jaxci_text jaxci_library_names(const jaxci_library *library);

/* ---- attributes.c ---- */

/* What an attribute must be. */
typedef struct {
  int32_t kind;  /* JAXC_ABI_ATTR_*, or 0: anything */
  int32_t dtype; /* JAXC_ANY: any */
  int64_t count; /* of an enum's values; 0: no limit */
  const char *declaration;
} jaxci_expected;

typedef struct {
  const char *text; /* as given */
  char *path;       /* "options.k"; owned */
  int32_t kind;
  int32_t dtype;
  size_t count;
  void *data;         /* owned */
  const char *string; /* in argv */
} jaxci_attribute;

typedef struct {
  jaxci_attribute *items;
  int count;
} jaxci_attributes;

/* Reads all --attr, with types from the target where it has a description. */
JAXC_MUST_USE jaxc_status jaxci_attributes_parse(const jaxci_options *options,
                                                 const jaxci_target *target,
                                                 jaxci_attributes *out,
                                                 jaxc_message *message);
void jaxci_attributes_free(jaxci_attributes *attributes);

/* The attribute of that path, or NULL. */
const jaxci_attribute *jaxci_attributes_find(const jaxci_attributes *attributes,
                                             const char *path);

/* Whether there is one of that path or below it. */
int jaxci_attributes_has(const jaxci_attributes *attributes, const char *path);

/* Puts them into a dictionary of the host. */
JAXC_MUST_USE jaxc_status jaxci_attributes_add(const jaxci_attributes *attributes,
                                               jaxc_host_attrs *out,
                                               jaxc_message *message);

/* ---- a call ---- */

typedef struct {
  jaxci_array *arguments; /* without tokens */
  int argument_count;
  jaxci_shape *results;
  int result_count;
  int results_are_given;
  jaxci_attributes attributes;
} jaxci_request;

/* ---- function.c ---- */

/* What the function says of attribute `path`. NOT_FOUND, naming what there is. */
JAXC_MUST_USE jaxc_status jaxci_function_expects(const jaxc_function *function,
                                                 const char *path, jaxci_expected *out,
                                                 jaxc_message *message);

/* Checks the call, and fills in the results that were not given. */
JAXC_MUST_USE jaxc_status jaxci_function_check(const jaxc_function *function,
                                               jaxci_request *request,
                                               jaxc_message *message);

/* "float32[..., n]" */
jaxci_text jaxci_parameter_text(const jaxc_parameter *parameter);

static inline int jaxci_parameter_is_argument(const jaxc_parameter *parameter) {
  return parameter->role == JAXC_ROLE_INPUT || parameter->role == JAXC_ROLE_INOUT;
}
static inline int jaxci_parameter_is_result(const jaxc_parameter *parameter) {
  return parameter->role == JAXC_ROLE_OUTPUT || parameter->role == JAXC_ROLE_INOUT;
}

/* ---- fields.c ---- */

JAXC_MUST_USE jaxc_status jaxci_fields_expect(const jaxc_handler *handler,
                                              const char *path, jaxci_expected *out,
                                              jaxc_message *message);
JAXC_MUST_USE jaxc_status jaxci_fields_check(const jaxc_handler *handler,
                                             const jaxci_request *request,
                                             jaxc_message *message);

/* "float32, at least 1 axis" or "int64 array" */
jaxci_text jaxci_field_text(const jaxc_field *field);

/* ---- describe.c ---- */

/* Prints the library, or what `options->handler` names in it. */
JAXC_MUST_USE jaxc_status jaxci_describe(const jaxci_library *library,
                                         const jaxci_options *options,
                                         jaxc_message *message);

/* The name that the target gives argument or result `index`, "" when it gives none. */
const char *jaxci_operand_name(const jaxci_target *target, int is_result, int index);

/* Prints the call that a request is. */
void jaxci_describe_request(const jaxci_target *target, const jaxci_request *request);

/* ---- call.c ---- */

/* The options of a host for these options. */
jaxc_host_options jaxci_call_options(const jaxci_options *options);

/* Refuses to give a GPU's handler what the host calls device memory, unless it was asked
 * for. */
JAXC_MUST_USE jaxc_status jaxci_call_check_platform(const jaxci_options *options,
                                                    const jaxci_target *target,
                                                    jaxc_message *message);

/* With --timeout, a thread that ends the program with status 1 when a handler has not
 * returned in time, or its tasks have not ended. The target's handlers are replaced by
 * some that say when they run. RESOURCE_EXHAUSTED. */
JAXC_MUST_USE jaxc_status jaxci_watch_start(const jaxci_options *options,
                                            jaxci_target *target, jaxc_message *message);

/* Waiting begins for tasks, and ends. */
void jaxci_watch_tasks(void);
void jaxci_watch_nothing(void);

/* Refuses stages of a bare symbol that are no handlers. */
JAXC_MUST_USE jaxc_status jaxci_call_probe(jaxc_host *host, const jaxci_target *target,
                                           jaxc_message *message);

/* Makes the call with its operands and attributes. */
JAXC_MUST_USE jaxc_status jaxci_call_create(jaxc_host *host, const jaxci_target *target,
                                            const jaxci_options *options,
                                            const jaxci_request *request,
                                            jaxc_host_call **out, jaxc_message *message);

/* Writes the arguments again, into the memory that the call has for them. */
void jaxci_call_fill(jaxc_host_call *call, const jaxci_target *target,
                     const jaxci_request *request);

/* 1 when the call begins with the token of an effect, which the user does not see. */
static inline int32_t jaxci_call_tokens(const jaxci_target *target) {
  return target->function != NULL &&
         (target->function->flags & JAXC_FUNCTION_EFFECT) != 0;
}

/* ---- bench.c ---- */

/* Measures and prints. The status of the first call that fails; `has_begun` is set when
 * calls were made, so that it is the handler's. */
JAXC_MUST_USE jaxc_status jaxci_bench(jaxc_host *host, const jaxci_target *target,
                                      const jaxci_options *options,
                                      const jaxci_request *request, int *has_begun,
                                      jaxc_message *message);

#endif /* JAXC_RUN_RUN_H */
