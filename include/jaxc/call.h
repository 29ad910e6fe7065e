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
  void *data; /* may be NULL when the array is empty */
  const int64_t *dims;
  int64_t rank;
  int64_t count; /* of elements: the product of dims; 0 for a token */
  int32_t dtype;
} jaxc_view;

/* In the place of a rank: n axes or more, and any number of axes. */
#define JAXC_AT_LEAST(n) (-1 - (n))
#define JAXC_ANY_RANK JAXC_AT_LEAST(0)

/* out = a * b. Returns 0 when a factor is negative or the product overflows int64. */
JAXC_UNUSED static JAXC_INLINE int jaxc_multiply(int64_t a, int64_t b, int64_t *out) {
  if (a < 0 || b < 0) return 0;
#if defined(__GNUC__) || defined(__clang__)
  return !__builtin_mul_overflow(a, b, out); /* without the division */
#else
  if (b != 0 && a > INT64_MAX / b) return 0;
  *out = a * b;
  return 1;
#endif
}

/* Where the frame wants the handler's metadata, NULL when it is a call. To be asked
 * first: a frame that wants metadata has no context and no arguments. */
JAXC_UNUSED static inline jaxc_abi_metadata *jaxc_call_metadata(
    const jaxc_abi_call_frame *frame) {
  const jaxc_abi_extension *node = frame->extension_start;
  for (; node != NULL; node = node->next) {
    jaxc_abi_metadata *metadata;
    if (node->type != JAXC_ABI_EXTENSION_METADATA) continue;
    if (!JAXC_ABI_HAS(node, jaxc_abi_metadata_extension, metadata)) continue;
    metadata = ((const jaxc_abi_metadata_extension *)(const void *)node)->metadata;
    if (metadata == NULL || !JAXC_ABI_HAS(metadata, jaxc_abi_metadata, traits)) continue;
    return metadata;
  }
  return NULL;
}

/* When the frame asks for the handler's metadata, answers and returns 1; the handler then
 * returns NULL and reads nothing else. */
JAXC_UNUSED static inline int jaxc_call_answer_metadata(jaxc_abi_call_frame *frame,
                                                        uint32_t traits) {
  jaxc_abi_metadata *const metadata = jaxc_call_metadata(frame);
  if (metadata == NULL) return 0;
  metadata->api_version.major_version = JAXC_ABI_MAJOR;
  metadata->api_version.minor_version = JAXC_ABI_MINOR;
  metadata->traits = traits;
  return 1;
}

/* Checks that the frame has all its parts, so that they may be read. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxc_call_check_frame(
    const jaxc_abi_call_frame *frame, jaxc_message *message) {
  const jaxc_abi_operands *const args = &frame->args;
  const jaxc_abi_operands *const results = &frame->results;
  const jaxc_abi_attrs *const attrs = &frame->attrs;
  if (!JAXC_ABI_HAS(frame, jaxc_abi_call_frame, attrs)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the call frame has %zu bytes, expected at least %zu",
                     frame->struct_size, JAXC_ABI_FRAME_SIZE);
  }
  if (!jaxci_list_is_whole(args->struct_size, sizeof *args, args->size, args->types,
                           args->data) ||
      !jaxci_list_is_whole(results->struct_size, sizeof *results, results->size,
                           results->types, results->data) ||
      !jaxci_attrs_are_whole(attrs)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "the frame's operand lists are smaller than API 0.1's");
  }
  return JAXC_OK;
}

/* Checks that the frame is whole, the stage is `stage` and it carries so many arguments,
 * results and attributes. INVALID_ARGUMENT otherwise. */
JAXC_UNUSED static jaxc_status jaxc_call_check(const jaxc_abi_call_frame *frame,
                                               int32_t stage, int64_t arguments,
                                               int64_t results, int64_t attributes,
                                               jaxc_message *message) {
  JAXC_TRY(jaxc_call_check_frame(frame, message));
  if (frame->stage != stage) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "called in stage %d, expected stage %d", (int)frame->stage,
                     (int)stage);
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

/* Whether the sizes of an empty array fit beside its size of 0, so that strides do. */
JAXC_UNUSED JAXC_COLD static int jaxci_call_empty_fits(const int64_t *dims, int64_t rank) {
  int64_t count = 1;
  for (int64_t i = 0; i < rank; i++) {
    if (!jaxc_multiply(count, dims[i] == 0 ? 1 : dims[i], &count)) return 0;
  }
  return count <= INT64_MAX / 16;
}

/* Elements of an array with these sizes; 0 is returned when a size is negative, or when
 * their product is so large that bytes do not fit an int64. */
static JAXC_INLINE int jaxci_call_count(const int64_t *dims, int64_t rank, int64_t *out) {
  int64_t count = 1;
  for (int64_t i = 0; i < rank; i++) {
    if (!jaxc_multiply(count, dims[i], &count)) return 0;
  }
  *out = count;
  if (count == 0) return jaxci_call_empty_fits(dims, rank);
  return count <= INT64_MAX / 16;
}

/* Says why jaxc_call_shape refuses an operand. */
JAXC_UNUSED JAXC_COLD static jaxc_status jaxci_call_refuse(const jaxc_abi_operands *list,
                                                           int64_t index, const char *kind,
                                                           const char *name, int32_t dtype,
                                                           int32_t rank,
                                                           jaxc_message *message) {
  const jaxc_abi_buffer *buffer = (const jaxc_abi_buffer *)list->data[index];
  int64_t count = 1;
  if (list->types[index] != JAXC_ABI_BUFFER || buffer == NULL ||
      !JAXC_ABI_HAS(buffer, jaxc_abi_buffer, dims)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %lld ('%s') is not a buffer",
                     kind, (long long)index, name);
  }
  if (buffer->dtype != dtype && dtype != JAXC_ANY) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has dtype %s, expected %s", kind, (long long)index,
                     name, jaxc_dtype_name(buffer->dtype), jaxc_dtype_name(dtype));
  }
  if (rank >= 0 ? buffer->rank != rank : buffer->rank < JAXC_AT_LEAST(rank)) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has %lld axes, expected %s%d", kind,
                     (long long)index, name, (long long)buffer->rank,
                     rank >= 0 ? "" : "at least ", rank >= 0 ? rank : JAXC_AT_LEAST(rank));
  }
  if (buffer->rank > 0 && buffer->dims == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has %lld axes without sizes", kind, (long long)index,
                     name, (long long)buffer->rank);
  }
  for (int64_t i = 0; i < buffer->rank; i++) {
    const int64_t size = buffer->dims[i];
    if (!jaxc_multiply(count, size == 0 ? 1 : size, &count)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "%s %lld ('%s') has an impossible size %lld on axis %lld", kind,
                       (long long)index, name, (long long)size, (long long)i);
    }
  }
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "%s %lld ('%s') has more bytes than an int64 counts", kind,
                   (long long)index, name);
}

/* Views operand `index` of a list as jaxc_call_operand does, without asking for data:
 * before the execute stage there may be none. */
JAXC_UNUSED static JAXC_INLINE jaxc_status jaxc_call_shape(
    const jaxc_abi_operands *list, int64_t index, const char *kind, const char *name,
    int32_t dtype, int32_t rank, jaxc_view *out, jaxc_message *message) {
  const jaxc_abi_buffer *buffer = (const jaxc_abi_buffer *)list->data[index];
  int64_t count = 0;
  if (list->types[index] != JAXC_ABI_BUFFER || buffer == NULL ||
      !JAXC_ABI_HAS(buffer, jaxc_abi_buffer, dims) ||
      (buffer->dtype != dtype && dtype != JAXC_ANY) ||
      (rank >= 0 ? buffer->rank != rank : buffer->rank < JAXC_AT_LEAST(rank)) ||
      (buffer->rank > 0 && buffer->dims == NULL) ||
      !jaxci_call_count(buffer->dims, buffer->rank, &count)) {
    return jaxci_not_ok(jaxci_call_refuse(list, index, kind, name, dtype, rank, message));
  }
  out->data = buffer->data;
  out->dims = buffer->dims;
  out->rank = buffer->rank;
  out->count = buffer->dtype == JAXC_TOKEN ? 0 : count; /* a token has no data */
  out->dtype = buffer->dtype;
  return JAXC_OK;
}

/* Views operand `index` of a list as an array of `dtype`, or JAXC_ANY, with `rank` axes,
 * or JAXC_AT_LEAST of them, none of whose sizes is negative, whose bytes fit an int64 and
 * whose data is there. `kind` and `name` are for the message. INVALID_ARGUMENT otherwise.
 */
JAXC_UNUSED static inline jaxc_status jaxc_call_operand(const jaxc_abi_operands *list,
                                                        int64_t index, const char *kind,
                                                        const char *name, int32_t dtype,
                                                        int32_t rank, jaxc_view *out,
                                                        jaxc_message *message) {
  JAXC_TRY(jaxc_call_shape(list, index, kind, name, dtype, rank, out, message));
  if (out->data == NULL && out->count != 0) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "%s %lld ('%s') has no data but %lld elements", kind,
                     (long long)index, name, (long long)out->count);
  }
  return JAXC_OK;
}

/* jaxc_call_operand for an argument and for a result of the frame. */
JAXC_UNUSED static inline jaxc_status jaxc_call_argument(const jaxc_abi_call_frame *frame,
                                                         int64_t index, const char *name,
                                                         int32_t dtype, int32_t rank,
                                                         jaxc_view *out,
                                                         jaxc_message *message) {
  return jaxc_call_operand(&frame->args, index, "argument", name, dtype, rank, out,
                           message);
}
JAXC_UNUSED static inline jaxc_status jaxc_call_result(const jaxc_abi_call_frame *frame,
                                                       int64_t index, const char *name,
                                                       int32_t dtype, int32_t rank,
                                                       jaxc_view *out,
                                                       jaxc_message *message) {
  return jaxc_call_operand(&frame->results, index, "result", name, dtype, rank, out,
                           message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_CALL_H */
