/* abi.h: XLA's foreign-function C ABI, declared by jaxc itself.
 *
 * A binary built on these declarations runs under every jaxlib whose FFI API is 0.1 to
 * 0.5: the structs only ever grew at their ends, and nothing here reads a field before
 * its struct_size says it is there. Layouts are frozen by the assertions at the end and
 * compared with the header of each installed jaxlib by tests/abi.
 *
 * Include it through <jaxc/jaxc.h>; alone only to declare a handler:
 *
 *   jaxc_abi_error *my_handler(jaxc_abi_call_frame *frame);
 *
 * Every pointer in a frame belongs to the runtime and lives until the handler returns.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_ABI_H
#define JAXC_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The API version that a handler announces. A runtime refuses a handler newer than
 * itself, so this is the lowest version with what jaxc uses, not the newest known. */
#define JAXC_ABI_MAJOR 0
#define JAXC_ABI_MINOR 1

/* The newest API version whose layouts are known here. */
#define JAXC_ABI_MINOR_KNOWN 5

/* Opaque objects of the runtime. */
typedef struct jaxc_abi_error jaxc_abi_error;
typedef struct jaxc_abi_context jaxc_abi_context;
typedef struct jaxc_abi_future jaxc_abi_future;

/* Data types of buffers, scalars and arrays; the numbers are XLA's PrimitiveType. */
typedef enum {
  JAXC_DTYPE_INVALID = 0,
  JAXC_PRED = 1,
  JAXC_S8 = 2,
  JAXC_S16 = 3,
  JAXC_S32 = 4,
  JAXC_S64 = 5,
  JAXC_U8 = 6,
  JAXC_U16 = 7,
  JAXC_U32 = 8,
  JAXC_U64 = 9,
  JAXC_F16 = 10,
  JAXC_F32 = 11,
  JAXC_F64 = 12,
  JAXC_C64 = 15,
  JAXC_BF16 = 16,
  JAXC_TOKEN = 17,
  JAXC_C128 = 18,
  JAXC_F8E5M2 = 19,
  JAXC_F8E4M3FN = 20,
  /* Below one byte, and further 8-bit floats: named so that a handler can ask for them. */
  JAXC_S4 = 21,
  JAXC_U4 = 22,
  JAXC_F8E4M3B11FNUZ = 23,
  JAXC_F8E5M2FNUZ = 24,
  JAXC_F8E4M3FNUZ = 25,
  JAXC_S2 = 26,
  JAXC_U2 = 27,
  JAXC_F8E4M3 = 28,
  JAXC_F8E3M4 = 29,
  JAXC_S1 = 30,
  JAXC_U1 = 31,
  JAXC_F4E2M1FN = 32,
  JAXC_F8E8M0FNU = 33
} jaxc_dtype;

/* Beside those numbers, in jaxc's own tables: what an attribute is that has no element
 * type, and in the place of a type that may be any. */
enum {
  JAXC_STRING = -1,
  JAXC_DICTIONARY = -2,
  JAXC_POINTER = -3, /* an address, sent as an int64 */
  JAXC_ENUM = -4,    /* an enum, sent as an int64 */
  JAXC_ANY = -5
};

typedef enum {
  JAXC_STAGE_INSTANTIATE = 0,
  JAXC_STAGE_PREPARE = 1,
  JAXC_STAGE_INITIALIZE = 2,
  JAXC_STAGE_EXECUTE = 3,
  JAXC_STAGE_RECORD = 4
} jaxc_stage;

/* Kind of an argument or result, and kinds of an attribute. */
enum { JAXC_ABI_BUFFER = 1 };
enum {
  JAXC_ABI_ATTR_ARRAY = 1,
  JAXC_ABI_ATTR_DICTIONARY = 2,
  JAXC_ABI_ATTR_SCALAR = 3,
  JAXC_ABI_ATTR_STRING = 4
};

/* What a handler may promise: its calls always launch the same device operations for the
 * same attributes, so they can be captured in a command buffer (a CUDA graph). */
enum { JAXC_TRAIT_COMMAND_BUFFER = 1 };

/* A node of the chain that extends a struct; the only type in use asks for metadata. */
enum { JAXC_ABI_EXTENSION_METADATA = 1 };
typedef struct jaxc_abi_extension {
  size_t struct_size;
  int32_t type;
  struct jaxc_abi_extension *next;
} jaxc_abi_extension;

typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  int major_version;
  int minor_version;
} jaxc_abi_version;

/* What a handler says of itself. state_type_id exists from API 0.2 on; jaxc writes it
 * only when the runtime's table says 0.2, because struct_size is 36 in both layouts. */
typedef struct {
  size_t struct_size;
  jaxc_abi_version api_version;
  uint32_t traits;
  int64_t state_type_id;
} jaxc_abi_metadata;

typedef struct {
  jaxc_abi_extension base;
  jaxc_abi_metadata *metadata;
} jaxc_abi_metadata_extension;

typedef struct {
  const char *ptr; /* not NUL-terminated */
  size_t len;
} jaxc_abi_span;

typedef struct {
  int32_t dtype;
  void *value;
} jaxc_abi_scalar;

typedef struct {
  int32_t dtype;
  size_t size; /* elements, not bytes; an array attribute has lost its shape */
  void *data;
} jaxc_abi_array;

typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  int32_t dtype;
  void *data;
  int64_t rank;
  int64_t *dims; /* rank of them, row-major */
} jaxc_abi_buffer;

/* Arguments and results have the same layout; data[i] is a jaxc_abi_buffer when types[i]
 * is JAXC_ABI_BUFFER. */
typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  int64_t size;
  int32_t *types;
  void **data;
} jaxc_abi_operands;

/* Attributes, sorted bytewise by name; a nested dictionary is one of these again. */
typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  int64_t size;
  int32_t *types;
  jaxc_abi_span **names;
  void **data;
} jaxc_abi_attrs;

typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  const char *message; /* copied by the runtime */
  int32_t code;
} jaxc_abi_error_create_args;

/* Arguments of the other functions of the table; runtime.h has them. */
typedef struct jaxc_abi_error_details_args jaxc_abi_error_details_args;
typedef struct jaxc_abi_error_destroy_args jaxc_abi_error_destroy_args;
typedef struct jaxc_abi_handler_register_args jaxc_abi_handler_register_args;
typedef struct jaxc_abi_stream_args jaxc_abi_stream_args;
typedef struct jaxc_abi_type_register_args jaxc_abi_type_register_args;
typedef struct jaxc_abi_user_data_args jaxc_abi_user_data_args;
typedef struct jaxc_abi_state_args jaxc_abi_state_args;
typedef struct jaxc_abi_memory_allocate_args jaxc_abi_memory_allocate_args;
typedef struct jaxc_abi_memory_free_args jaxc_abi_memory_free_args;
typedef struct jaxc_abi_schedule_args jaxc_abi_schedule_args;
typedef struct jaxc_abi_thread_count_args jaxc_abi_thread_count_args;
typedef struct jaxc_abi_future_create_args jaxc_abi_future_create_args;
typedef struct jaxc_abi_future_available_args jaxc_abi_future_available_args;
typedef struct jaxc_abi_future_error_args jaxc_abi_future_error_args;
typedef struct jaxc_abi_run_id_args jaxc_abi_run_id_args;
typedef struct jaxc_abi_device_ordinal_args jaxc_abi_device_ordinal_args;
typedef struct jaxc_abi_find_extension_args jaxc_abi_find_extension_args;
typedef struct jaxc_abi_options_args jaxc_abi_options_args;

/* The runtime's function table. Test api->struct_size before using a later slot: some
 * runtimes of API 0.1 and 0.2 report less than they have, none more. */
typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_version api_version;
  const void *internal_api;
  jaxc_abi_error *(*error_create)(jaxc_abi_error_create_args *args);
  void (*error_details)(jaxc_abi_error_details_args *args); /* the code from 0.4 on */
  void (*error_destroy)(jaxc_abi_error_destroy_args *args);
  jaxc_abi_error *(*handler_register)(jaxc_abi_handler_register_args *args);
  jaxc_abi_error *(*stream)(jaxc_abi_stream_args *args);
  jaxc_abi_error *(*type_register)(jaxc_abi_type_register_args *args);
  jaxc_abi_error *(*user_data)(jaxc_abi_user_data_args *args);
  jaxc_abi_error *(*state_set)(jaxc_abi_state_args *args);
  jaxc_abi_error *(*state_get)(jaxc_abi_state_args *args);
  jaxc_abi_error *(*memory_allocate)(jaxc_abi_memory_allocate_args *args);
  jaxc_abi_error *(*memory_free)(jaxc_abi_memory_free_args *args);
  jaxc_abi_error *(*schedule)(jaxc_abi_schedule_args *args);
  jaxc_abi_error *(*thread_count)(jaxc_abi_thread_count_args *args);
  jaxc_abi_error *(*future_create)(jaxc_abi_future_create_args *args);
  jaxc_abi_error *(*future_available)(jaxc_abi_future_available_args *args);
  jaxc_abi_error *(*future_error)(jaxc_abi_future_error_args *args);
  jaxc_abi_error *(*run_id)(jaxc_abi_run_id_args *args);
  jaxc_abi_error *(*device_ordinal)(jaxc_abi_device_ordinal_args *args);
  jaxc_abi_error *(*find_extension)(jaxc_abi_find_extension_args *args); /* 0.4 */
  jaxc_abi_error *(*options)(jaxc_abi_options_args *args);               /* 0.5 */
} jaxc_abi_api;

typedef struct {
  size_t struct_size; /* up to and with attrs: XLA counts `future` as beyond it */
  jaxc_abi_extension *extension_start;
  const jaxc_abi_api *api;
  jaxc_abi_context *context; /* NULL while metadata is asked for */
  int32_t stage;
  jaxc_abi_operands args;
  jaxc_abi_operands results;
  jaxc_abi_attrs attrs;
  jaxc_abi_future *future; /* out: completion of a call that goes on after its return */
} jaxc_abi_call_frame;

/* struct_size of a frame as every runtime writes it. */
#define JAXC_ABI_FRAME_SIZE offsetof(jaxc_abi_call_frame, future)

typedef jaxc_abi_error *jaxc_abi_handler(jaxc_abi_call_frame *frame);

/* Initialiser of a struct whose fields are all zero. */
#ifdef __cplusplus
#define JAXC_ZERO {}
#else
#define JAXC_ZERO {0}
#endif

/* True when `field` of the struct behind `pointer` is inside its struct_size. */
#define JAXC_ABI_HAS(pointer, type, field) \
  ((pointer)->struct_size >= offsetof(type, field) + sizeof(((type *)0)->field))

#ifdef __cplusplus
}
#endif

/* The layouts every 64-bit jaxlib uses. */
#ifdef __cplusplus
#define JAXC_ABI_ASSERT(condition, text) static_assert(condition, text)
#else
#define JAXC_ABI_ASSERT(condition, text) _Static_assert(condition, text)
#endif
#if UINTPTR_MAX == UINT64_MAX
JAXC_ABI_ASSERT(sizeof(int) == 4, "XLA's enums are 32-bit");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_api, error_create) == 48, "table slot 1");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_api, options) == 200, "table slot 20");
JAXC_ABI_ASSERT(sizeof(jaxc_abi_version) == 24, "version");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_metadata, traits) == 32, "metadata traits");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_metadata, state_type_id) == 40, "metadata state");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_metadata_extension, metadata) == 24, "extension");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_buffer, dims) == 40, "buffer");
JAXC_ABI_ASSERT(sizeof(jaxc_abi_operands) == 40, "operands");
JAXC_ABI_ASSERT(sizeof(jaxc_abi_attrs) == 48, "attributes");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_call_frame, args) == 40, "frame arguments");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_call_frame, results) == 80, "frame results");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_call_frame, attrs) == 120, "frame attributes");
JAXC_ABI_ASSERT(JAXC_ABI_FRAME_SIZE == 168, "frame size");
JAXC_ABI_ASSERT(offsetof(jaxc_abi_error_create_args, code) == 24, "error arguments");
#endif

#endif /* JAXC_ABI_H */
