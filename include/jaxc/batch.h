/* batch.h: run a described function over every row of a call.
 *
 * The generated handler is one line:
 *
 *   jaxc_abi_error *jaxc_call_rms_norm(jaxc_abi_call_frame *frame) {
 *     return jaxc_batch_handle(frame, &rms_norm_function);
 *   }
 *
 * The last axes of each array are its core dimensions; the axes before them broadcast as
 * in NumPy: aligned at the right, size 1 or absent means shared. Nothing is copied to
 * broadcast; a shared operand has stride 0. Results have all leading axes at full size.
 * Rows are called in row-major order by the calling thread. Memory is only allocated for
 * scratch parameters and strings above 4 KiB.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_BATCH_H
#define JAXC_BATCH_H

#include <jaxc/bound.h>
#include <jaxc/call.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Storage of one static value; data[k] of a static parameter points here. */
typedef union {
  int64_t integer;
  double complex_parts[2];
  const char *string;
} jaxci_value;

/* Slot k < parameter_count is parameter k; further slots are the operands of inout
 * parameters, whose results have the parameter's own slot. */
#define JAXCI_MAX_SLOTS (2 * JAXC_MAX_PARAMETERS)

/* A dimension that no shape has given yet. */
#define JAXCI_UNKNOWN (-1)

typedef struct {
  const jaxc_function *function;
  int32_t slot_count;
  int is_computed; /* some bound is more than a dimension */
  int needs_block; /* there is scratch or a string */
  int64_t leading; /* most leading axes of any array */
  int64_t rows;    /* product of the sizes of leading axes */
  long long dims[JAXC_MAX_DIMS];
  char *data[JAXCI_MAX_SLOTS];
  jaxc_view views[JAXCI_MAX_SLOTS];    /* rank 0 where a slot has no array */
  int32_t core_rank[JAXCI_MAX_SLOTS];
  int32_t source[JAXC_MAX_PARAMETERS]; /* slot of an inout's operand, else -1 */
  jaxci_value statics[JAXC_MAX_PARAMETERS];
} jaxci_batch;

/* Leading axes after merging, the innermost first. Apart from jaxci_batch because of its
 * 33 kB, which a call without leading axes does not touch. */
typedef struct {
  int32_t count;
  int64_t sizes[JAXC_MAX_AXES];
  long long strides[JAXC_MAX_AXES][JAXCI_MAX_SLOTS];
} jaxci_axes;

/* Views one array and compares the core sizes that are plain dimensions, or learns them. */
static inline jaxc_status jaxci_batch_array(jaxci_batch *batch, int32_t slot,
                                            const jaxc_abi_operands *list, int64_t index,
                                            const char *kind,
                                            const jaxc_parameter *parameter,
                                            jaxc_message *message) {
  jaxc_view *view = &batch->views[slot];
  const int64_t *sizes;
  int64_t own;
  JAXC_TRY(jaxc_call_operand(list, index, kind, parameter->name, parameter->dtype,
                             JAXC_AT_LEAST(parameter->rank), view, message));
  own = view->rank - parameter->rank;
  if (own > batch->leading) batch->leading = own;
  sizes = view->dims + own;
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    const jaxc_bound *bound = &parameter->bounds[axis];
    if (bound->dim < 0) {
      batch->is_computed = 1;
    } else if (batch->dims[bound->dim] == JAXCI_UNKNOWN) {
      batch->dims[bound->dim] = sizes[axis];
    } else if (batch->dims[bound->dim] != sizes[axis]) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has %lld elements on core axis %d, expected %s = %lld",
                       parameter->name, (long long)sizes[axis], (int)axis, bound->text,
                       batch->dims[bound->dim]);
    }
  }
  batch->core_rank[slot] = parameter->rank;
  /* Empty arrays may come without data: arithmetic on NULL is undefined in C, so the
   * kernel gets some other place that it has no right to touch. */
  batch->data[slot] = view->data != NULL ? (char *)view->data : (char *)batch->statics;
  return JAXC_OK;
}

/* Reads a static parameter; strings wait for the block of scratch memory. */
static jaxc_status jaxci_batch_static(jaxci_batch *batch, int32_t k,
                                      const jaxc_abi_attrs *attrs,
                                      jaxc_message *message) {
  const jaxc_parameter *parameter = &batch->function->parameters[k];
  /* uint64 is sent as the int64 of the same bits: JAX cannot write one above 2^63. */
  const int32_t sent = parameter->dtype == JAXC_U64 ? JAXC_S64 : parameter->dtype;
  batch->data[k] = (char *)&batch->statics[k];
  if (parameter->dtype == JAXC_STRING) {
    batch->needs_block = 1;
    return JAXC_OK;
  }
  return jaxc_attrs_scalar(attrs, parameter->name, sent, &batch->statics[k], message);
}

/* Looks at every parameter in the order of the prototype. */
static jaxc_status jaxci_batch_operands(jaxci_batch *batch,
                                        const jaxc_abi_call_frame *frame,
                                        jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int64_t argument = 0, result = 0;
  JAXC_TRY(jaxc_call_check(frame, JAXC_STAGE_EXECUTE, function->argument_count,
                           function->result_count, function->attribute_count, message));
  if ((function->flags & JAXC_FUNCTION_EFFECT) != 0) argument = result = 1; /* tokens */
  batch->slot_count = function->parameter_count;
  batch->leading = 0;
  batch->is_computed = batch->needs_block = 0;
  for (int32_t i = 0; i < function->dim_count; i++) {
    int64_t value = JAXCI_UNKNOWN;
    if (function->dims[i].is_static) {
      JAXC_TRY(jaxc_attrs_scalar(&frame->attrs, function->dims[i].name, JAXC_S64, &value,
                                 message));
    }
    batch->dims[i] = value;
  }
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    batch->source[k] = -1;
    switch (parameter->role) {
      case JAXC_ROLE_INPUT:
        JAXC_TRY(jaxci_batch_array(batch, k, &frame->args, argument++, "argument",
                                   parameter, message));
        continue;
      case JAXC_ROLE_OUTPUT:
        JAXC_TRY(jaxci_batch_array(batch, k, &frame->results, result++, "result",
                                   parameter, message));
        continue;
      case JAXC_ROLE_INOUT:
        batch->source[k] = batch->slot_count++;
        JAXC_TRY(jaxci_batch_array(batch, batch->source[k], &frame->args, argument++,
                                   "argument", parameter, message));
        JAXC_TRY(jaxci_batch_array(batch, k, &frame->results, result++, "result",
                                   parameter, message));
        continue;
      case JAXC_ROLE_STATIC:
        JAXC_TRY(jaxci_batch_static(batch, k, &frame->attrs, message));
        break;
      case JAXC_ROLE_SCRATCH:
        batch->needs_block = 1;
        break;
      default:
        break;
    }
    batch->views[k].rank = batch->core_rank[k] = 0; /* no array: shared by all rows */
  }
  return JAXC_OK;
}

/* Size of a core axis of the array in a slot. */
static inline int64_t jaxci_core_size(const jaxci_batch *batch, int32_t slot,
                                      int32_t axis) {
  const jaxc_view *view = &batch->views[slot];
  return view->dims[view->rank - batch->core_rank[slot] + axis];
}

/* Bytes of the core dimensions of the array in a slot; 0 where there is none. */
static long long jaxci_row_bytes(const jaxci_batch *batch, int32_t slot, int32_t dtype) {
  long long bytes = (long long)jaxc_dtype_size(dtype);
  for (int32_t axis = 0; axis < batch->core_rank[slot]; axis++) {
    bytes *= jaxci_core_size(batch, slot, axis); /* call.h has multiplied all sizes */
  }
  return bytes;
}

/* Finds one dimension from the size of an axis, by a bound a * dim + b. */
static jaxc_status jaxci_batch_solve(jaxci_batch *batch, const jaxc_solve_step *step,
                                     jaxc_message *message) {
  const jaxc_parameter *parameter = &batch->function->parameters[step->parameter];
  const jaxc_bound *bound = &parameter->bounds[step->axis];
  /* An inout is read from its operand, like every input. */
  const int32_t slot = batch->source[step->parameter] >= 0
                           ? batch->source[step->parameter]
                           : step->parameter;
  const int64_t size = jaxci_core_size(batch, slot, step->axis);
  int64_t at_zero, at_one, value = 0;
  batch->dims[step->dim] = 0;
  if (!jaxc_bound_value(bound, batch->dims, &at_zero)) at_zero = size;
  batch->dims[step->dim] = 1;
  if (!jaxc_bound_value(bound, batch->dims, &at_one)) at_one = at_zero;
  if (at_one != at_zero) value = (size - at_zero) / (at_one - at_zero);
  batch->dims[step->dim] = value;
  if (!jaxc_bound_value(bound, batch->dims, &at_zero) || at_zero != size) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%s' has %lld elements on core axis %d, which no %s gives (C: %s)",
                     parameter->name, (long long)size, (int)step->axis,
                     batch->function->dims[step->dim].name, parameter->declaration);
  }
  return JAXC_OK;
}

/* Compares the core sizes of a slot whose bounds are computed. */
static jaxc_status jaxci_batch_compare(const jaxci_batch *batch, int32_t slot,
                                       const jaxc_parameter *parameter,
                                       jaxc_message *message) {
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    const jaxc_bound *bound = &parameter->bounds[axis];
    const int64_t size = jaxci_core_size(batch, slot, axis);
    int64_t expected = 0;
    if (!jaxc_bound_value(bound, batch->dims, &expected)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "the size %s of '%s' has no value for these dimensions",
                       bound->text, parameter->name);
    }
    if (size != expected) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has %lld elements on core axis %d, expected %s = %lld",
                       parameter->name, (long long)size, (int)axis, bound->text,
                       (long long)expected);
    }
  }
  return JAXC_OK;
}

/* Dimensions that only computed bounds give, the range of each dimension's C type, and
 * the sizes that computed bounds ask for. */
static jaxc_status jaxci_batch_dims(jaxci_batch *batch, jaxc_message *message) {
  const jaxc_function *function = batch->function;
  if (batch->is_computed) {
    for (int32_t i = 0; i < function->solve_count; i++) {
      if (batch->dims[function->solve[i].dim] == JAXCI_UNKNOWN) {
        JAXC_TRY(jaxci_batch_solve(batch, &function->solve[i], message));
      }
    }
  }
  for (int32_t i = 0; i < function->dim_count; i++) {
    const jaxc_dim *dim = &function->dims[i];
    const long long least = dim->minimum > 0 ? dim->minimum : 0;
    if (batch->dims[i] < least || batch->dims[i] > dim->maximum) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "dimension %s is %lld, outside the range of its C type (%lld to "
                       "%lld)",
                       dim->name, batch->dims[i], least, (long long)dim->maximum);
    }
  }
  for (int32_t k = 0; batch->is_computed && k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    if (parameter->role > JAXC_ROLE_INOUT) continue;
    JAXC_TRY(jaxci_batch_compare(batch, k, parameter, message));
    if (batch->source[k] < 0) continue;
    JAXC_TRY(jaxci_batch_compare(batch, batch->source[k], parameter, message));
  }
  return JAXC_OK;
}

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
static jaxc_status jaxci_batch_axes(jaxci_batch *batch, jaxci_axes *axes,
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
      const jaxc_view *view = &batch->views[slot];
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
    if (batch->views[slot].rank - batch->core_rank[slot] != leading ||
        (batch->rows != 0 && running[slot] / batch->rows != row_bytes[slot])) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "result '%s' lacks a leading axis of the arguments",
                       batch->function->parameters[slot].name);
    }
  }
  return JAXC_OK;
}

#define JAXCI_SCRATCH_ALIGNMENT ((size_t)64)
#define JAXCI_LOCAL_SCRATCH ((size_t)4096)

/* Bytes that parameter k needs in the block behind all scratch and strings. */
static jaxc_status jaxci_batch_block_bytes(const jaxci_batch *batch, int32_t k,
                                           const jaxc_abi_attrs *attrs, int64_t *out,
                                           jaxc_message *message) {
  const jaxc_parameter *parameter = &batch->function->parameters[k];
  int64_t bytes = (int64_t)jaxc_dtype_size(parameter->dtype);
  jaxc_abi_span span;
  *out = 0;
  if (parameter->role == JAXC_ROLE_STATIC && parameter->dtype == JAXC_STRING) {
    JAXC_TRY(jaxc_attrs_string(attrs, parameter->name, &span, message));
    *out = (int64_t)span.len + 1;
    return JAXC_OK;
  }
  if (parameter->role != JAXC_ROLE_SCRATCH) return JAXC_OK;
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    int64_t size;
    if (!jaxc_bound_value(&parameter->bounds[axis], batch->dims, &size) ||
        !jaxc_multiply(bytes, size, &bytes)) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "scratch '%s' has no size for these dimensions (C: %s)",
                       parameter->name, parameter->declaration);
    }
  }
  *out = bytes;
  return JAXC_OK;
}

/* Places scratch and strings in `local` or in memory that goes to *allocated, which the
 * caller frees. RESOURCE_EXHAUSTED when there is no memory. */
static jaxc_status jaxci_batch_block(jaxci_batch *batch, const jaxc_abi_attrs *attrs,
                                     char *local, void **allocated,
                                     jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int64_t offsets[JAXC_MAX_PARAMETERS];
  int64_t total = 0;
  char *block = local;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    int64_t bytes;
    JAXC_TRY(jaxci_batch_block_bytes(batch, k, attrs, &bytes, message));
    offsets[k] = total;
    if (bytes > INT64_MAX / 4 || total > INT64_MAX / 4) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED,
                       "scratch '%s' of %lld bytes does not fit in memory",
                       function->parameters[k].name, (long long)bytes);
    }
    total += (bytes + (int64_t)JAXCI_SCRATCH_ALIGNMENT - 1) &
             ~((int64_t)JAXCI_SCRATCH_ALIGNMENT - 1);
  }
  if (total > (int64_t)JAXCI_LOCAL_SCRATCH) {
    *allocated = (uint64_t)total > SIZE_MAX - JAXCI_SCRATCH_ALIGNMENT
                     ? NULL
                     : malloc((size_t)total + JAXCI_SCRATCH_ALIGNMENT);
    if (*allocated == NULL) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED,
                       "no memory for %lld bytes of scratch", (long long)total);
    }
    block = (char *)*allocated;
  }
  block += (JAXCI_SCRATCH_ALIGNMENT - (uintptr_t)block % JAXCI_SCRATCH_ALIGNMENT) %
           JAXCI_SCRATCH_ALIGNMENT;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    if (parameter->role == JAXC_ROLE_SCRATCH) {
      batch->data[k] = block + offsets[k];
    } else if (parameter->role == JAXC_ROLE_STATIC && parameter->dtype == JAXC_STRING) {
      jaxc_abi_span span;
      JAXC_TRY(jaxc_attrs_string(attrs, parameter->name, &span, message));
      if (span.len != 0) memcpy(block + offsets[k], span.ptr, span.len);
      block[offsets[k] + (int64_t)span.len] = '\0';
      batch->statics[k].string = block + offsets[k];
    }
  }
  return JAXC_OK;
}

/* Brings the operands of inout parameters into their results where XLA did not give both
 * the same memory: when the caller still needs the operand, or it is broadcast. */
static void jaxci_batch_copy_inouts(const jaxci_batch *batch, const long long *strides,
                                    long long count) {
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const int32_t from = batch->source[k];
    long long bytes;
    if (from < 0 || batch->data[from] == batch->data[k]) continue;
    bytes = jaxci_row_bytes(batch, k, batch->function->parameters[k].dtype);
    for (long long row = 0; bytes != 0 && row < count; row++) {
      memcpy(batch->data[k] + row * strides[k], batch->data[from] + row * strides[from],
             (size_t)bytes);
    }
  }
}

static JAXC_COLD jaxc_status jaxci_batch_fault(const jaxci_batch *batch,
                                               const jaxc_fault *fault, int64_t first,
                                               jaxc_message *message) {
  char where[64] = "";
  if (batch->rows > 1) {
    snprintf(where, sizeof where, " (batch row %lld of %lld)", (long long)first + fault->row,
             (long long)batch->rows);
  }
  if (fault->text != NULL) {
    return JAXC_FAIL(message, JAXC_UNKNOWN, "%s%s", fault->text, where);
  }
  return JAXC_FAIL(message, JAXC_UNKNOWN, "returned status %lld%s; 0 is success",
                   fault->status, where);
}

/* Calls the kernel on a run of rows, of which the first is number `first`. */
static inline jaxc_status jaxci_batch_call(const jaxci_batch *batch,
                                           const long long *strides, int64_t count,
                                           int64_t first, jaxc_message *message) {
  jaxc_fault fault = {0, 0, NULL};
  if (batch->slot_count > batch->function->parameter_count) {
    jaxci_batch_copy_inouts(batch, strides, count);
  }
  if (batch->function->rows(batch->dims, batch->data, strides, count, &fault) != 0) {
    return jaxci_batch_fault(batch, &fault, first, message);
  }
  return JAXC_OK;
}

/* Calls the kernel on all rows, a run of the innermost axis at a time. */
static JAXC_NOINLINE jaxc_status jaxci_batch_many_rows(jaxci_batch *batch,
                                                       jaxc_message *message) {
  jaxci_axes axes;
  int64_t index[JAXC_MAX_AXES] = {0};
  int64_t run = 1;
  JAXC_TRY(jaxci_batch_axes(batch, &axes, message));
  if (axes.count > 0) {
    run = axes.sizes[0];
  } else { /* all sizes are 1 */
    memset(axes.strides[0], 0, (size_t)batch->slot_count * sizeof axes.strides[0][0]);
  }
  for (int64_t first = 0; first < batch->rows; first += run) {
    JAXC_TRY(jaxci_batch_call(batch, axes.strides[0], run, first, message));
    for (int32_t axis = 1; axis < axes.count; axis++) { /* the odometer */
      const int wraps = ++index[axis] == axes.sizes[axis];
      const long long back = axes.sizes[axis] - 1;
      for (int32_t slot = 0; slot < batch->slot_count; slot++) {
        const long long stride = axes.strides[axis][slot];
        if (stride != 0) batch->data[slot] += wraps ? -stride * back : stride;
      }
      if (!wraps) break;
      index[axis] = 0;
    }
  }
  return JAXC_OK;
}

static inline jaxc_status jaxci_batch_rows(jaxci_batch *batch, jaxc_message *message) {
  static const long long no_strides[JAXCI_MAX_SLOTS] = {0};
  if (batch->leading > 0) return jaxci_batch_many_rows(batch, message);
  batch->rows = 1;
  return jaxci_batch_call(batch, no_strides, 1, 0, message);
}

/* The rows of a function with scratch parameters or strings. */
static JAXC_NOINLINE jaxc_status jaxci_batch_rows_with_block(jaxci_batch *batch,
                                               const jaxc_abi_attrs *attrs,
                                               jaxc_message *message) {
  char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
  void *allocated = NULL;
  jaxc_status status = jaxci_batch_block(batch, attrs, local, &allocated, message);
  if (status == JAXC_OK) status = jaxci_batch_rows(batch, message);
  free(allocated);
  return status;
}

static jaxc_status jaxci_batch_run(const jaxc_abi_call_frame *frame, jaxci_batch *batch,
                                   jaxc_message *message) {
  JAXC_TRY(jaxci_batch_operands(batch, frame, message));
  JAXC_TRY(jaxci_batch_dims(batch, message));
  if (batch->needs_block) {
    return jaxci_batch_rows_with_block(batch, &frame->attrs, message);
  }
  return jaxci_batch_rows(batch, message);
}

JAXC_COLD static jaxc_abi_error *jaxci_batch_error(const jaxc_abi_call_frame *frame,
                                                   const jaxc_function *function,
                                                   jaxc_status status,
                                                   const jaxc_message *message) {
  jaxc_message whole;
  status = JAXC_FAIL(&whole, status, "%s: %s", function->name, message->text);
  return jaxc_error_create(frame->api, status, whole.text);
}

/* The whole handler of `function`: answers a metadata query, checks the frame against the
 * description, calls the kernel on every row. Returns NULL or an error that the runtime
 * owns; its text begins with the function's name. May be called from several threads at
 * once as far as the kernel may. */
JAXC_UNUSED static jaxc_abi_error *jaxc_batch_handle(jaxc_abi_call_frame *frame,
                                                     const jaxc_function *function) {
  jaxci_batch batch;
  jaxc_message message;
  jaxc_status status;
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  batch.function = function;
  status = jaxci_batch_run(frame, &batch, &message);
  if (status == JAXC_OK) return NULL;
  return jaxci_batch_error(frame, function, status, &message);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_BATCH_H */
