/* runtime.h: argument structs of the runtime's functions, beside those of abi.h.
 *
 * A handler calls none of this by itself: context.h and state.h do, and choose the layout
 * by the version of the runtime's table. Include it to write a runtime, as
 * src/host does, or to call a function of the table that has no wrapper.
 *
 *   jaxc_abi_run_id_args args = JAXC_ZERO;
 *   args.struct_size = JAXC_ABI_SIZE(jaxc_abi_run_id_args, run_id);
 *   args.context = frame->context;
 *   error = frame->api->run_id(&args);
 *
 * XLA counts a struct's size to the end of its last field, without the padding behind it,
 * and in a few cases without the last field; the macros below give the size to pass. A
 * runtime refuses a struct that is smaller than it expects and accepts a larger one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_RUNTIME_H
#define JAXC_RUNTIME_H

#include <jaxc/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Size of `type` up to and with `field`. */
#define JAXC_ABI_SIZE(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

struct jaxc_abi_error_details_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_error *error;
  const char *message; /* out: belongs to the error */
  int32_t code;        /* out, from API 0.4 on: jaxc_status */
};

struct jaxc_abi_error_destroy_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_error *error;
};

/* The handlers of all stages. From API 0.4 on one more follows, for recording. */
typedef struct {
  jaxc_abi_handler *instantiate;
  jaxc_abi_handler *prepare;
  jaxc_abi_handler *initialize;
  jaxc_abi_handler *execute;
} jaxc_abi_bundle;

/* Up to API 0.3; later the bundle is longer, so that traits lie 8 bytes further. */
struct jaxc_abi_handler_register_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_span name;
  jaxc_abi_span platform;
  jaxc_abi_bundle bundle;
  uint32_t traits;
};

struct jaxc_abi_stream_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  void *stream; /* out: CUstream or hipStream_t */
};

typedef struct {
  int64_t type_id;
} jaxc_abi_type_id;

typedef struct {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  void (*deleter)(void *object);
} jaxc_abi_type_info;

struct jaxc_abi_type_register_args {
  size_t struct_size; /* without type_info */
  jaxc_abi_extension *extension_start;
  jaxc_abi_span name;
  jaxc_abi_type_id *type_id; /* in and out: 0 asks for a new one */
  const jaxc_abi_type_info *type_info; /* from API 0.2 on */
};

struct jaxc_abi_user_data_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  jaxc_abi_type_id *type_id;
  void *data; /* out */
};

/* Of state_set and state_get. Two layouts, told apart by the API version of the runtime's
 * table alone: the old state_set and the new one are both 48 bytes. */
struct jaxc_abi_state_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  union {
    struct { /* API 0.3 and later */
      int32_t stage;
      jaxc_abi_type_id *type_id;
      void *state; /* in for set, out for get */
    } staged;
    struct { /* API 0.1 and 0.2 */
      jaxc_abi_type_id *type_id;
      void *state;
      void (*deleter)(void *state); /* of set; unread by later runtimes of 0.2 */
    } single;
  } u;
};
#define JAXC_ABI_STATE_SIZE 48
#define JAXC_ABI_STATE_SIZE_GET_SINGLE 40

struct jaxc_abi_memory_allocate_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  size_t size;
  size_t alignment;
  void *data; /* out */
};

struct jaxc_abi_memory_free_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  size_t size;
  void *data;
};

typedef void jaxc_abi_task(void *data);

struct jaxc_abi_schedule_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  jaxc_abi_task *task;
  void *data;
};

struct jaxc_abi_thread_count_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  int64_t *thread_count; /* the runtime writes through it */
};

struct jaxc_abi_future_create_args {
  size_t struct_size; /* without future */
  jaxc_abi_extension *extension_start;
  jaxc_abi_future *future; /* out */
};

struct jaxc_abi_future_available_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_future *future;
};

struct jaxc_abi_future_error_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_future *future;
  jaxc_abi_error *error; /* the runtime's when the call succeeds */
};

struct jaxc_abi_run_id_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  int64_t run_id; /* out */
};

struct jaxc_abi_device_ordinal_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  int32_t device_ordinal; /* out: -1 where there is none */
};

/* An extension of the context; its own header says what follows these fields. */
typedef struct jaxc_abi_context_extension {
  size_t struct_size;
  struct {
    int64_t extension_type;
    int32_t major_version;
    int32_t minor_version;
  } id;
  const struct jaxc_abi_context_extension *next;
} jaxc_abi_context_extension;

struct jaxc_abi_find_extension_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  int64_t extension_type;
  const jaxc_abi_context_extension *extension; /* out: NULL where there is none */
};

struct jaxc_abi_options_args {
  size_t struct_size;
  jaxc_abi_extension *extension_start;
  jaxc_abi_context *context;
  const jaxc_abi_attrs *attrs; /* out: an empty dictionary where there are none */
};

#ifdef __cplusplus
}
#endif

#if UINTPTR_MAX == UINT64_MAX
JAXC_ABI_ASSERT(sizeof(struct jaxc_abi_state_args) == JAXC_ABI_STATE_SIZE, "state");
JAXC_ABI_ASSERT(offsetof(struct jaxc_abi_type_register_args, type_info) == 40, "type");
JAXC_ABI_ASSERT(offsetof(struct jaxc_abi_handler_register_args, traits) == 80, "traits");
JAXC_ABI_ASSERT(sizeof(jaxc_abi_context_extension) == 32, "context extension");
#endif

#endif /* JAXC_RUNTIME_H */
