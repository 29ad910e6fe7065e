/* points.h: the points of a grid: how many a row has, and what is done before the first.
 *
 *   if (batch.index >= 0) JAXC_TRY(jaxci_points_count(&batch, &message));
 *
 * A function with parameters of JAXC_ROLE_INDEX is called for each point of a grid, in each
 * row. Included by rows.h, and of use to nobody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_POINTS_H
#define JAXC_POINTS_H

#include <jaxc/axes.h>
#include <jaxc/parallel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest value of an integer type, as far as int64 reaches. */
static inline int64_t jaxci_points_most(int32_t dtype) {
  const int is_signed = dtype >= JAXC_S8 && dtype <= JAXC_S64;
  const size_t bits = 8 * jaxc_dtype_size(dtype) - (is_signed ? 1 : 0);
  return bits == 0 || bits > 62 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

/* Finds the number of points once the dimensions are known, and sets the range to all of
 * them. A range below 0 has no points, as in a C loop. */
JAXC_UNUSED static jaxc_status jaxci_points_count(jaxci_batch *batch,
                                                  jaxc_message *message) {
  int is_empty = 0;
  batch->points = 1;
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const jaxc_parameter *const parameter = &batch->function->parameters[k];
    int64_t size;
    if (parameter->role != JAXC_ROLE_INDEX) continue;
    if (parameter->rank != 1 ||
        !jaxc_bound_value(&parameter->bounds[0], batch->dims, &size)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "the range of index '%s' (%s < %s) has no value for these dimensions",
                       parameter->name, parameter->name,
                       parameter->rank == 1 ? parameter->bounds[0].text : "?");
    }
    /* The range itself must fit, not only the last index: the loop compares with it. */
    if (size > jaxci_points_most(parameter->dtype)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "the range of index '%s' is %s = %lld, above the largest value of "
                       "its C type (C: %s), %lld",
                       parameter->name, parameter->bounds[0].text, (long long)size,
                       parameter->declaration,
                       (long long)jaxci_points_most(parameter->dtype));
    }
    if (size <= 0) is_empty = 1;
    if (!is_empty && !jaxc_multiply(batch->points, size, &batch->points)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "the grid has more points than an int64 counts");
    }
  }
  if (is_empty) batch->points = 0;
  batch->range[0] = 0;
  batch->range[1] = batch->points;
  return JAXC_OK;
}

/* Gives a copy of a batch a range of its own: threads call different points. */
static inline void jaxci_points_own(jaxci_batch *batch) {
  for (int32_t k = batch->index; k >= 0 && k < batch->function->parameter_count; k++) {
    if (batch->function->parameters[k].role == JAXC_ROLE_INDEX) {
      batch->data[k] = (char *)batch->range;
    }
  }
}

static inline int jaxci_points_is_cleared(const jaxc_parameter *parameter) {
  return parameter->role == JAXC_ROLE_OUTPUT &&
         (parameter->flags & JAXC_PARAMETER_ZERO) != 0;
}

/* Before the calls of `count` rows: brings the operands of inout parameters into their
 * results where XLA did not give both the same memory (when the caller still needs the
 * operand, or it is broadcast), and clears what `zero` names. */
JAXC_UNUSED static JAXC_NOINLINE void jaxci_points_prepare(const jaxci_batch *batch,
                                                           const long long *strides,
                                                           long long count) {
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const jaxc_parameter *const parameter = &batch->function->parameters[k];
    const int32_t from = batch->source[k];
    const int is_copied = from >= 0 && batch->data[from] != batch->data[k] &&
                          (batch->prepares & JAXCI_PREPARE_COPIES) != 0;
    const int is_cleared = jaxci_points_is_cleared(parameter) &&
                           (batch->prepares & JAXCI_PREPARE_ZEROS) != 0;
    long long bytes;
    if (!is_copied && !is_cleared) continue;
    bytes = jaxci_row_bytes(batch, k, parameter->dtype);
    for (long long row = 0; bytes != 0 && row < count; row++) {
      char *const to = batch->data[k] + row * strides[k];
      if (is_copied) {
        memcpy(to, batch->data[from] + row * strides[from], (size_t)bytes);
      } else {
        memset(to, 0, (size_t)bytes);
      }
    }
  }
}

/* Bytes that one thread clears at a time. */
#define JAXCI_CLEAR_BYTES ((int64_t)256 * 1024)

static void jaxci_points_clear_piece(void *data, int64_t begin, int64_t end) {
  memset((char *)data + begin, 0, (size_t)(end - begin));
}

/* Clears the results that `zero` names, of all rows, which lie one behind another; large
 * ones in all threads. base: where each slot has row 0. */
JAXC_UNUSED static JAXC_NOINLINE void jaxci_points_clear(
    const jaxc_abi_call_frame *frame, const jaxci_batch *batch, char *const *base) {
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const jaxc_parameter *const parameter = &batch->function->parameters[k];
    jaxci_parallel_call call;
    int64_t bytes;
    if (!jaxci_points_is_cleared(parameter)) continue;
    bytes = jaxci_row_bytes(batch, k, parameter->dtype) * batch->rows;
    if (bytes <= JAXCI_CLEAR_BYTES) {
      memset(base[k], 0, (size_t)bytes);
      continue;
    }
    call.function = jaxci_points_clear_piece;
    call.data = base[k];
    (void)jaxci_loop_run(frame, 0, bytes, JAXCI_CLEAR_BYTES, jaxci_loop_threads(frame),
                         jaxci_parallel_work, &call, NULL);
  }
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_POINTS_H */
