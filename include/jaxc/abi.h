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

/* Opaque objects of the runtime. */
typedef struct jaxc_abi_error jaxc_abi_error;
typedef struct jaxc_abi_context jaxc_abi_context;

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
  JAXC_F8E4M3FN = 20
} jaxc_dtype;

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

/* The runtime's function table. Test api->struct_size before using a later slot. */
typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_version api_version;
  const void *internal_api;
  jaxc_abi_error *(*error_create)(jaxc_abi_error_create_args *args);
} jaxc_abi_api;

typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  const jaxc_abi_api *api;
  jaxc_abi_context *context; /* NULL while metadata is asked for */
  int32_t stage;
  jaxc_abi_operands args;
  jaxc_abi_operands results;
  jaxc_abi_attrs attrs;
} jaxc_abi_call_frame;

typedef jaxc_abi_error *jaxc_abi_handler(jaxc_abi_call_frame *frame);

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
JAXC_ABI_ASSERT(offsetof(jaxc_abi_error_create_args, code) == 24, "error arguments");
#endif

#endif /* JAXC_ABI_H */
