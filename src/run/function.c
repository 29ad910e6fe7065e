/* function.c: a call against the description of a function that jaxc built.
 *
 * The handler makes the same checks when it runs. Here they come before, name the C
 * declaration, and give the shapes of the results: dimensions are solved from the core
 * axes of the arguments, leading axes broadcast (jaxc/batch.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "run.h"

#include <jaxc/bound.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const jaxc_function *function;
  const jaxci_request *request;
  const jaxci_array *argument_of[JAXC_MAX_PARAMETERS]; /* NULL where there is none */
  int index_of[JAXC_MAX_PARAMETERS];
  long long dims[JAXC_MAX_DIMS];
  int32_t leading;
  int64_t leading_sizes[JAXCI_MAX_RANK + 1]; /* from the right, which begins at 1 */
  jaxc_message *message;
} solver;

jaxci_text jaxci_parameter_text(const jaxc_parameter *parameter) {
  jaxci_text out = {""};
  jaxci_text_add(&out, "%s[...", jaxc_dtype_name(parameter->dtype));
  for (int32_t axis = 0; axis < parameter->rank; axis++) {
    jaxci_text_add(&out, ", %s", parameter->bounds[axis].text);
  }
  jaxci_text_add(&out, "]");
  return out;
}

/* ---- attributes ---- */

static const char *dim_declaration(const jaxc_function *f, int32_t dim) {
  for (int32_t k = 0; k < f->parameter_count; k++) {
    if (f->parameters[k].role == JAXC_ROLE_DIM && f->parameters[k].dim == dim) {
      return f->parameters[k].declaration;
    }
  }
  return f->dims[dim].name;
}

jaxc_status jaxci_function_expects(const jaxc_function *f, const char *path,
                                   jaxci_expected *out, jaxc_message *message) {
  jaxci_text names = {""};
  out->count = 0;
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    if (p->role != JAXC_ROLE_STATIC) continue;
    out->kind = p->dtype == JAXC_STRING ? JAXC_ABI_ATTR_STRING : JAXC_ABI_ATTR_SCALAR;
    out->dtype = p->dtype;
    out->declaration = p->declaration;
    if (strcmp(p->name, path) == 0) return JAXC_OK;
    jaxci_text_add(&names, "%s%s", names.text[0] == '\0' ? "" : ", ", p->name);
  }
  for (int32_t i = 0; i < f->dim_count; i++) {
    if (!f->dims[i].is_static) continue;
    out->kind = JAXC_ABI_ATTR_SCALAR;
    out->dtype = JAXC_S64;
    out->declaration = dim_declaration(f, i);
    if (strcmp(f->dims[i].name, path) == 0) return JAXC_OK;
    jaxci_text_add(&names, "%s%s", names.text[0] == '\0' ? "" : ", ", f->dims[i].name);
  }
  if (names.text[0] == '\0') jaxci_text_add(&names, "none");
  return JAXC_FAIL(message, JAXC_NOT_FOUND,
                   "--attr: function '%s' has no attribute '%s'; expected of %s", f->name,
                   path, names.text);
}

static jaxc_status fail_missing(const char *name, const char *declaration,
                                jaxc_message *message) {
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "attribute '%s' (%s) is missing; expected --attr %s=VALUE", name,
                   declaration, name);
}

static jaxc_status check_attributes(solver *s) {
  const jaxc_function *const f = s->function;
  const jaxci_attributes *const attributes = &s->request->attributes;
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    if (p->role != JAXC_ROLE_STATIC ||
        jaxci_attributes_find(attributes, p->name) != NULL) {
      continue;
    }
    return fail_missing(p->name, p->declaration, s->message);
  }
  for (int32_t i = 0; i < f->dim_count; i++) {
    const jaxci_attribute *const a = jaxci_attributes_find(attributes, f->dims[i].name);
    int64_t value = -1;
    if (!f->dims[i].is_static) continue;
    if (a == NULL)
      return fail_missing(f->dims[i].name, dim_declaration(f, i), s->message);
    memcpy(&value, a->data, sizeof value);
    s->dims[i] = value;
  }
  return JAXC_OK;
}

/* ---- arguments ---- */

static jaxc_status check_count(const solver *s) {
  jaxci_text names = {""};
  int expected = 0;
  for (int32_t k = 0; k < s->function->parameter_count; k++) {
    const jaxc_parameter *const p = &s->function->parameters[k];
    if (!jaxci_parameter_is_argument(p)) continue;
    jaxci_text_add(&names, "%s'%s' (%s)", expected++ == 0 ? ": " : ", ", p->name,
                   p->declaration);
  }
  if (expected == s->request->argument_count) return JAXC_OK;
  return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                   "--arg: '%s' takes %d argument%s%s; got %d", s->function->name,
                   expected, expected == 1 ? "" : "s", names.text,
                   s->request->argument_count);
}

static jaxc_status check_argument(solver *s, int32_t k, int index) {
  const jaxc_parameter *const p = &s->function->parameters[k];
  const jaxci_array *const a = &s->request->arguments[index];
  const jaxci_text given = jaxci_shape_text(&a->shape);
  int32_t own;
  s->argument_of[k] = a;
  s->index_of[k] = index;
  if (a->shape.dtype != p->dtype || a->shape.rank < p->rank) {
    return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                     "argument %d is '%s' (%s), expected %s, got %s from --arg %s", index,
                     p->name, p->declaration, jaxci_parameter_text(p).text, given.text,
                     a->text);
  }
  own = a->shape.rank - p->rank;
  for (int32_t back = 1; back <= own; back++) {
    const int64_t here = a->shape.dims[own - back];
    int64_t *const size = &s->leading_sizes[back];
    if (back > s->leading) *size = 1;
    if (here != 1 && *size != 1 && here != *size) {
      return JAXC_FAIL(
          s->message, JAXC_INVALID_ARGUMENT,
          "argument %d is '%s' (%s), expected %lld or 1 on leading axis -%d as "
          "in the arguments before it, got %lld of %s from --arg %s",
          index, p->name, p->declaration, (long long)*size, (int)back, (long long)here,
          given.text, a->text);
    }
    if (here != 1) *size = here;
    if (back > s->leading) s->leading = back;
  }
  return JAXC_OK;
}

static int64_t core_size(const solver *s, int32_t k, int32_t axis) {
  const jaxci_shape *const shape = &s->argument_of[k]->shape;
  return shape->dims[shape->rank - s->function->parameters[k].rank + axis];
}

/* The dimension that gives an axis its size, by a bound that is linear in it. */
static jaxc_status solve(solver *s, const jaxc_solve_step *step) {
  const jaxc_parameter *const p = &s->function->parameters[step->parameter];
  const jaxc_bound *const bound = &p->bounds[step->axis];
  const int64_t size = core_size(s, step->parameter, step->axis);
  int64_t at_zero, at_one, value = 0, distance, slope;
  if (bound->dim == step->dim) {
    s->dims[step->dim] = size;
    return JAXC_OK;
  }
  s->dims[step->dim] = 0;
  if (!jaxc_bound_value(bound, s->dims, &at_zero)) at_zero = size;
  s->dims[step->dim] = 1;
  if (!jaxc_bound_value(bound, s->dims, &at_one)) at_one = at_zero;
  if (!__builtin_sub_overflow(at_one, at_zero, &slope) && slope != 0 &&
      !__builtin_sub_overflow(size, at_zero, &distance) &&
      !(distance == INT64_MIN && slope == -1)) {
    value = distance / slope;
  }
  s->dims[step->dim] = value;
  if (jaxc_bound_value(bound, s->dims, &at_zero) && at_zero == size) return JAXC_OK;
  return JAXC_FAIL(
      s->message, JAXC_INVALID_ARGUMENT,
      "argument %d is '%s' (%s), expected %s elements on core axis %d, and no "
      "%s gives the %lld of %s from --arg %s",
      s->index_of[step->parameter], p->name, p->declaration, bound->text, (int)step->axis,
      s->function->dims[step->dim].name, (long long)size,
      jaxci_shape_text(&s->argument_of[step->parameter]->shape).text,
      s->argument_of[step->parameter]->text);
}

static jaxc_status check_dims(const solver *s) {
  for (int32_t i = 0; i < s->function->dim_count; i++) {
    const jaxc_dim *const dim = &s->function->dims[i];
    const long long least = dim->minimum > 0 ? dim->minimum : 0;
    if (s->dims[i] >= least && s->dims[i] <= dim->maximum) continue;
    return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                     "dimension %s (%s) is %lld, expected %lld to %lld", dim->name,
                     dim_declaration(s->function, i), s->dims[i], least,
                     (long long)dim->maximum);
  }
  return JAXC_OK;
}

static jaxc_status bound_size(const solver *s, const jaxc_parameter *p, int32_t axis,
                              int64_t *out) {
  if (jaxc_bound_value(&p->bounds[axis], s->dims, out) && *out >= 0) return JAXC_OK;
  return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                   "'%s' (%s) has no size %s for these dimensions", p->name,
                   p->declaration, p->bounds[axis].text);
}

static jaxc_status check_sizes(const solver *s, int32_t k) {
  const jaxc_parameter *const p = &s->function->parameters[k];
  for (int32_t axis = 0; axis < p->rank; axis++) {
    int64_t expected;
    JAXC_TRY(bound_size(s, p, axis, &expected));
    if (s->argument_of[k] == NULL || core_size(s, k, axis) == expected) continue;
    return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                     "argument %d is '%s' (%s), expected %s = %lld elements on core axis "
                     "%d, got %s from --arg %s",
                     s->index_of[k], p->name, p->declaration, p->bounds[axis].text,
                     (long long)expected, (int)axis,
                     jaxci_shape_text(&s->argument_of[k]->shape).text,
                     s->argument_of[k]->text);
  }
  return JAXC_OK;
}

/* ---- results ---- */

static jaxc_status infer_result(const solver *s, const jaxc_parameter *p,
                                jaxci_shape *out) {
  int64_t count;
  memset(out, 0, sizeof *out);
  out->dtype = p->dtype;
  if (s->leading + p->rank > JAXCI_MAX_RANK) {
    return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                     "'%s' (%s) would have %d axes, expected at most %d", p->name,
                     p->declaration, (int)(s->leading + p->rank), JAXCI_MAX_RANK);
  }
  for (int32_t back = s->leading; back >= 1; back--) {
    out->dims[out->rank++] = s->leading_sizes[back];
  }
  for (int32_t axis = 0; axis < p->rank; axis++) {
    JAXC_TRY(bound_size(s, p, axis, &out->dims[out->rank++]));
  }
  if (jaxci_shape_count(out, &count)) return JAXC_OK;
  return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                   "'%s' (%s) would have more bytes than an int64 counts", p->name,
                   p->declaration);
}

static int is_same_shape(const jaxci_shape *a, const jaxci_shape *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static jaxc_status take_results(const solver *s, jaxci_request *request) {
  const jaxc_function *const f = s->function;
  int count = 0;
  jaxci_shape *results;
  for (int32_t k = 0; k < f->parameter_count; k++) {
    count += jaxci_parameter_is_result(&f->parameters[k]);
  }
  if (request->results_are_given && request->result_count != count) {
    return JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                     "--result: '%s' has %d result%s (%s); got %d", f->name, count,
                     count == 1 ? "" : "s", f->prototype, request->result_count);
  }
  results = calloc((size_t)count + 1, sizeof *results);
  if (results == NULL) return JAXC_FAIL(s->message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  count = 0;
  for (int32_t k = 0; k < f->parameter_count; k++) {
    const jaxc_parameter *const p = &f->parameters[k];
    jaxc_status status;
    if (!jaxci_parameter_is_result(p)) continue;
    status = infer_result(s, p, &results[count]);
    if (status == JAXC_OK && request->results_are_given &&
        !is_same_shape(&results[count], &request->results[count])) {
      status = JAXC_FAIL(s->message, JAXC_INVALID_ARGUMENT,
                         "--result: result %d is '%s' (%s), expected %s, got %s", count,
                         p->name, p->declaration, jaxci_shape_text(&results[count]).text,
                         jaxci_shape_text(&request->results[count]).text);
    }
    if (status != JAXC_OK) {
      free(results);
      return status;
    }
    count++;
  }
  free(request->results);
  request->results = results;
  request->result_count = count;
  return JAXC_OK;
}

jaxc_status jaxci_function_check(const jaxc_function *function, jaxci_request *request,
                                 jaxc_message *message) {
  solver s;
  int index = 0;
  memset(&s, 0, sizeof s);
  s.function = function;
  s.request = request;
  s.message = message;
  JAXC_TRY(check_count(&s));
  JAXC_TRY(check_attributes(&s));
  for (int32_t k = 0; k < function->parameter_count; k++) {
    if (!jaxci_parameter_is_argument(&function->parameters[k])) continue;
    JAXC_TRY(check_argument(&s, k, index++));
  }
  for (int32_t i = 0; i < function->solve_count; i++) {
    JAXC_TRY(solve(&s, &function->solve[i]));
  }
  JAXC_TRY(check_dims(&s));
  for (int32_t k = 0; k < function->parameter_count; k++) {
    const int32_t role = function->parameters[k].role;
    if (role == JAXC_ROLE_STATIC || role == JAXC_ROLE_DIM || role == JAXC_ROLE_INDEX) {
      continue; /* a range may be below 0, and the handler looks at it itself */
    }
    JAXC_TRY(check_sizes(&s, k));
  }
  return take_results(&s, request);
}
