/* compose.c: see compose.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "compose.h"

#include <stdlib.h>
#include <string.h>

/* One allocation that is kept by `function` when all goes well, and freed otherwise. */
typedef struct block {
  struct block *next;
} block;

typedef struct {
  block *blocks;
} arena;

static void *arena_take(arena *a, size_t count, size_t size) {
  block *b;
  if (size != 0 && count > (SIZE_MAX - sizeof *b) / size) b = NULL;
  else b = (block *)calloc(1, sizeof *b + count * size);
  if (b == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  b->next = a->blocks;
  a->blocks = b;
  return b + 1;
}

static void arena_free(arena *a) {
  while (a->blocks != NULL) {
    block *const next = a->blocks->next;
    free(a->blocks);
    a->blocks = next;
  }
}

static const char *copy_text(arena *a, PyObject *text) {
  Py_ssize_t length;
  const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
  char *out;
  if (utf8 == NULL) return NULL;
  out = (char *)arena_take(a, (size_t)length + 1, 1);
  if (out != NULL) memcpy(out, utf8, (size_t)length);
  return out;
}

/* The tuple at `index` of a tuple of `size`, as a borrowed reference. */
static PyObject *sub_tuple(PyObject *tuple, Py_ssize_t index) {
  PyObject *item;
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "a description is made of tuples");
    return NULL;
  }
  item = PyTuple_GetItem(tuple, index);
  if (item != NULL && !PyTuple_Check(item)) {
    PyErr_SetString(PyExc_TypeError, "a description is made of tuples");
    return NULL;
  }
  return item;
}

static int fill_bound(arena *a, PyObject *record, int32_t dim_count, jaxc_bound *out) {
  PyObject *text, *steps;
  Py_ssize_t count;
  jaxc_bound_step *places;
  if (!PyArg_ParseTuple(record, "UO!", &text, &PyTuple_Type, &steps)) return -1;
  count = PyTuple_Size(steps);
  places = (jaxc_bound_step *)arena_take(a, (size_t)count, sizeof *places);
  out->text = copy_text(a, text);
  if (places == NULL || out->text == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *step = sub_tuple(steps, i);
    long long code, argument;
    if (step == NULL || !PyArg_ParseTuple(step, "LL", &code, &argument)) return -1;
    if (code == JAXC_BOUND_DIM && (argument < 0 || argument >= dim_count)) {
      PyErr_Format(PyExc_ValueError, "a bound has dimension %lld of %d", argument,
                   (int)dim_count);
      return -1;
    }
    places[i].code = code;
    places[i].argument = argument;
  }
  out->steps = places;
  out->step_count = (int32_t)count;
  out->dim = count == 1 && places[0].code == JAXC_BOUND_DIM ? (int32_t)places[0].argument : -1;
  return 0;
}

static int fill_parameter(arena *a, PyObject *record, int32_t dim_count,
                          jaxc_parameter *out) {
  PyObject *name, *declaration, *bounds;
  jaxc_bound *places;
  Py_ssize_t rank;
  int role, dtype, dim;
  unsigned int flags;
  if (!PyArg_ParseTuple(record, "UUiiO!iI", &name, &declaration, &role, &dtype,
                        &PyTuple_Type, &bounds, &dim, &flags)) {
    return -1;
  }
  rank = PyTuple_Size(bounds);
  places = (jaxc_bound *)arena_take(a, (size_t)rank, sizeof *places);
  out->name = copy_text(a, name);
  out->declaration = copy_text(a, declaration);
  if (places == NULL || out->name == NULL || out->declaration == NULL) return -1;
  for (Py_ssize_t i = 0; i < rank; i++) {
    PyObject *bound = sub_tuple(bounds, i);
    if (bound == NULL || fill_bound(a, bound, dim_count, &places[i]) != 0) return -1;
  }
  out->role = role;
  out->dtype = dtype;
  out->rank = (int32_t)rank;
  out->dim = dim;
  out->bounds = places;
  out->flags = flags;
  return 0;
}

static int fill_dims(arena *a, PyObject *records, jaxc_function *out) {
  const Py_ssize_t count = PyTuple_Size(records);
  jaxc_dim *dims = (jaxc_dim *)arena_take(a, (size_t)count, sizeof *dims);
  if (dims == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *record = sub_tuple(records, i);
    PyObject *name;
    long long minimum, maximum;
    int is_static;
    if (record == NULL ||
        !PyArg_ParseTuple(record, "ULLp", &name, &minimum, &maximum, &is_static)) {
      return -1;
    }
    dims[i].name = copy_text(a, name);
    if (dims[i].name == NULL) return -1;
    dims[i].minimum = minimum;
    dims[i].maximum = maximum;
    dims[i].is_static = is_static;
  }
  out->dims = dims;
  out->dim_count = (int32_t)count;
  return 0;
}

static int fill_solve(arena *a, PyObject *records, jaxc_function *out) {
  const Py_ssize_t count = PyTuple_Size(records);
  jaxc_solve_step *steps = (jaxc_solve_step *)arena_take(a, (size_t)count, sizeof *steps);
  if (steps == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *record = sub_tuple(records, i);
    int dim, parameter, axis;
    if (record == NULL || !PyArg_ParseTuple(record, "iii", &dim, &parameter, &axis)) {
      return -1;
    }
    if (dim < 0 || dim >= out->dim_count || parameter < 0 ||
        parameter >= out->parameter_count || axis < 0 ||
        axis >= out->parameters[parameter].rank) {
      PyErr_SetString(PyExc_ValueError, "a solve step is outside of the description");
      return -1;
    }
    steps[i].dim = dim;
    steps[i].parameter = parameter;
    steps[i].axis = axis;
  }
  out->solve = steps;
  out->solve_count = (int32_t)count;
  return 0;
}

static int fill_function(arena *a, PyObject *record, jaxc_function *out) {
  PyObject *name, *parameters, *dims, *solve;
  jaxc_parameter *places;
  Py_ssize_t count;
  unsigned int flags;
  int arguments, results, attributes;
  if (!PyArg_ParseTuple(record, "UIO!O!O!(iii)", &name, &flags, &PyTuple_Type, &parameters,
                        &PyTuple_Type, &dims, &PyTuple_Type, &solve, &arguments, &results,
                        &attributes)) {
    return -1;
  }
  count = PyTuple_Size(parameters);
  if (count > JAXC_MAX_PARAMETERS || PyTuple_Size(dims) > JAXC_MAX_DIMS) {
    PyErr_Format(PyExc_ValueError,
                 "%U: has %zd parameters and %zd dimensions, at most %d and %d are possible",
                 name, count, PyTuple_Size(dims), JAXC_MAX_PARAMETERS, JAXC_MAX_DIMS);
    return -1;
  }
  out->struct_size = sizeof *out;
  out->name = copy_text(a, name);
  if (out->name == NULL || fill_dims(a, dims, out) != 0) return -1;
  places = (jaxc_parameter *)arena_take(a, (size_t)count, sizeof *places);
  if (places == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *parameter = sub_tuple(parameters, i);
    if (parameter == NULL ||
        fill_parameter(a, parameter, out->dim_count, &places[i]) != 0) {
      return -1;
    }
  }
  out->parameters = places;
  out->parameter_count = (int32_t)count;
  out->prototype = "";
  out->file = "";
  out->flags = flags;
  out->argument_count = arguments;
  out->result_count = results;
  out->attribute_count = attributes;
  return fill_solve(a, solve, out);
}

int jaxci_compose(PyObject *record, jaxc_function *out) {
  arena a = {NULL};
  memset(out, 0, sizeof *out);
  if (!PyTuple_Check(record)) {
    PyErr_SetString(PyExc_TypeError, "a description is a tuple");
    return -1;
  }
  if (fill_function(&a, record, out) == 0) return 0;
  arena_free(&a);
  return -1;
}
