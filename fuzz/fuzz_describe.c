/* fuzz_describe.c: bounds, and descriptions of functions with any roles, ranks, bounds
 * and solve steps, called with any frames through batch.h.
 *
 * What must hold: a bound has the value of exact arithmetic, or none where a step leaves
 * int64; when the kernel is called, the dimensions are in the range of their C types and
 * every array has the sizes that its bounds give for them; an error begins with the
 * function's name.
 *
 * A description is its author's, so its numbers (of dimensions, parameters and axes) are
 * those that exist; its arithmetic is as a C file may have it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>

static void *small_malloc(size_t size) { return size > 1 << 20 ? NULL : malloc(size); }
#define malloc small_malloc
#include <jaxc/batch.h>
#undef malloc

#include "wild_frame.h"

#define MAX_PARAMETERS 6
#define MAX_RANK 3
#define MAX_STEPS 12
#define MAX_CALLS 1000

__extension__ typedef __int128 exact;

static jaxc_function function;
static jaxc_dim dims[4];
static jaxc_parameter parameters[MAX_PARAMETERS];
static jaxc_solve_step solve[4];
static const jaxc_abi_call_frame *current;
static int calls;

/* ---- a bound's exact value ---- */

/* 1 with the value, 0 where there is none: a step is beyond int64. -1 with the value
 * where a step is -2^63, which bound.h may refuse. */
static int evaluate(const jaxc_bound *bound, const long long *values, int64_t *out) {
  exact stack[JAXC_MAX_BOUND_DEPTH];
  int32_t depth = 0;
  int known = 1;
  for (int32_t i = 0; i < bound->step_count; i++) {
    const jaxc_bound_step step = bound->steps[i];
    exact result;
    if (step.code <= JAXC_BOUND_DIM && step.code >= 0) {
      if (depth == JAXC_MAX_BOUND_DEPTH) return 0;
      result = step.code == JAXC_BOUND_DIM ? values[step.argument] : step.argument;
    } else {
      exact a, b;
      if (depth < 2) return 0;
      b = stack[--depth];
      a = stack[--depth];
      switch (step.code) {
        case JAXC_BOUND_ADD: result = a + b; break;
        case JAXC_BOUND_SUBTRACT: result = a - b; break;
        case JAXC_BOUND_MULTIPLY: result = a * b; break;
        case JAXC_BOUND_DIVIDE:
          if (b == 0) return 0;
          result = a / b;
          break;
        default: return 0;
      }
    }
    if (result > INT64_MAX || result < INT64_MIN) return 0;
    if (result == INT64_MIN) known = -1;
    stack[depth++] = result;
  }
  if (depth != 1) return 0;
  *out = (int64_t)stack[0];
  return known;
}

static void check_bound(const jaxc_bound *bound, const long long *values) {
  int64_t expected = 0, actual = 0;
  const int known = evaluate(bound, values, &expected);
  const int works = jaxc_bound_value(bound, values, &actual);
  if (known >= 0) FUZZ_CHECK(works == known);
  if (works) FUZZ_CHECK(known != 0 && actual == expected);
}

/* ---- a description ---- */

static int64_t make_constant(fuzz_input *in) {
  return fuzz_chance(in, 8) ? fuzz_wide(in) : fuzz_between(in, 0, 5);
}

/* A program that leaves one value, unless `is_broken`. */
static jaxc_bound make_bound(fuzz_input *in, int32_t dim_count, int is_broken) {
  jaxc_bound_step *const steps = fuzz_new(in, MAX_STEPS * sizeof *steps);
  jaxc_bound bound = {"a bound", steps, 0, -1};
  int32_t depth = 0;
  if (dim_count > 0 && !is_broken && !fuzz_chance(in, 2)) {
    bound.dim = (int32_t)fuzz_between(in, 0, dim_count - 1);
    steps[0].code = JAXC_BOUND_DIM;
    steps[0].argument = bound.dim;
    bound.step_count = 1;
    return bound;
  }
  while (bound.step_count < MAX_STEPS) {
    const int32_t left = MAX_STEPS - bound.step_count;
    const uint8_t byte = fuzz_byte(in);
    jaxc_bound_step *const step = &steps[bound.step_count];
    if (is_broken) {
      step->code = fuzz_chance(in, 16) ? fuzz_wide(in) : byte % 6;
    } else if (depth >= 2 && (byte >= 128 || depth >= left)) {
      step->code = JAXC_BOUND_ADD + byte % 4;
    } else if (depth == 1 && (byte >= 128 || left < 3)) {
      break;
    } else {
      step->code = byte % 2;
    }
    if (dim_count == 0 && step->code == JAXC_BOUND_DIM) step->code = JAXC_BOUND_CONSTANT;
    step->argument = step->code == JAXC_BOUND_DIM ? fuzz_between(in, 0, dim_count - 1)
                                                  : make_constant(in);
    depth += step->code <= JAXC_BOUND_DIM ? 1 : -1;
    bound.step_count++;
  }
  return bound;
}

static void make_dims(fuzz_input *in, int32_t count) {
  static const char *const names[] = {"n", "m", "k", "l"};
  for (int32_t i = 0; i < count; i++) {
    const int is_wide = fuzz_chance(in, 2);
    dims[i].name = names[i];
    dims[i].is_static = fuzz_chance(in, 4);
    dims[i].minimum = is_wide ? INT64_MIN : fuzz_between(in, -128, 3);
    dims[i].maximum = is_wide ? INT64_MAX : 127;
    if (dims[i].is_static) function.attribute_count++;
  }
}

static void make_parameter(fuzz_input *in, jaxc_parameter *parameter) {
  static const int32_t dtypes[] = {JAXC_F32, JAXC_PRED, JAXC_S64, JAXC_C128, JAXC_U64};
  jaxc_bound *const bounds = fuzz_new(in, MAX_RANK * sizeof *bounds);
  uint8_t choice;
  parameter->name = "p";
  parameter->declaration = "float p[n]";
  parameter->role = (int32_t)fuzz_between(in, JAXC_ROLE_INPUT, JAXC_ROLE_STATIC);
  choice = fuzz_byte(in);
  parameter->dtype = dtypes[choice % 5];
  if (choice >= 224) parameter->role = JAXC_ROLE_INDEX;
  if (choice % 64 == 63) {
    parameter->flags = JAXC_PARAMETER_ZERO;
    function.flags |= JAXC_FUNCTION_ZERO;
  } else {
    parameter->flags = 0;
  }
  parameter->rank = parameter->role == JAXC_ROLE_STATIC
                        ? 0
                        : (int32_t)fuzz_between(in, 0, MAX_RANK);
  parameter->dim = -1;
  parameter->bounds = bounds;
  for (int32_t i = 0; i < parameter->rank; i++) {
    bounds[i] = make_bound(in, function.dim_count, 0);
  }
  if (parameter->role == JAXC_ROLE_STATIC) {
    if (fuzz_chance(in, 4)) parameter->dtype = JAXC_STRING;
    function.attribute_count++;
  }
  if (parameter->role == JAXC_ROLE_INPUT || parameter->role == JAXC_ROLE_INOUT) {
    function.argument_count++;
  }
  if (parameter->role == JAXC_ROLE_OUTPUT || parameter->role == JAXC_ROLE_INOUT) {
    function.result_count++;
  }
}

/* Steps from axes that exist; whether they help is left to chance. */
static void make_solve(fuzz_input *in) {
  for (int64_t tries = fuzz_between(in, 0, 4); tries > 0; tries--) {
    jaxc_solve_step *const step = &solve[function.solve_count];
    const int32_t k = (int32_t)fuzz_byte(in) % function.parameter_count;
    if (function.dim_count == 0 || parameters[k].rank == 0) continue;
    if (parameters[k].role != JAXC_ROLE_INPUT && parameters[k].role != JAXC_ROLE_INOUT) {
      continue;
    }
    step->dim = (int32_t)fuzz_between(in, 0, function.dim_count - 1);
    step->parameter = k;
    step->axis = (int32_t)fuzz_between(in, 0, parameters[k].rank - 1);
    function.solve_count++;
  }
}

/* ---- the kernel ---- */

/* The sizes of an array that batch.h has accepted. */
static void check_array(const jaxc_parameter *parameter, const jaxc_abi_buffer *buffer,
                        const long long *values) {
  FUZZ_CHECK(buffer->dtype == parameter->dtype && buffer->rank >= parameter->rank);
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    int64_t expected = 0;
    FUZZ_CHECK(evaluate(&parameter->bounds[axis], values, &expected) != 0);
    FUZZ_CHECK(buffer->dims[buffer->rank - parameter->rank + axis] == expected);
  }
}

static int rows(const long long *values, char *const *data, const long long *strides,
                long long count, jaxc_fault *fault) {
  const int has_token = (function.flags & JAXC_FUNCTION_EFFECT) != 0;
  int64_t argument = has_token, result = has_token;
  FUZZ_CHECK(count > 0 && strides != NULL);
  for (int32_t i = 0; i < function.dim_count; i++) {
    FUZZ_CHECK(values[i] >= 0 && values[i] >= dims[i].minimum);
    FUZZ_CHECK(values[i] <= dims[i].maximum);
  }
  for (int32_t k = 0; k < function.parameter_count; k++) {
    const jaxc_parameter *const p = &parameters[k];
    FUZZ_CHECK(data[k] != NULL);
    if (p->role == JAXC_ROLE_INDEX) {
      int64_t size = 0;
      long long range[2];
      memcpy(range, data[k], sizeof range);
      FUZZ_CHECK(p->rank == 1 && evaluate(&p->bounds[0], values, &size) != 0);
      FUZZ_CHECK(range[0] >= 0 && range[0] <= range[1]);
      FUZZ_CHECK(size > 0 || range[1] == 0);
    }
    if (p->role == JAXC_ROLE_INPUT || p->role == JAXC_ROLE_INOUT) {
      check_array(p, current->args.data[argument++], values);
    }
    if (p->role == JAXC_ROLE_OUTPUT || p->role == JAXC_ROLE_INOUT) {
      check_array(p, current->results.data[result++], values);
    }
  }
  if (++calls < MAX_CALLS) return 0;
  fault->text = "enough";
  return 1;
}

/* ---- a frame for it ---- */

/* An array with the sizes that the bounds give for `values`, behind a few leading ones,
 * or a wild one. Its memory is that of its bytes: inouts are copied. */
static jaxc_abi_buffer *make_array(fuzz_input *in, const jaxc_parameter *parameter,
                                   const long long *values) {
  jaxc_abi_buffer *buffer;
  int64_t leading, product = 1;
  if (fuzz_chance(in, 16)) return wild_buffer(in, parameter->dtype, parameter->rank);
  buffer = fuzz_new(in, sizeof *buffer);
  leading = fuzz_chance(in, 4) ? fuzz_between(in, 0, 40) : fuzz_between(in, 0, 2);
  buffer->struct_size = sizeof *buffer;
  buffer->dtype = parameter->dtype;
  buffer->rank = leading + parameter->rank;
  buffer->dims = fuzz_new(in, (size_t)buffer->rank * sizeof *buffer->dims);
  for (int64_t i = 0; i < leading; i++) {
    buffer->dims[i] = leading > 4 ? 1 : fuzz_between(in, 0, 3);
    if (fuzz_chance(in, 8)) buffer->dims[i] = fuzz_wide(in);
  }
  for (int32_t i = 0; i < parameter->rank; i++) {
    (void)evaluate(&parameter->bounds[i], values, &buffer->dims[leading + i]);
  }
  for (int64_t i = 0; i < buffer->rank; i++) {
    if (buffer->dims[i] == 0) product = 0;
  }
  buffer->data =
      fuzz_new(in, wild_bytes(buffer->dtype, buffer->rank, buffer->dims));
  /* Larger arrays that are not empty cannot be had: none of them comes with data. */
  if (product != 0 && wild_bytes(buffer->dtype, buffer->rank, buffer->dims) == 0) {
    buffer->data = NULL;
  }
  return buffer;
}

static void add_array(fuzz_input *in, jaxc_abi_operands *list, const jaxc_parameter *p,
                      const long long *values) {
  list->types[list->size] = JAXC_ABI_BUFFER;
  list->data[list->size++] = make_array(in, p, values);
}

static void begin_list(fuzz_input *in, jaxc_abi_operands *list) {
  list->struct_size = sizeof *list;
  list->types = fuzz_new(in, 8 * sizeof *list->types);
  list->data = fuzz_new(in, 8 * sizeof *list->data);
  if ((function.flags & JAXC_FUNCTION_EFFECT) == 0) return;
  list->types[0] = JAXC_ABI_BUFFER;
  list->data[0] = wild_buffer(in, JAXC_TOKEN, 0);
  list->size = 1;
}

static void make_attributes(fuzz_input *in, jaxc_abi_attrs *out) {
  jaxc_field fields[MAX_PARAMETERS + 4];
  int32_t count = 0;
  memset(fields, 0, sizeof fields);
  for (int32_t i = 0; i < function.dim_count; i++) {
    if (!dims[i].is_static) continue;
    fields[count].name = dims[i].name;
    fields[count].kind = JAXC_FIELD_ATTRIBUTE;
    fields[count++].dtype = JAXC_S64;
  }
  for (int32_t k = 0; k < function.parameter_count; k++) {
    if (parameters[k].role != JAXC_ROLE_STATIC) continue;
    fields[count].name = parameters[k].name;
    fields[count].kind = JAXC_FIELD_ATTRIBUTE;
    fields[count++].dtype =
        parameters[k].dtype == JAXC_U64 ? JAXC_S64 : parameters[k].dtype;
  }
  wild_attrs(in, fields, count, out);
}

static void call_function(fuzz_input *in) {
  jaxc_abi_call_frame *const frame = fuzz_new(in, sizeof *frame);
  long long values[4];
  fuzz_runtime_begin(in);
  frame->struct_size = JAXC_ABI_FRAME_SIZE;
  frame->api = fuzz_runtime.api;
  frame->stage = fuzz_chance(in, 32) ? (int32_t)fuzz_between(in, 0, 5) : 3;
  for (int i = 0; i < 4; i++) {
    values[i] = fuzz_chance(in, 8) ? fuzz_wide(in) : fuzz_between(in, 0, 4);
  }
  begin_list(in, &frame->args);
  begin_list(in, &frame->results);
  for (int32_t k = 0; k < function.parameter_count; k++) {
    const int32_t role = parameters[k].role;
    if (role == JAXC_ROLE_INPUT || role == JAXC_ROLE_INOUT) {
      add_array(in, &frame->args, &parameters[k], values);
    }
    if (role == JAXC_ROLE_OUTPUT || role == JAXC_ROLE_INOUT) {
      add_array(in, &frame->results, &parameters[k], values);
    }
  }
  make_attributes(in, &frame->attrs);
  current = frame;
  calls = 0;
  fuzz_runtime_end(jaxc_batch_handle(frame, &function), function.name, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input in = {data, size, 0, NULL};
  memset(&function, 0, sizeof function);
  function.struct_size = sizeof function;
  function.name = "described";
  function.flags = fuzz_chance(&in, 4) ? JAXC_FUNCTION_EFFECT : 0;
  function.argument_count = function.result_count = function.flags != 0;
  function.dim_count = (int32_t)fuzz_between(&in, 0, 4);
  function.parameter_count = (int32_t)fuzz_between(&in, 1, MAX_PARAMETERS);
  function.dims = dims;
  function.parameters = parameters;
  function.solve = solve;
  function.rows = rows;
  make_dims(&in, function.dim_count);
  for (int32_t k = 0; k < function.parameter_count; k++)
    make_parameter(&in, &parameters[k]);
  make_solve(&in);
  {
    const long long values[4] = {fuzz_wide(&in), fuzz_wide(&in), fuzz_wide(&in), 3};
    const jaxc_bound bounds[2] = {make_bound(&in, 4, 0), make_bound(&in, 4, 1)};
    check_bound(&bounds[0], values);
    check_bound(&bounds[1], values);
  }
  call_function(&in);
  fuzz_end(&in);
  return 0;
}
