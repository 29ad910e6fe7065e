/* context.h: what a handler can ask of the runtime while it runs.
 *
 *   static jaxc_status work(jaxc_context *context, const void *data) {
 *     void *memory;
 *     JAXC_TRY(jaxc_context_host_memory(context, 4096, &memory));   freed on return
 *     if (...) return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "k is %d", k);
 *     return JAXC_OK;
 *   }
 *
 * A context lives in the frame of jaxc_handler_run and ends when the handler's function
 * returns; it belongs to the calling thread. Each function returns JAXC_OK, or the
 * runtime's own status with its text in the context's message. What an older runtime
 * lacks is UNIMPLEMENTED with the API version that has it: one binary runs on all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_CONTEXT_H
#define JAXC_CONTEXT_H

#include <jaxc/error.h>
#include <jaxc/runtime.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Most blocks of memory that one call holds at a time. */
#define JAXC_MAX_BLOCKS 16

/* One call of a handler; read no field. */
typedef struct {
  jaxc_abi_call_frame *frame;
  const char *name; /* of the handler: begins every message */
  jaxc_message message;
  int32_t has_future;
  int32_t block_count;
  struct {
    void *data;     /* as it was allocated */
    size_t size;    /* of device memory; 0 for memory of the host */
  } blocks[JAXC_MAX_BLOCKS];
} jaxc_context;

static inline void jaxci_context_begin(jaxc_context *context,
                                       const jaxc_abi_call_frame *frame,
                                       const char *name) {
  context->name = name;
  context->frame = (jaxc_abi_call_frame *)(uintptr_t)frame; /* written by futures alone */
  context->message.text[0] = '\0'; /* for a status that comes without a text */
  context->block_count = 0;
  context->has_future = 0;
}

/* Makes the error that the handler returns. `code` is any status but JAXC_OK. */
#define jaxc_fail(context, ...) JAXC_FAIL(&(context)->message, __VA_ARGS__)

/* Where functions that take a jaxc_message, such as those of attrs.h, put the text that the
 * handler's error will have. */
JAXC_UNUSED static inline jaxc_message *jaxc_context_message(jaxc_context *context) {
  return &context->message;
}

/* Minor version of the runtime's API; the major is 0. */
JAXC_UNUSED static inline int jaxc_context_minor(const jaxc_context *context) {
  return context->frame->api->api_version.minor_version;
}

/* JAXC_STAGE_INSTANTIATE, ... _EXECUTE. */
JAXC_UNUSED static inline int jaxc_context_stage(const jaxc_context *context) {
  return context->frame->stage;
}

/* True when the table reaches so far and has the function. */
#define JAXCI_CONTEXT_HAS(context, slot)                                   \
  (JAXC_ABI_HAS((context)->frame->api, jaxc_abi_api, slot) &&              \
   (context)->frame->api->slot != NULL)

/* Forwards a lack of `slot` in the runtime, which came with API 0.`minor`. */
#define JAXCI_CONTEXT_NEED(context, slot, minor, what)                     \
  do {                                                                     \
    if (jaxc_context_minor(context) < (minor) ||                           \
        !JAXCI_CONTEXT_HAS(context, slot)) {                               \
      return jaxc_fail(context, JAXC_UNIMPLEMENTED,                        \
                       "%s: needs XLA FFI API 0.%d, the runtime has 0.%d", \
                       what, minor, jaxc_context_minor(context));          \
    }                                                                      \
  } while (0)

/* Destroys an error of the runtime. */
JAXC_UNUSED JAXC_COLD static void jaxci_error_destroy(const jaxc_abi_api *api,
                                                      jaxc_abi_error *error) {
  jaxc_abi_error_destroy_args args = JAXC_ZERO;
  if (error == NULL || !JAXC_ABI_HAS(api, jaxc_abi_api, error_destroy)) return;
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_error_destroy_args, error);
  args.error = error;
  api->error_destroy(&args);
}

/* Turns an error of the runtime into a status and a message, "what: the error's text",
 * and destroys it. The code is known from API 0.4 on, JAXC_UNKNOWN before. */
JAXC_UNUSED JAXC_COLD static jaxc_status jaxci_error_take(const jaxc_abi_api *api,
                                                          jaxc_abi_error *error,
                                                          const char *what,
                                                          jaxc_message *message) {
  jaxc_abi_error_details_args args = JAXC_ZERO;
  jaxc_status status = JAXC_UNKNOWN;
  const char *text = "the runtime gives no reason";
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_error_details_args, message);
  args.error = error;
  if (api->api_version.minor_version >= 4) {
    args.struct_size = JAXC_ABI_SIZE(jaxc_abi_error_details_args, code);
  }
  if (JAXC_ABI_HAS(api, jaxc_abi_api, error_details)) api->error_details(&args);
  if (args.message != NULL) text = args.message;
  if (args.code > JAXC_OK && args.code <= JAXC_UNAUTHENTICATED) {
    status = (jaxc_status)args.code;
  }
  (void)jaxc_message_set(message, status, "%s: %s", what, text);
  jaxci_error_destroy(api, error);
  return status;
}

/* JAXC_OK for no error. */
JAXC_UNUSED static inline jaxc_status jaxci_context_take(jaxc_context *context,
                                                         jaxc_abi_error *error,
                                                         const char *what) {
  if (error == NULL) return JAXC_OK;
  return jaxci_not_ok(
      jaxci_error_take(context->frame->api, error, what, &context->message));
}

/* ---- the device ---- */

/* The stream that work of this call is queued on: a CUstream or hipStream_t. Only on a
 * GPU and not in instantiate or prepare. */
JAXC_UNUSED static jaxc_status jaxc_context_stream(jaxc_context *context, void **out) {
  jaxc_abi_stream_args args = JAXC_ZERO;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, stream, 1, "a stream");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_stream_args, stream);
  args.context = context->frame->context;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->stream(&args), "stream"));
  *out = args.stream;
  return JAXC_OK;
}

/* Number of the device that the call runs on; -1 where the runtime has set none, as in
 * instantiate. */
JAXC_UNUSED static jaxc_status jaxc_context_device_ordinal(jaxc_context *context,
                                                           int32_t *out) {
  jaxc_abi_device_ordinal_args args = JAXC_ZERO;
  *out = -1;
  JAXCI_CONTEXT_NEED(context, device_ordinal, 1, "the device ordinal");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_device_ordinal_args, device_ordinal);
  args.context = context->frame->context;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->device_ordinal(&args),
                              "device ordinal"));
  *out = args.device_ordinal;
  return JAXC_OK;
}

/* Number of the execution that the call belongs to: the same for all calls of one run of
 * a program, on all its devices. */
JAXC_UNUSED static jaxc_status jaxc_context_run_id(jaxc_context *context, int64_t *out) {
  jaxc_abi_run_id_args args = JAXC_ZERO;
  *out = 0;
  JAXCI_CONTEXT_NEED(context, run_id, 1, "the run id");
  /* One field more than the struct has: the C++ header passes that too. */
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_run_id_args, run_id);
  args.context = context->frame->context;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->run_id(&args), "run id"));
  *out = args.run_id;
  return JAXC_OK;
}

/* ---- memory ---- */

static inline jaxc_status jaxci_context_room(jaxc_context *context, size_t size) {
  if (context->block_count < JAXC_MAX_BLOCKS) return JAXC_OK;
  return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED,
                   "%zu bytes asked for while %d blocks are held, the most a call may",
                   size, JAXC_MAX_BLOCKS);
}

/* Memory of the device for work of this call, uninitialised, aligned to 16 bytes; the
 * runtime's allocators follow the stream, so it may be in use by queued work when it is
 * freed, which happens when the handler's function returns. Only on a GPU. */
JAXC_UNUSED static jaxc_status jaxc_context_device_memory(jaxc_context *context,
                                                          size_t size, void **out) {
  jaxc_abi_memory_allocate_args args = JAXC_ZERO;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, memory_allocate, 1, "device memory");
  JAXCI_CONTEXT_NEED(context, memory_free, 1, "device memory");
  JAXC_TRY(jaxci_context_room(context, size));
  if (size == 0) size = 1; /* a size of 0 marks the host's memory */
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_memory_allocate_args, data);
  args.context = context->frame->context;
  args.size = size;
  args.alignment = 16; /* the most that runtimes accept */
  JAXC_TRY(jaxci_context_take(context, context->frame->api->memory_allocate(&args),
                              "device memory"));
  context->blocks[context->block_count].data = args.data;
  context->blocks[context->block_count].size = size;
  context->block_count++;
  *out = args.data;
  return JAXC_OK;
}

/* Memory of the host, uninitialised, aligned to 64 bytes; freed when the handler's
 * function returns. RESOURCE_EXHAUSTED when there is none. */
JAXC_UNUSED static jaxc_status jaxc_context_host_memory(jaxc_context *context, size_t size,
                                                        void **out) {
  const size_t alignment = 64;
  char *data = NULL;
  *out = NULL;
  JAXC_TRY(jaxci_context_room(context, size));
  if (size <= SIZE_MAX - alignment) data = (char *)malloc(size + alignment);
  if (data == NULL) {
    return jaxc_fail(context, JAXC_RESOURCE_EXHAUSTED, "no memory for %zu bytes", size);
  }
  context->blocks[context->block_count].data = data;
  context->blocks[context->block_count].size = 0;
  context->block_count++;
  *out = data + (alignment - (uintptr_t)data % alignment) % alignment;
  return JAXC_OK;
}

/* Frees all blocks; the runtime's refusal to free one is reported, once all are tried. */
JAXC_UNUSED JAXC_NOINLINE static jaxc_status jaxci_context_free(jaxc_context *context) {
  jaxc_status status = JAXC_OK;
  while (context->block_count > 0) {
    jaxc_abi_memory_free_args args = JAXC_ZERO;
    jaxc_status one;
    context->block_count--;
    if (context->blocks[context->block_count].size == 0) {
      free(context->blocks[context->block_count].data);
      continue;
    }
    args.struct_size = JAXC_ABI_SIZE(jaxc_abi_memory_free_args, data);
    args.context = context->frame->context;
    args.size = context->blocks[context->block_count].size;
    args.data = context->blocks[context->block_count].data;
    one = jaxci_context_take(context, context->frame->api->memory_free(&args),
                             "freeing device memory");
    if (one != JAXC_OK) status = one;
  }
  return status;
}

/* ---- threads of the runtime ---- */

/* Size of the runtime's pool of threads for the work of one call, possibly 1. Only on a
 * CPU and not in instantiate. */
JAXC_UNUSED static jaxc_status jaxc_context_thread_count(jaxc_context *context,
                                                         int64_t *out) {
  jaxc_abi_thread_count_args args = JAXC_ZERO;
  int64_t count = 0;
  *out = 0;
  JAXCI_CONTEXT_NEED(context, thread_count, 1, "the thread pool");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_thread_count_args, thread_count);
  args.context = context->frame->context;
  args.thread_count = &count;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->thread_count(&args),
                              "thread pool"));
  *out = count;
  return JAXC_OK;
}

/* Hands task(data) to the runtime's pool, which may run it at once in the calling thread,
 * later in another, or, when the calling thread waits for it in a pool of size 1, never:
 * do not wait for a task that has not started. `data` must outlive the task, which may
 * run after the handler has returned. */
JAXC_UNUSED static jaxc_status jaxc_context_schedule(jaxc_context *context,
                                                     jaxc_abi_task *task, void *data) {
  jaxc_abi_schedule_args args = JAXC_ZERO;
  JAXCI_CONTEXT_NEED(context, schedule, 1, "the thread pool");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_schedule_args, data);
  args.context = context->frame->context;
  args.task = task;
  args.data = data;
  return jaxci_context_take(context, context->frame->api->schedule(&args), "thread pool");
}

/* ---- what the caller of the program passes ---- */

/* The options of this execution, a dictionary as attrs.h reads it, empty when there are
 * none. It belongs to the runtime. API 0.5. */
JAXC_UNUSED static jaxc_status jaxc_context_options(jaxc_context *context,
                                                    const jaxc_abi_attrs **out) {
  jaxc_abi_options_args args = JAXC_ZERO;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, options, 5, "custom options");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_options_args, attrs);
  args.context = context->frame->context;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->options(&args),
                              "custom options"));
  *out = args.attrs;
  return JAXC_OK;
}

/* The extension of that type, as its own header describes it; *out is NULL where the
 * runtime has none. It belongs to the runtime. API 0.4. */
JAXC_UNUSED static jaxc_status jaxc_context_extension(
    jaxc_context *context, int64_t extension_type,
    const jaxc_abi_context_extension **out) {
  jaxc_abi_find_extension_args args = JAXC_ZERO;
  *out = NULL;
  JAXCI_CONTEXT_NEED(context, find_extension, 4, "a context extension");
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_find_extension_args, extension);
  args.context = context->frame->context;
  args.extension_type = extension_type;
  JAXC_TRY(jaxci_context_take(context, context->frame->api->find_extension(&args),
                              "context extension"));
  *out = args.extension;
  return JAXC_OK;
}

/* ---- completion after return ---- */

/* The completion of a call that goes on after its handler returned. */
typedef struct {
  const jaxc_abi_api *api;
  const char *name; /* of the handler */
  jaxc_abi_future *future;
} jaxc_future;

/* Makes the call asynchronous: when the handler's function has returned JAXC_OK, the
 * results count as ready only after jaxc_future_finish. Buffers stay valid until then;
 * views, dims and attributes do not, so copy what the work needs. Once a call. In execute
 * only. When the function fails after this, the error goes into the future. */
JAXC_UNUSED static jaxc_status jaxc_future_begin(jaxc_context *context, jaxc_future *out) {
  jaxc_abi_future_create_args args = JAXC_ZERO;
  JAXCI_CONTEXT_NEED(context, future_create, 1, "a future");
  JAXCI_CONTEXT_NEED(context, future_error, 1, "a future");
  if (context->frame->stage != JAXC_STAGE_EXECUTE || context->has_future) {
    return jaxc_fail(context, JAXC_FAILED_PRECONDITION,
                     "a future is made once a call, in execute, by a handler");
  }
  /* The size of the struct as XLA counts it is the offset of the out field. */
  args.struct_size = offsetof(jaxc_abi_future_create_args, future);
  JAXC_TRY(jaxci_context_take(context, context->frame->api->future_create(&args),
                              "future"));
  context->frame->future = args.future;
  context->has_future = 1;
  out->api = context->frame->api;
  out->name = context->name;
  out->future = args.future;
  return JAXC_OK;
}

/* Completes the future: with success when `code` is JAXC_OK, else with an error of that
 * code and text, which is copied behind the handler's name. Once, from any thread. Where there is no memory for
 * the error, the runtime's own out-of-memory error takes its place. When it was finished,
 * the handler's function returns JAXC_OK. */
JAXC_UNUSED static void jaxc_future_finish(const jaxc_future *future, jaxc_status code,
                                           const char *text) {
  /* What `future` points to may be gone as soon as it is finished. */
  const jaxc_abi_api *const api = future->api;
  jaxc_abi_error *left = NULL;
  if (code == JAXC_OK) {
    jaxc_abi_future_available_args args = JAXC_ZERO;
    args.struct_size = JAXC_ABI_SIZE(jaxc_abi_future_available_args, future);
    args.future = future->future;
    left = api->future_available(&args);
  } else {
    jaxc_abi_future_error_args args = JAXC_ZERO;
    args.struct_size = JAXC_ABI_SIZE(jaxc_abi_future_error_args, error);
    args.future = future->future;
    jaxc_message whole;
    code = JAXC_FAIL(&whole, code, "%s: %s", future->name, text);
    args.error = jaxc_error_create(api, code, whole.text);
    left = api->future_error(&args);
    if (left != NULL) jaxci_error_destroy(api, args.error); /* not taken over */
  }
  jaxci_error_destroy(api, left);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_CONTEXT_H */
