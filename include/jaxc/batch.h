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

#include <jaxc/call.h>
#include <jaxc/library.h>
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

typedef struct {
  const jaxc_function *function;
  int32_t slot_count;
  int32_t axis_count;                 /* after merging; axis 0 is the innermost */
  int64_t rows;                       /* product of sizes */
  int64_t sizes[JAXC_MAX_AXES];
  long long dims[JAXC_MAX_DIMS];
  jaxc_view views[JAXCI_MAX_SLOTS];   /* data NULL and rank 0 where a slot has no array */
  int32_t core_rank[JAXCI_MAX_SLOTS];
  int32_t source[JAXC_MAX_PARAMETERS]; /* slot of an inout's operand, else -1 */
  jaxci_value statics[JAXC_MAX_PARAMETERS];
  char *data[JAXCI_MAX_SLOTS];
  long long strides[JAXC_MAX_AXES][JAXCI_MAX_SLOTS];
} jaxci_batch;

/* The value of a bound. Returns 0 on overflow, division by zero or a broken program. */
static int jaxci_bound_value(const jaxc_bound *bound, const long long *dims,
                             int64_t *out) {
  int64_t stack[JAXC_MAX_BOUND_DEPTH];
  int32_t depth = 0;
  for (int32_t i = 0; i < bound->step_count; i++) {
    const jaxc_bound_step step = bound->steps[i];
    int64_t a, b;
    if (step.code == JAXC_BOUND_CONSTANT || step.code == JAXC_BOUND_DIM) {
      if (depth == JAXC_MAX_BOUND_DEPTH) return 0;
      stack[depth++] = step.code == JAXC_BOUND_CONSTANT ? step.argument
                                                        : (int64_t)dims[step.argument];
      continue;
    }
    if (depth < 2) return 0;
    b = stack[--depth];
    a = stack[depth - 1];
    switch (step.code) {
      case JAXC_BOUND_ADD:
        if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 0;
        a += b;
        break;
      case JAXC_BOUND_SUBTRACT:
        if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) return 0;
        a -= b;
        break;
      case JAXC_BOUND_MULTIPLY: {
        const int negative = (a < 0) != (b < 0);
        int64_t product;
        if (a == INT64_MIN || b == INT64_MIN) return 0;
        if (!jaxc_multiply(a < 0 ? -a : a, b < 0 ? -b : b, &product)) return 0;
        a = negative ? -product : product;
        break;
      }
      case JAXC_BOUND_DIVIDE:
        if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
        a /= b;
        break;
      default:
        return 0;
    }
    stack[depth - 1] = a;
  }
  if (depth != 1) return 0;
  *out = stack[0];
  return 1;
}

static inline int jaxci_bound_is_dim(const jaxc_bound *bound) {
  return bound->step_count == 1 && bound->steps[0].code == JAXC_BOUND_DIM;
}

static inline int64_t jaxci_core_size(const jaxci_batch *batch, int32_t slot,
                                      int32_t axis) {
  const jaxc_view *view = &batch->views[slot];
  return view->dims[view->rank - batch->core_rank[slot] + axis];
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
  int64_t at_zero, at_one, value;
  if (jaxci_bound_is_dim(bound)) {
    batch->dims[step->dim] = size;
    return JAXC_OK;
  }
  batch->dims[step->dim] = 0;
  if (!jaxci_bound_value(bound, batch->dims, &at_zero)) at_zero = size;
  batch->dims[step->dim] = 1;
  if (!jaxci_bound_value(bound, batch->dims, &at_one)) at_one = at_zero;
  value = at_one == at_zero ? 0 : (size - at_zero) / (at_one - at_zero);
  batch->dims[step->dim] = value;
  if (!jaxci_bound_value(bound, batch->dims, &at_zero) || at_zero != size) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "'%s' has %lld elements on core axis %d, which no %s gives (C: %s)",
                     parameter->name, (long long)size, (int)step->axis,
                     batch->function->dims[step->dim].name, parameter->declaration);
  }
  return JAXC_OK;
}

static jaxc_status jaxci_batch_dims(jaxci_batch *batch, const jaxc_abi_attrs *attrs,
                                    jaxc_message *message) {
  const jaxc_function *function = batch->function;
  for (int32_t i = 0; i < function->dim_count; i++) {
    int64_t value;
    if (!function->dims[i].is_static) continue;
    JAXC_TRY(jaxc_attrs_scalar(attrs, function->dims[i].name, JAXC_S64, &value, message));
    batch->dims[i] = value;
  }
  for (int32_t i = 0; i < function->solve_count; i++) {
    JAXC_TRY(jaxci_batch_solve(batch, &function->solve[i], message));
  }
  for (int32_t i = 0; i < function->dim_count; i++) {
    const jaxc_dim *dim = &function->dims[i];
    if (batch->dims[i] < dim->minimum || batch->dims[i] > dim->maximum) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "dimension %s is %lld, outside its C type's range (%lld to %lld)",
                       dim->name, batch->dims[i], (long long)dim->minimum,
                       (long long)dim->maximum);
    }
  }
  return JAXC_OK;
}

/* Compares the core sizes of a slot with its bounds and notes the bytes of a row. */
static jaxc_status jaxci_batch_core(jaxci_batch *batch, int32_t slot,
                                    const jaxc_parameter *parameter,
                                    jaxc_message *message) {
  int64_t elements = 1;
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    const jaxc_bound *bound = &parameter->bounds[axis];
    const int64_t size = jaxci_core_size(batch, slot, axis);
    int64_t expected;
    if (jaxci_bound_is_dim(bound)) {
      expected = batch->dims[bound->steps[0].argument];
    } else if (!jaxci_bound_value(bound, batch->dims, &expected)) {
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
    elements *= size; /* cannot overflow: call.h has multiplied all sizes */
  }
  batch->views[slot].row_bytes = (size_t)elements * jaxc_dtype_size(parameter->dtype);
  return JAXC_OK;
}

/* Views every array of the frame, in the order of the prototype. */
static jaxc_status jaxci_batch_operands(jaxci_batch *batch,
                                        const jaxc_abi_call_frame *frame,
                                        jaxc_message *message) {
  const jaxc_function *function = batch->function;
  const int64_t token = (function->flags & JAXC_FUNCTION_EFFECT) != 0;
  int64_t arguments = token, results = token, attributes = 0;
  batch->slot_count = function->parameter_count;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const int32_t role = function->parameters[k].role;
    arguments += role == JAXC_ROLE_INPUT || role == JAXC_ROLE_INOUT;
    results += role == JAXC_ROLE_OUTPUT || role == JAXC_ROLE_INOUT;
    attributes += role == JAXC_ROLE_STATIC;
  }
  for (int32_t i = 0; i < function->dim_count; i++) {
    attributes += function->dims[i].is_static != 0;
  }
  JAXC_TRY(jaxc_call_check(frame, JAXC_STAGE_EXECUTE, arguments, results, attributes,
                           message));
  arguments = results = token;
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    int32_t slot = k;
    batch->source[k] = -1;
    batch->views[k].data = NULL;
    batch->views[k].rank = 0;
    batch->views[k].row_bytes = 0;
    batch->core_rank[k] = parameter->rank;
    if (parameter->role == JAXC_ROLE_INOUT) {
      slot = batch->slot_count++;
      batch->source[k] = slot;
      batch->core_rank[slot] = parameter->rank;
    }
    if (parameter->role == JAXC_ROLE_INPUT || parameter->role == JAXC_ROLE_INOUT) {
      JAXC_TRY(jaxc_call_argument(frame, arguments++, parameter->name, parameter->dtype,
                                  parameter->rank, &batch->views[slot], message));
    }
    if (parameter->role == JAXC_ROLE_OUTPUT || parameter->role == JAXC_ROLE_INOUT) {
      JAXC_TRY(jaxc_call_result(frame, results++, parameter->name, parameter->dtype,
                                parameter->rank, &batch->views[k], message));
    }
    if (parameter->role >= JAXC_ROLE_SCRATCH) batch->core_rank[k] = 0;
  }
  return JAXC_OK;
}

/* Adds the leading axis of size `size` outside those there, merging it with the axis
 * inside it when every slot steps through both as through one. */
static void jaxci_batch_add_axis(jaxci_batch *batch, int64_t size,
                                 const long long *strides) {
  const int32_t top = batch->axis_count - 1;
  int32_t slot = 0;
  if (top >= 0) {
    const long long inner = batch->sizes[top];
    while (slot < batch->slot_count &&
           strides[slot] == batch->strides[top][slot] * inner) {
      slot++;
    }
    if (slot == batch->slot_count) {
      batch->sizes[top] *= size;
      return;
    }
  }
  batch->sizes[top + 1] = size;
  memcpy(batch->strides[top + 1], strides, (size_t)batch->slot_count * sizeof *strides);
  batch->axis_count++;
}

static inline int jaxci_slot_is_result(const jaxci_batch *batch, int32_t slot) {
  return slot < batch->function->parameter_count &&
         (batch->function->parameters[slot].role == JAXC_ROLE_OUTPUT ||
          batch->function->parameters[slot].role == JAXC_ROLE_INOUT);
}

/* Broadcasts the leading axes of all slots: sizes and strides, innermost first. */
static jaxc_status jaxci_batch_axes(jaxci_batch *batch, jaxc_message *message) {
  long long running[JAXCI_MAX_SLOTS]; /* bytes of what lies inside the current axis */
  long long strides[JAXCI_MAX_SLOTS];
  int64_t leading = 0;
  batch->axis_count = 0;
  batch->rows = 1;
  for (int32_t slot = 0; slot < batch->slot_count; slot++) {
    const int64_t own = batch->views[slot].rank - batch->core_rank[slot];
    if (own > leading) leading = own;
    running[slot] = (long long)batch->views[slot].row_bytes;
  }
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
    jaxci_batch_add_axis(batch, size, strides);
  }
  for (int32_t slot = 0; slot < batch->function->parameter_count; slot++) {
    if (!jaxci_slot_is_result(batch, slot)) continue;
    /* running is now the result's bytes: it has every row exactly once, or none fits */
    if (batch->views[slot].rank - batch->core_rank[slot] != leading ||
        (batch->rows != 0 && running[slot] / batch->rows !=
                                 (long long)batch->views[slot].row_bytes)) {
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
    if (!jaxci_bound_value(&parameter->bounds[axis], batch->dims, &size) ||
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

/* Fills data, and says whether a block for scratch or strings is needed. */
static jaxc_status jaxci_batch_data(jaxci_batch *batch, const jaxc_abi_attrs *attrs,
                                    int *needs_block, jaxc_message *message) {
  const jaxc_function *function = batch->function;
  *needs_block = 0;
  /* Empty arrays may come without data: arithmetic on NULL is undefined in C, so the
   * kernel gets some other place that it has no right to touch. */
  for (int32_t k = 0; k < batch->slot_count; k++) {
    batch->data[k] =
        batch->views[k].data != NULL ? batch->views[k].data : (char *)batch->statics;
  }
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    if (parameter->role == JAXC_ROLE_SCRATCH) *needs_block = 1;
    if (parameter->role != JAXC_ROLE_STATIC) continue;
    batch->data[k] = (char *)&batch->statics[k];
    if (parameter->dtype == JAXC_STRING) {
      *needs_block = 1;
    } else {
      /* uint64 is sent as the int64 of the same bits: JAX cannot write one above 2^63. */
      const int32_t sent = parameter->dtype == JAXC_U64 ? JAXC_S64 : parameter->dtype;
      JAXC_TRY(jaxc_attrs_scalar(attrs, parameter->name, sent, &batch->statics[k],
                                 message));
    }
  }
  return JAXC_OK;
}

/* Brings the operands of inout parameters into their results where XLA did not give both
 * the same memory: when the caller still needs the operand, or it is broadcast. */
static void jaxci_batch_copy_inouts(const jaxci_batch *batch, char *const *data,
                                    long long count) {
  for (int32_t k = 0; k < batch->function->parameter_count; k++) {
    const int32_t from = batch->source[k];
    if (from < 0 || data[from] == data[k] || batch->views[k].row_bytes == 0) continue;
    for (long long row = 0; row < count; row++) {
      memcpy(data[k] + row * batch->strides[0][k],
             data[from] + row * batch->strides[0][from], batch->views[k].row_bytes);
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

/* Calls the kernel on all rows, a run of the innermost axis at a time. */
static jaxc_status jaxci_batch_rows(jaxci_batch *batch, jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int64_t index[JAXC_MAX_AXES] = {0};
  const int64_t run = batch->axis_count > 0 ? batch->sizes[0] : 1;
  if (batch->axis_count == 0) {
    memset(batch->strides[0], 0, (size_t)batch->slot_count * sizeof batch->strides[0][0]);
  }
  for (int64_t first = 0; first < batch->rows; first += run) {
    jaxc_fault fault = {0, 0, NULL};
    if (batch->slot_count > function->parameter_count) {
      jaxci_batch_copy_inouts(batch, batch->data, run);
    }
    if (function->rows(batch->dims, batch->data, batch->strides[0], run, &fault) != 0) {
      return jaxci_batch_fault(batch, &fault, first, message);
    }
    for (int32_t axis = 1; axis < batch->axis_count; axis++) { /* the odometer */
      const int wraps = ++index[axis] == batch->sizes[axis];
      for (int32_t slot = 0; slot < batch->slot_count; slot++) {
        if (batch->strides[axis][slot] == 0) continue;
        batch->data[slot] += wraps
                                 ? -batch->strides[axis][slot] * (batch->sizes[axis] - 1)
                                 : batch->strides[axis][slot];
      }
      if (!wraps) break;
      index[axis] = 0;
    }
  }
  return JAXC_OK;
}

static jaxc_status jaxci_batch_run(const jaxc_abi_call_frame *frame, jaxci_batch *batch,
                                   jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int needs_block;
  JAXC_TRY(jaxci_batch_operands(batch, frame, message));
  JAXC_TRY(jaxci_batch_dims(batch, &frame->attrs, message));
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const jaxc_parameter *parameter = &function->parameters[k];
    if (parameter->role > JAXC_ROLE_INOUT) continue;
    JAXC_TRY(jaxci_batch_core(batch, k, parameter, message));
    if (batch->source[k] < 0) continue;
    JAXC_TRY(jaxci_batch_core(batch, batch->source[k], parameter, message));
  }
  JAXC_TRY(jaxci_batch_axes(batch, message));
  JAXC_TRY(jaxci_batch_data(batch, &frame->attrs, &needs_block, message));
  if (needs_block) {
    char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
    void *allocated = NULL;
    jaxc_status status =
        jaxci_batch_block(batch, &frame->attrs, local, &allocated, message);
    if (status == JAXC_OK) status = jaxci_batch_rows(batch, message);
    free(allocated);
    return status;
  }
  return jaxci_batch_rows(batch, message);
}

/* The whole handler of `function`: answers a metadata query, checks the frame against the
 * description, calls the kernel on every row. Returns NULL or an error that the runtime
 * owns; its text begins with the function's name. May be called from several threads at
 * once as far as the kernel may. */
JAXC_UNUSED static jaxc_abi_error *jaxc_batch_handle(jaxc_abi_call_frame *frame,
                                                     const jaxc_function *function) {
  jaxci_batch batch;
  jaxc_message message;
  jaxc_message whole;
  jaxc_status status;
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  batch.function = function;
  status = jaxci_batch_run(frame, &batch, &message);
  if (status == JAXC_OK) return NULL;
  status = JAXC_FAIL(&whole, status, "%s: %s", function->name, message.text);
  return jaxc_error_create(frame->api, status, whole.text);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_BATCH_H */
