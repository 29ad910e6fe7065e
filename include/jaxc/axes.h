/* axes.h: the leading axes of a call, broadcast as in NumPy and merged where they can be.
 *
 *   jaxci_axes axes;
 *   JAXC_TRY(jaxci_batch_axes(&batch, &axes, &message));     after signature.h's checks
 *
 * Included by rows.h, and of use to nobody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_AXES_H
#define JAXC_AXES_H

#include <jaxc/signature.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Leading axes after merging, the innermost first. Apart from jaxci_batch because of its
 * 33 kB, which a call without leading axes does not touch. */
typedef struct {
  int32_t count;
  int64_t sizes[JAXC_MAX_AXES];
  long long strides[JAXC_MAX_AXES][JAXCI_MAX_SLOTS];
} jaxci_axes;

/* Adds a leading axis outside those there, merging it with the axis inside it when every
 * slot steps through both as through one. */
static void jaxci_axes_add(jaxci_axes *axes, int32_t slot_count, int64_t size,
                           const long long *strides) {
  const int32_t top = axes->count - 1;
  int32_t slot = 0;
  if (top >= 0) {
    const long long inner = axes->sizes[top];
    while (slot < slot_count && strides[slot] == axes->strides[top][slot] * inner) slot++;
    if (slot == slot_count) {
      axes->sizes[top] *= size;
      return;
    }
  }
  axes->sizes[top + 1] = size;
  memcpy(axes->strides[top + 1], strides, (size_t)slot_count * sizeof *strides);
  axes->count++;
}

static inline int jaxci_slot_is_result(const jaxci_batch *batch, int32_t slot) {
  return slot < batch->function->parameter_count &&
         (batch->function->parameters[slot].role == JAXC_ROLE_OUTPUT ||
          batch->function->parameters[slot].role == JAXC_ROLE_INOUT);
}

/* Broadcasts the leading axes of all slots: sizes and strides, innermost first. */
JAXC_UNUSED static jaxc_status jaxci_batch_axes(jaxci_batch *batch, jaxci_axes *axes,
                                                jaxc_message *message) {
  long long running[JAXCI_MAX_SLOTS]; /* bytes of what lies inside the current axis */
  long long row_bytes[JAXCI_MAX_SLOTS];
  long long strides[JAXCI_MAX_SLOTS];
  const int64_t leading = batch->leading;
  axes->count = 0;
  batch->rows = 1;
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const jaxc_parameter *parameter = &batch->function->parameters[k];
    const int is_array = parameter->role <= JAXC_ROLE_INOUT;
    row_bytes[k] = is_array ? jaxci_row_bytes(batch, k, parameter->dtype) : 0;
    if (batch->source[k] >= 0) row_bytes[batch->source[k]] = row_bytes[k];
  }
  memcpy(running, row_bytes, (size_t)batch->slot_count * sizeof *running);
  if (leading > JAXC_MAX_AXES) {
    return JAXC_FAIL(message, JAXC_UNIMPLEMENTED,
                     "called with %lld leading axes, at most %d are supported",
                     (long long)leading, JAXC_MAX_AXES);
  }
  for (int64_t back = 1; back <= leading; back++) { /* axes counted from the right */
    int64_t size = 1;
    for (int32_t slot = 0; slot < batch->slot_count; slot++) {
      const jaxci_shape *view = &batch->shapes[slot];
      const int64_t own = view->rank - batch->core_rank[slot];
      const int64_t here = own < back ? 1 : view->dims[own - back];
      strides[slot] = here == 1 ? 0 : running[slot];
      running[slot] *= here;
      if (here != 1 && size != 1 && here != size) {
        return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                         "leading axis -%lld has size %lld in one array and %lld in "
                         "another",
                         (long long)back, (long long)size, (long long)here);
      }
      if (here != 1) size = here;
    }
    if (size == 1) continue;
    if (!jaxc_multiply(batch->rows, size, &batch->rows)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "too many rows for an int64");
    }
    jaxci_axes_add(axes, batch->slot_count, size, strides);
  }
  for (int32_t slot = 0; slot < batch->function->parameter_count; slot++) {
    if (!jaxci_slot_is_result(batch, slot)) continue;
    /* running is now the result's bytes: it has every row exactly once, or none fits */
    if (batch->shapes[slot].rank - batch->core_rank[slot] != leading ||
        (batch->rows != 0 && running[slot] / batch->rows != row_bytes[slot])) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "result '%s' lacks a leading axis of the arguments",
                       batch->function->parameters[slot].name);
    }
  }
  return JAXC_OK;
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_AXES_H */
