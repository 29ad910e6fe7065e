/* host.h: call any XLA FFI handler without XLA: in tests, debuggers, sanitizers, fuzzers
 * and benchmarks. Link with jaxc_host.
 *
 *   jaxc_host *host;
 *   jaxc_host_call *call;
 *   jaxc_message message;
 *   jaxc_abi_bundle handlers = {.execute = RmsNorm};
 *   const int64_t dims[2] = {8, 4};
 *   const float eps = 1e-5f;
 *   JAXC_TRY(jaxc_host_create(NULL, &host, &message));
 *   JAXC_TRY(jaxc_host_call_create(host, &handlers, &call, &message));
 *   JAXC_TRY(jaxc_host_call_argument(call, JAXC_F32, 2, dims, x, &message));
 *   JAXC_TRY(jaxc_host_call_result(call, JAXC_F32, 2, dims, y, &message));
 *   JAXC_TRY(jaxc_host_attrs_scalar(jaxc_host_call_attrs(call), "eps", JAXC_F32, &eps,
 *                                   &message));
 *   JAXC_TRY(jaxc_host_call_run(call, &message));          the handler's error, if any
 *   JAXC_TRY(jaxc_host_call_check(call, &message));        writes where none belong
 *   jaxc_host_call_destroy(call);
 *   jaxc_host_destroy(host);
 *
 * The host builds the frame and the function table itself, in the layout of any API minor
 * from 1 to 5, and behaves as XLA does on a CPU or a GPU: which stages run and with what,
 * what is refused and with which code, which sizes of structs are accepted. It needs
 * nothing but the C library and threads.
 *
 * What XLA leaves undefined shows here: a frame is filled with garbage as soon as its
 * handler has returned, though XLA keeps it while a future is pending or gives it to
 * another call, as it comes. A C++ exception that leaves a handler ends the process,
 * where XLA makes an error of it: C cannot catch it.
 *
 * Objects belong to whom made them. A host and a call may be used from one thread at a
 * time, except that jaxc_host_call_run_on may be called from many. Messages may be NULL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HOST_H
#define JAXC_HOST_H

#include <jaxc/error.h>
#include <jaxc/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jaxc_host jaxc_host;
typedef struct jaxc_host_call jaxc_host_call;
typedef struct jaxc_host_attrs jaxc_host_attrs;

/* ---- a host ---- */

typedef enum {
  JAXC_HOST_CPU = 0, /* stages instantiate and execute; a thread pool */
  JAXC_HOST_GPU = 1  /* all stages; a stream and device memory, which is the host's */
} jaxc_host_profile;

/* In the place of a number of threads. */
enum {
  JAXC_HOST_INLINE = -1, /* a pool of size 1 that runs each task where it is scheduled */
  JAXC_HOST_NO_POOL = -2, /* scheduling is UNIMPLEMENTED, as where XLA has no pool */
  /* A pool of size 1 whose tasks run only when the handler has returned, in the thread
   * that called it. A handler that waits for its tasks hangs, as it does in XLA where
   * all threads of the pool are busy. */
  JAXC_HOST_LATE = -3
};

/* What goes wrong on purpose. All zero: nothing. */
typedef struct {
  /* The k-th allocation of the host and the runtime, counted from 1, fails. */
  int64_t fail_allocation;
  /* So does the k-th error that a handler creates: it becomes the one shared error
   * RESOURCE_EXHAUSTED without text. */
  int64_t fail_error;
  /* Bytes that are left out at the end of what frames and the table say of their size. */
  size_t short_frame;
  size_t short_table;
  /* So many nodes of unknown types before and after the node that asks for metadata, and
   * in the chains of frames, operands, attributes and the table, which are else empty. */
  int32_t unknown_extensions;
  /* Bytes by which arguments in the host's own memory miss their alignment, to 63. */
  size_t misalignment;
  /* The k-th request of handlers that takes memory of the runtime fails, and no other
   * allocation: device memory, an error, a future, a task, a state, the registration of
   * a type; in their answers to the metadata query too. The handler gets the error
   * RESOURCE_EXHAUSTED. The handler's own malloc is not touched. */
  int64_t fail_request;
} jaxc_host_faults;

/* Zero in every field but struct_size is right for most. */
typedef struct {
  size_t struct_size;     /* sizeof(jaxc_host_options) */
  int32_t minor;          /* of the API, 1 to 5; 0 is the newest known */
  int32_t profile;        /* jaxc_host_profile */
  int32_t thread_count;   /* of the pool; 0: tasks run where they are scheduled and the
                             pool says 0; or JAXC_HOST_INLINE, _NO_POOL, _LATE */
  int32_t device_ordinal;
  int64_t run_id;         /* of the first execution; each further one is one more */
  void *stream;           /* what a GPU's handler gets; NULL is a stream of the host's */
  int32_t flush_denormals; /* 1: flush-to-zero and denormals-are-zero while it runs */
  int32_t guard_byte;     /* fills the guards, from 1; 0 takes 0xA5 */
  int32_t poison_byte;    /* fills results in the host's memory; 0 takes 0xCB */
  int32_t timeout_s;      /* for a future; 0 takes 60 */
  jaxc_host_faults faults;
  /* 1: each operand in the host's own memory lies in an allocation that ends where it
   * ends, without guards, so that valgrind and the address sanitizer see a read or a
   * write of one byte beyond, which they do not see between guards. Aligned to 64 bytes,
   * on Windows to 16; `misalignment` bytes before an argument are allocated with it.
   * jaxc_host_call_check then finds no writes beyond operands. */
  int32_t exact_memory;
} jaxc_host_options;

/* Makes a host; `options` may be NULL. INVALID_ARGUMENT for options that mean nothing,
 * RESOURCE_EXHAUSTED without memory or threads. */
JAXC_MUST_USE jaxc_status jaxc_host_create(const jaxc_host_options *options,
                                           jaxc_host **out, jaxc_message *message);

/* Ends the threads of the pool, after the tasks that they were given. All calls must have
 * been destroyed. NULL is allowed. */
void jaxc_host_destroy(jaxc_host *host);

/* The function table; the host's. */
const jaxc_abi_api *jaxc_host_api(const jaxc_host *host);

/* Allocations so far, for stepping jaxc_host_faults.fail_allocation until none fails. */
int64_t jaxc_host_allocation_count(const jaxc_host *host);

/* Requests of handlers so far, as jaxc_host_faults.fail_request counts them, and errors
 * that they made, as fail_error does. */
int64_t jaxc_host_request_count(const jaxc_host *host);
int64_t jaxc_host_error_count(const jaxc_host *host);

/* JAXC_OK when handlers have given back what they took: device memory freed, errors
 * returned or destroyed, futures finished once and handed over. DATA_LOSS else, naming
 * it. A future that is finished again when 64 more have ended is not seen.
 * What a thread makes that a handler has started by itself is not counted: the ABI does
 * not say in which call it is. */
JAXC_MUST_USE jaxc_status jaxc_host_leaks(const jaxc_host *host, jaxc_message *message);

/* Attaches an object of the type to all executions from now on, as the caller of a program
 * may; it stays the caller's. ALREADY_EXISTS for a second one of that type. */
JAXC_MUST_USE jaxc_status jaxc_host_add_user_data(jaxc_host *host, int64_t type_id,
                                                  void *data, jaxc_message *message);

/* Registers a type, as jax.ffi.register_ffi_type does, for handlers that do not do it in
 * answer to the metadata query, and for user data. *type_id is 0 for a new type, whose
 * number is written there, and the number of one that is known. `deleter` may be NULL for
 * a type of which there are no states. INTERNAL when the name has another number. */
JAXC_MUST_USE jaxc_status jaxc_host_add_type(jaxc_host *host, const char *name,
                                             int64_t *type_id,
                                             void (*deleter)(void *object),
                                             jaxc_message *message);

/* The id of a type that was registered under that name; NOT_FOUND. */
JAXC_MUST_USE jaxc_status jaxc_host_type_id(const jaxc_host *host, const char *name,
                                            int64_t *out, jaxc_message *message);

/* Adds an extension of the context, which must outlive the host. */
JAXC_MUST_USE jaxc_status jaxc_host_add_extension(
    jaxc_host *host, const jaxc_abi_context_extension *extension, jaxc_message *message);

/* The custom options of all executions: a dictionary to fill; the host's. */
jaxc_host_attrs *jaxc_host_custom_options(jaxc_host *host);

/* ---- what a handler says of itself ---- */

typedef struct {
  int32_t major_version;
  int32_t minor_version;
  uint32_t traits;
  int64_t state_type_id;
} jaxc_host_metadata;

/* Asks a handler for its metadata, as a runtime does at registration, and refuses what a
 * runtime of the host's minor refuses: FAILED_PRECONDITION for a handler that does not
 * answer, INVALID_ARGUMENT for one of another version, naming both; *out is then what it
 * answered all the same, and zero where it did not answer. */
JAXC_MUST_USE jaxc_status jaxc_host_probe(jaxc_host *host, jaxc_abi_handler *handler,
                                          jaxc_host_metadata *out, jaxc_message *message);

/* The same in a child process, so that a function that is no handler does no harm here
 * when it is called with a frame. FAILED_PRECONDITION also when the child crashes or
 * takes longer than ten seconds. UNIMPLEMENTED where processes cannot be forked. Types
 * that the handler registers are registered in the child alone. */
JAXC_MUST_USE jaxc_status jaxc_host_probe_apart(jaxc_host *host, jaxc_abi_handler *handler,
                                                jaxc_host_metadata *out,
                                                jaxc_message *message);

/* ---- a call ---- */

/* Begins a call site of handlers, of which only execute must be there. The handlers are
 * probed first, as XLA registers them; refusals as jaxc_host_probe. */
JAXC_MUST_USE jaxc_status jaxc_host_call_create(jaxc_host *host,
                                                const jaxc_abi_bundle *handlers,
                                                jaxc_host_call **out,
                                                jaxc_message *message);

/* Destroys the call and the states that belong to it. NULL is allowed. */
void jaxc_host_call_destroy(jaxc_host_call *call);

/* Adds an argument or a result: row-major, `rank` sizes in dims, which are copied. `data`
 * is borrowed until the call is destroyed; with NULL the host makes the memory, zeroed for
 * an argument and poisoned for a result, 64-byte aligned and with guards around it, or
 * without them by options.exact_memory.
 * INVALID_ARGUMENT for sizes that are impossible and for an unknown dtype. */
JAXC_MUST_USE jaxc_status jaxc_host_call_argument(jaxc_host_call *call, int32_t dtype,
                                                  int32_t rank, const int64_t *dims,
                                                  void *data, jaxc_message *message);
JAXC_MUST_USE jaxc_status jaxc_host_call_result(jaxc_host_call *call, int32_t dtype,
                                                int32_t rank, const int64_t *dims,
                                                void *data, jaxc_message *message);

/* Lets a result have the memory of an argument of the same size, as XLA does for aliased
 * operands. INVALID_ARGUMENT when there are no such operands, or they have an alias
 * already; FAILED_PRECONDITION after the call was instantiated. */
JAXC_MUST_USE jaxc_status jaxc_host_call_alias(jaxc_host_call *call, int32_t argument,
                                               int32_t result, jaxc_message *message);

/* Memory and bytes of an argument and of a result; NULL for a number that there is not.
 * `bytes` may be NULL. */
void *jaxc_host_call_argument_data(const jaxc_host_call *call, int32_t index,
                                   size_t *bytes);
void *jaxc_host_call_result_data(const jaxc_host_call *call, int32_t index, size_t *bytes);

/* The attributes of the call: an empty dictionary to fill; the call's. */
jaxc_host_attrs *jaxc_host_call_attrs(jaxc_host_call *call);

/* Adds an attribute, of which all is copied. They are sorted as XLA sorts them, at every
 * level. ALREADY_EXISTS for a name that is there; INVALID_ARGUMENT for a dtype that an
 * attribute cannot have. Not after the call was instantiated: FAILED_PRECONDITION. */
JAXC_MUST_USE jaxc_status jaxc_host_attrs_scalar(jaxc_host_attrs *attrs, const char *name,
                                                 int32_t dtype, const void *value,
                                                 jaxc_message *message);
JAXC_MUST_USE jaxc_status jaxc_host_attrs_array(jaxc_host_attrs *attrs, const char *name,
                                                int32_t dtype, size_t size,
                                                const void *data, jaxc_message *message);
JAXC_MUST_USE jaxc_status jaxc_host_attrs_string(jaxc_host_attrs *attrs, const char *name,
                                                 const char *text, size_t length,
                                                 jaxc_message *message);
JAXC_MUST_USE jaxc_status jaxc_host_attrs_dictionary(jaxc_host_attrs *attrs,
                                                     const char *name,
                                                     jaxc_host_attrs **out,
                                                     jaxc_message *message);

/* Runs the instantiate stage, once; jaxc_host_call_run does it too when it was not done.
 * Operands and attributes can no longer be added then. One that failed may be tried
 * again; its state is destroyed. */
JAXC_MUST_USE jaxc_status jaxc_host_call_instantiate(jaxc_host_call *call,
                                                     jaxc_message *message);

/* One execution: the stages of the profile, and the wait for a future. Returns the
 * handler's status with its text; DEADLINE_EXCEEDED for a future that is not finished in
 * time, whose work may go on in the call's own memory and in what was borrowed;
 * FAILED_PRECONDITION for a handler that returns both an error and a future, or a pointer
 * that is neither. The frame is a new one each time, and is overwritten as soon as the
 * handler has returned. */
JAXC_MUST_USE jaxc_status jaxc_host_call_run(jaxc_host_call *call, jaxc_message *message);

/* The same with other memory for each argument and result, in order; an alias is the same
 * pointer twice. From any number of threads at once, after jaxc_host_call_instantiate;
 * they share its state. FAILED_PRECONDITION before it, INVALID_ARGUMENT for an operand
 * that is not empty and has no memory. */
JAXC_MUST_USE jaxc_status jaxc_host_call_run_on(jaxc_host_call *call,
                                                void *const *arguments,
                                                void *const *results,
                                                jaxc_message *message);

/* Looks at the host's own memory: JAXC_OK when no guard was written, no argument but
 * those with an alias, and something into each result. DATA_LOSS else, naming operand and
 * place. What was put into an argument before the last execution counts as right. A
 * result of 8 bytes or more, without an alias, that is all poison after a
 * jaxc_host_call_run that succeeded was not written. */
JAXC_MUST_USE jaxc_status jaxc_host_call_check(const jaxc_host_call *call,
                                               jaxc_message *message);

/* Poisons the results in the host's own memory again. */
void jaxc_host_call_poison(jaxc_host_call *call);

#ifdef __cplusplus
}
#endif

#endif /* JAXC_HOST_H */
