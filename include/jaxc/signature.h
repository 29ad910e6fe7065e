/* signature.h: a call frame against the description of a function: arrays viewed, sizes
 * compared, dimensions solved.
 *
 *   jaxci_batch batch;
 *   batch.function = function;
 *   JAXC_TRY(jaxci_batch_operands(&batch, frame, &message));
 *   JAXC_TRY(jaxci_batch_dims(&batch, &message));
 *
 * Included by batch.h, and of use to nobody else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_SIGNATURE_H
#define JAXC_SIGNATURE_H

#include <jaxc/bound.h>
#include <jaxc/call.h>
#include <jaxc/library.h>

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

enum {
  JAXCI_PREPARE_COPIES = 1, /* of inouts */
  JAXCI_PREPARE_ZEROS = 2,
  JAXCI_PREPARE_ONLY = 4    /* rows are prepared and not called */
};

/* What is kept of an array's view, beside its data. */
typedef struct {
  const int64_t *dims;
  int64_t rank;
} jaxci_shape;

typedef struct {
  const jaxc_function *function;
  int32_t slot_count;
  int is_computed; /* some bound is more than a dimension */
  int needs_block; /* there is scratch, a string or a context */
  int32_t context; /* slot of the parameter that is a context, or -1 */
  int32_t index;   /* slot of the first parameter that is an index of a grid, or -1 */
  int prepares;    /* JAXCI_PREPARE_*: what is done before a row's first call */
  int by_point;    /* of rows.h: whether units of work are points, not rows */
  int64_t leading; /* most leading axes of any array */
  int64_t largest; /* most elements of any array */
  int64_t rows;    /* product of the sizes of leading axes */
  int64_t points;  /* of the grid, in each row */
  int64_t units;   /* of work: rows, or rows times points */
  long long range[2]; /* points to call, to which data[] of indices points */
  long long dims[JAXC_MAX_DIMS];
  char *data[JAXCI_MAX_SLOTS];
  jaxci_shape shapes[JAXCI_MAX_SLOTS]; /* rank 0 where a slot has no array */
  int32_t core_rank[JAXCI_MAX_SLOTS];
  int32_t source[JAXC_MAX_PARAMETERS]; /* slot of an inout's operand, else -1 */
  jaxci_value statics[JAXC_MAX_PARAMETERS];
} jaxci_batch;

/* Views one array and compares the core sizes that are plain dimensions, or learns them. */
static JAXC_INLINE jaxc_status jaxci_batch_array(jaxci_batch *batch, int32_t slot,
                                                 const jaxc_abi_operands *list,
                                                 int64_t index, const char *kind,
                                                 const jaxc_parameter *parameter,
                                                 jaxc_message *message) {
  jaxc_view view;
  int64_t own;
  JAXC_TRY(jaxc_call_operand(list, index, kind, parameter->name, parameter->dtype,
                             JAXC_AT_LEAST(parameter->rank), &view, message));
  own = view.rank - parameter->rank;
  if (own > batch->leading) batch->leading = own;
  if (view.count > batch->largest) batch->largest = view.count;
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    const jaxc_bound *bound = &parameter->bounds[axis];
    const int64_t size = view.dims[own + axis];
    if (bound->dim < 0) {
      batch->is_computed = 1;
    } else if (batch->dims[bound->dim] == JAXCI_UNKNOWN) {
      batch->dims[bound->dim] = size;
    } else if (batch->dims[bound->dim] != size) {
      return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                       "'%s' has %lld elements on core axis %d, expected %s = %lld",
                       parameter->name, (long long)size, (int)axis, bound->text,
                       batch->dims[bound->dim]);
    }
  }
  batch->shapes[slot].dims = view.dims;
  batch->shapes[slot].rank = view.rank;
  batch->core_rank[slot] = parameter->rank;
  /* Empty arrays may come without data: arithmetic on NULL is undefined in C, so the
   * kernel gets some other place that it has no right to touch. */
  batch->data[slot] = view.data != NULL ? (char *)view.data : (char *)batch->statics;
  return JAXC_OK;
}

/* The result of an inout. */
static JAXC_NOINLINE jaxc_status jaxci_batch_inout(jaxci_batch *batch, int32_t k,
                                                   const jaxc_abi_operands *list,
                                                   int64_t index, jaxc_message *message) {
  return jaxci_batch_array(batch, k, list, index, "result",
                           &batch->function->parameters[k], message);
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
JAXC_UNUSED static jaxc_status jaxci_batch_operands(jaxci_batch *batch,
                                                    const jaxc_abi_call_frame *frame,
                                                    jaxc_message *message) {
  const jaxc_function *function = batch->function;
  int64_t argument = 0, result = 0;
  JAXC_TRY(jaxc_call_check(frame, JAXC_STAGE_EXECUTE, function->argument_count,
                           function->result_count, function->attribute_count, message));
  if ((function->flags & JAXC_FUNCTION_EFFECT) != 0) argument = result = 1; /* tokens */
  batch->slot_count = function->parameter_count;
  batch->leading = batch->largest = 0;
  batch->is_computed = batch->needs_block = 0;
  batch->prepares =
      (function->flags & JAXC_FUNCTION_ZERO) != 0 ? JAXCI_PREPARE_ZEROS : 0;
  batch->context = batch->index = -1;
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
    if (parameter->role <= JAXC_ROLE_INOUT) {
      const int is_result = parameter->role == JAXC_ROLE_OUTPUT;
      int32_t slot = k;
      if (parameter->role == JAXC_ROLE_INOUT) {
        slot = batch->source[k] = batch->slot_count++;
        batch->prepares |= JAXCI_PREPARE_COPIES;
      }
      JAXC_TRY(jaxci_batch_array(batch, slot, is_result ? &frame->results : &frame->args,
                                 is_result ? result++ : argument++,
                                 is_result ? "result" : "argument", parameter, message));
      if (slot == k) continue;
      JAXC_TRY(jaxci_batch_inout(batch, k, &frame->results, result++, message));
      continue;
    }
    switch (parameter->role) {
      case JAXC_ROLE_STATIC:
        JAXC_TRY(jaxci_batch_static(batch, k, &frame->attrs, message));
        break;
      case JAXC_ROLE_SCRATCH:
        batch->needs_block = 1;
        break;
      case JAXC_ROLE_CONTEXT:
        batch->needs_block = 1;
        batch->context = k;
        break;
      case JAXC_ROLE_DATA:
        batch->data[k] = (char *)function->data;
        break;
      case JAXC_ROLE_INDEX:
        batch->data[k] = (char *)batch->range;
        if (batch->index < 0) batch->index = k;
        break;
      default: /* a dimension: not asked for, and not uninitialised either */
        batch->data[k] = (char *)batch->statics;
        break;
    }
    batch->shapes[k].rank = batch->core_rank[k] = 0; /* no array: shared by all rows */
  }
  return JAXC_OK;
}

/* Size of a core axis of the array in a slot. */
static inline int64_t jaxci_core_size(const jaxci_batch *batch, int32_t slot,
                                      int32_t axis) {
  const jaxci_shape *view = &batch->shapes[slot];
  return view->dims[view->rank - batch->core_rank[slot] + axis];
}

/* Bytes of the core dimensions of the array in a slot; 0 where there is none. */
static inline long long jaxci_row_bytes(const jaxci_batch *batch, int32_t slot, int32_t dtype) {
  long long bytes = (long long)jaxc_dtype_size(dtype);
  for (int32_t axis = 0; axis < batch->core_rank[slot]; axis++) {
    bytes *= jaxci_core_size(batch, slot, axis); /* call.h has multiplied all sizes */
  }
  return bytes;
}

/* So far from the ends of int64 that differences fit. */
static inline int jaxci_is_near(int64_t value) {
  return value > -((int64_t)1 << 61) && value < ((int64_t)1 << 61);
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
  if (at_one != at_zero && jaxci_is_near(at_zero) && jaxci_is_near(at_one)) {
    value = (size - at_zero) / (at_one - at_zero);
  }
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
JAXC_UNUSED static jaxc_status jaxci_batch_dims(jaxci_batch *batch,
                                                jaxc_message *message) {
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

#ifdef __cplusplus
}
#endif

#endif /* JAXC_SIGNATURE_H */
