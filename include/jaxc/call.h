/* call.h: look at a call frame before anything in it is trusted.
 *
 *   jaxc_abi_error *my_handler(jaxc_abi_call_frame *frame) {
 *     jaxc_message message;
 *     jaxc_view x;
 *     if (jaxc_call_answer_metadata(frame, 0)) return NULL;
 *     if (jaxc_call_check(frame, JAXC_STAGE_EXECUTE, 1, 0, 0, &message) != JAXC_OK ||
 *         jaxc_call_argument(frame, 0, "x", JAXC_F32, 1, &x, &message) != JAXC_OK) {
 *       return jaxc_error_create(frame->api, JAXC_INVALID_ARGUMENT, message.text);
 *     }
 *     ...
 *   }
 *
 * All functions only read the frame, except that the answer to a metadata query is
 * written where the runtime asks for it. Each may be called from any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_CALL_H
#define JAXC_CALL_H

#include <jaxc/attrs.h>
#include <jaxc/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One array of the call. Lives as long as the frame. */
typedef struct {
  char *data; /* may be NULL when the array is empty */
  const int64_t *dims;
  int64_t rank;
} jaxc_view;

/* out = a * b. Returns 0 when a factor is negative or the product overflows int64. */
JAXC_UNUSED static inline int jaxc_multiply(int64_t a, int64_t b, int64_t *out) {
  if (a < 0 || b < 0) return 0;
#if defined(__GNUC__) || defined(__clang__)
  return !__builtin_mul_overflow(a, b, out); /* without the division */
#else
  if (b != 0 && a > INT64_MAX / b) return 0;
  *out = a * b;
  return 1;
#endif
}

/* When the frame asks for the handler's metadata, answers and returns 1; the handler then
 * returns NULL and reads nothing else. Must come first: such a frame has no context, no
 * arguments and, in the order of struct fields, nothing after `api`. */
JAXC_UNUSED static inline int jaxc_call_answer_metadata(jaxc_abi_call_frame *frame,
                                                        uint32_t traits) {
  const jaxc_abi_extension *node = frame->extension_start;
  for (; node != NULL; node = node->next) {
    jaxc_abi_metadata *metadata;
    if (node->type != JAXC_ABI_EXTENSION_METADATA) continue;
    if (!JAXC_ABI_HAS(node, jaxc_abi_metadata_extension, metadata)) continue;
    metadata = ((const jaxc_abi_metadata_extension *)(const void *)node)->metadata;
    if (metadata == NULL || !JAXC_ABI_HAS(metadata, jaxc_abi_metadata, traits)) continue;
    metadata->api_version.major_version = JAXC_ABI_MAJOR;
    metadata->api_version.minor_version = JAXC_ABI_MINOR;
    metadata->traits = traits;
    return 1;
  }
  return 0;
}

/* Checks that the frame is whole, the stage is `stage` and it carries so many arguments,
 * results and attributes. INVALID_ARGUMENT otherwise. */
JAXC_UNUSED static jaxc_status jaxc_call_check(const jaxc_abi_call_frame *frame,
                                               int32_t stage, int64_t arguments,
                                               int64_t results, int64_t attributes,
                                               jaxc_message *message) {
  if (!JAXC_ABI_HAS(frame, jaxc_abi_call_frame, attrs)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the call frame has %zu bytes, expected at least %zu",
                     frame->struct_size,
                     offsetof(jaxc_abi_call_frame, attrs) + sizeof frame->attrs);
  }
  if (frame->stage != stage) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "called in stage %d, expected stage %d", (int)frame->stage,
                     (int)stage);
  }
  if (!JAXC_ABI_HAS(&frame->args, jaxc_abi_operands, data) ||
      !JAXC_ABI_HAS(&frame->results, jaxc_abi_operands, data) ||
      !JAXC_ABI_HAS(&frame->attrs, jaxc_abi_attrs, data)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the frame's operand lists are smaller than API 0.1's");
  }
  if (frame->args.size != arguments) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "called with %lld arguments, expected %lld",
                     (long long)frame->args.size, (long long)arguments);
  }
  if (frame->results.size != results) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "called with %lld results, expected %lld",
                     (long long)frame->results.size, (long long)results);
  }
  if (frame->attrs.size != attributes) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "called with %lld attributes, expected %lld",
                     (long long)frame->attrs.size, (long long)attributes);
  }
  return JAXC_OK;
}

/* Views operand `index` of a list as an array of `dtype` with at least `rank` axes, all
 * of whose sizes are not negative and whose bytes fit an int64. `kind` and `name` are for
 * the message. INVALID_ARGUMENT otherwise. */
JAXC_UNUSED static inline jaxc_status jaxc_call_operand(const jaxc_abi_operands *list,
                                                 int64_t index, const char *kind,
                                                 const char *name, int32_t dtype,
                                                 int64_t rank, jaxc_view *out,
                                                 jaxc_message *message) {
  const jaxc_abi_buffer *buffer = (const jaxc_abi_buffer *)list->data[index];
  int64_t elements = 1;
  if (list->types[index] != JAXC_ABI_BUFFER || buffer == NULL ||
      !JAXC_ABI_HAS(buffer, jaxc_abi_buffer, dims)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %lld ('%s') is not a buffer",
                     kind, (long long)index, name);
  }
  if (buffer->dtype != dtype) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has dtype %s, expected %s", kind, (long long)index,
                     name, jaxc_dtype_name(buffer->dtype), jaxc_dtype_name(dtype));
  }
  if (buffer->rank < rank || (buffer->rank > 0 && buffer->dims == NULL)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has %lld axes, expected at least %lld", kind,
                     (long long)index, name, (long long)buffer->rank, (long long)rank);
  }
  for (int64_t i = 0; i < buffer->rank; i++) {
    if (!jaxc_multiply(elements, buffer->dims[i], &elements)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "%s %lld ('%s') has an impossible size %lld on axis %lld", kind,
                       (long long)index, name, (long long)buffer->dims[i], (long long)i);
    }
  }
  if (elements > INT64_MAX / 16) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has more bytes than an int64 counts", kind,
                     (long long)index, name);
  }
  if (buffer->data == NULL && elements != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has no data but %lld elements", kind,
                     (long long)index, name, (long long)elements);
  }
  out->data = (char *)buffer->data;
  out->dims = buffer->dims;
  out->rank = buffer->rank;
  return JAXC_OK;
}

/* jaxc_call_operand for an argument and for a result of the frame. */
JAXC_UNUSED static inline jaxc_status jaxc_call_argument(const jaxc_abi_call_frame *frame,
                                                         int64_t index, const char *name,
                                                         int32_t dtype, int64_t rank,
                                                         jaxc_view *out,
                                                         jaxc_message *message) {
  return jaxc_call_operand(&frame->args, index, "argument", name, dtype, rank, out,
                           message);
}
JAXC_UNUSED static inline jaxc_status jaxc_call_result(const jaxc_abi_call_frame *frame,
                                                       int64_t index, const char *name,
                                                       int32_t dtype, int64_t rank,
                                                       jaxc_view *out,
                                                       jaxc_message *message) {
  return jaxc_call_operand(&frame->results, index, "result", name, dtype, rank, out,
                           message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_CALL_H */
