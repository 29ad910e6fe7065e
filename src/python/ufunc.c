/* ufunc.c: see ufunc.h.
 *
 * An inner loop is C: loop(addresses, {rows, core sizes}, {steps from row to row, steps
 * along core axes}, its own data). It runs without the interpreter, as NumPy itself runs
 * it, except that one of numba may raise an exception.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define JAXCI_NUMPY_HERE
#include "numpy_api.h"

#include "ufunc.h"

#include <jaxc/attrs.h>
#include <stdlib.h>
#include <string.h>

#include "adopted.h"
#include "interpreter.h"

int jaxci_numpy_ready(void) {
  if (jaxci_array_api != NULL && jaxci_ufunc_api != NULL) return 0;
  if (_import_array() < 0 || _import_umath() < 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "NumPy's C API is missing");
    return -1;
  }
  return 0;
}

typedef struct {
  jaxci_adopted base;
  PyUFuncGenericFunction loop;
  void *data;
  int may_raise;
  int operand_count;
  int size_count;                        /* distinct core dimensions of the ufunc */
  int32_t size_dim[JAXC_MAX_DIMS];       /* dimension of the description, or -1 */
  npy_intp fixed[JAXC_MAX_DIMS];         /* else its fixed size */
  int core_rank[JAXC_MAX_PARAMETERS];    /* of each operand */
  int core_size[JAXC_MAX_PARAMETERS][8]; /* core dimension of each of its axes */
} ufunc_adopted;

static void run_loop(const ufunc_adopted *self, const long long *dims, char *const *data,
                     const long long *strides, long long count) {
  char *args[JAXC_MAX_PARAMETERS];
  npy_intp sizes[1 + JAXC_MAX_DIMS];
  npy_intp steps[JAXC_MAX_PARAMETERS * 9];
  int next = self->operand_count;
  sizes[0] = (npy_intp)count;
  for (int i = 0; i < self->size_count; i++) {
    sizes[1 + i] =
        self->size_dim[i] >= 0 ? (npy_intp)dims[self->size_dim[i]] : self->fixed[i];
  }
  for (int k = 0; k < self->operand_count; k++) { /* parameter 0 is the function's data */
    npy_intp step = (npy_intp)jaxc_dtype_size(self->base.function.parameters[k + 1].dtype);
    args[k] = data[k + 1];
    steps[k] = (npy_intp)strides[k + 1];
    for (int axis = self->core_rank[k]; axis-- > 0;) {
      steps[next + axis] = step;
      step *= sizes[1 + self->core_size[k][axis]];
    }
    next += self->core_rank[k];
  }
  self->loop(args, sizes, steps, self->data);
}

static int ufunc_rows(const long long *dims, char *const *data, const long long *strides,
                      long long count, jaxc_fault *fault) {
  jaxci_adopted_call *const call = (jaxci_adopted_call *)(void *)data[0];
  const ufunc_adopted *const self = (const ufunc_adopted *)(const void *)call->self;
  char text[512];
  jaxci_held held;
  if (!self->may_raise && PyGILState_GetThisThreadState() == NULL) {
    run_loop(self, dims, data, strides, count);
    return 0;
  }
  /* A loop that raises an exception takes the interpreter's lock for it, and leaves it to
   * the thread's state: one of Python's own threads must not keep it, and in another thread
   * it would be gone with the state that the loop had made. */
  if (!jaxci_interpreter_take(&held)) {
    jaxci_adopted_fail(call, fault, -1, JAXCI_NO_INTERPRETER);
    return 1;
  }
  Py_BEGIN_ALLOW_THREADS
  run_loop(self, dims, data, strides, count);
  Py_END_ALLOW_THREADS
  if (PyErr_Occurred()) {
    jaxci_exception_text(text, sizeof text);
    jaxci_interpreter_give(&held);
    jaxci_adopted_fail(call, fault, -1, text);
    return 1;
  }
  jaxci_interpreter_give(&held);
  return 0;
}

/* A ufunc as this binary knows its struct: what Python says of it must agree. */
static PyUFuncObject *ufunc_fields(PyObject *object) {
  PyUFuncObject *u;
  PyObject *nin, *ntypes;
  int agree;
  if (!PyObject_TypeCheck(object, &PyUFunc_Type)) {
    PyErr_Format(PyExc_TypeError, "expected a numpy.ufunc, got %R", object);
    return NULL;
  }
  u = (PyUFuncObject *)(void *)object;
  nin = PyObject_GetAttrString(object, "nin");
  ntypes = nin != NULL ? PyObject_GetAttrString(object, "ntypes") : NULL;
  agree = ntypes != NULL && PyLong_AsLong(nin) == u->nin &&
          PyLong_AsLong(ntypes) == u->ntypes && u->nargs == u->nin + u->nout;
  Py_XDECREF(nin);
  Py_XDECREF(ntypes);
  if (agree) return u;
  if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, "this NumPy lays out a ufunc in another way");
  }
  return NULL;
}

PyObject *jaxci_ufunc_loops(PyObject *module, PyObject *ufunc) {
  PyUFuncObject *u;
  PyObject *out, *cores;
  int computes, writes = 0;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  u = ufunc_fields(ufunc);
  if (u == NULL) return NULL;
  out = PyTuple_New(u->ntypes);
  for (int i = 0; out != NULL && i < u->ntypes; i++) {
    PyObject *types = PyTuple_New(u->nargs);
    for (int k = 0; types != NULL && k < u->nargs; k++) {
      PyObject *number = PyLong_FromLong(u->types[i * u->nargs + k]);
      if (number == NULL || PyTuple_SetItem(types, k, number) != 0) Py_CLEAR(types);
    }
    if (types == NULL || PyTuple_SetItem(out, i, types) != 0) Py_CLEAR(out);
  }
  cores = out != NULL ? PyTuple_New(u->nargs) : NULL;
  for (int k = 0; cores != NULL && k < u->nargs; k++) {
    const int rank = u->core_enabled ? u->core_num_dims[k] : 0;
    PyObject *axes = PyTuple_New(rank);
    for (int axis = 0; axes != NULL && axis < rank; axis++) {
      PyObject *number = PyLong_FromLong(u->core_dim_ixs[u->core_offsets[k] + axis]);
      if (number == NULL || PyTuple_SetItem(axes, axis, number) != 0) Py_CLEAR(axes);
    }
    if (axes == NULL || PyTuple_SetItem(cores, k, axes) != 0) Py_CLEAR(cores);
  }
  if (cores == NULL) {
    Py_XDECREF(out);
    return NULL;
  }
  for (int k = 0; k < u->nin; k++) {
    writes |= (u->op_flags[k] & (NPY_ITER_READWRITE | NPY_ITER_WRITEONLY)) != 0;
  }
  computes = u->core_enabled && u->process_core_dims_func != NULL;
  return Py_BuildValue("(NNOO)", out, cores, computes ? Py_True : Py_False,
                       writes ? Py_True : Py_False);
}

static int fill_sizes(ufunc_adopted *self, const PyUFuncObject *u, PyObject *sizes) {
  self->size_count = (int)PyTuple_Size(sizes);
  if (self->size_count > JAXC_MAX_DIMS ||
      self->size_count != (u->core_enabled ? u->core_num_dim_ix : 0)) {
    PyErr_SetString(PyExc_ValueError, "a size for each core dimension is needed");
    return -1;
  }
  for (int i = 0; i < self->size_count; i++) {
    long long dim, fixed;
    PyObject *pair = PyTuple_GetItem(sizes, i);
    if (!PyTuple_Check(pair) || !PyArg_ParseTuple(pair, "LL", &dim, &fixed)) return -1;
    if (dim >= self->base.function.dim_count) {
      PyErr_SetString(PyExc_ValueError, "a core dimension is outside of the description");
      return -1;
    }
    self->size_dim[i] = dim < 0 ? -1 : (int32_t)dim;
    self->fixed[i] = (npy_intp)fixed;
  }
  for (int k = 0; k < u->nargs; k++) {
    self->core_rank[k] = u->core_enabled ? u->core_num_dims[k] : 0;
    if (self->core_rank[k] != self->base.function.parameters[k + 1].rank ||
        self->core_rank[k] > (int)(sizeof self->core_size[k] / sizeof self->core_size[k][0])) {
      PyErr_SetString(PyExc_ValueError, "the description has other core axes");
      return -1;
    }
    for (int axis = 0; axis < self->core_rank[k]; axis++) {
      self->core_size[k][axis] = u->core_dim_ixs[u->core_offsets[k] + axis];
    }
  }
  return 0;
}

PyObject *jaxci_adopt_ufunc(PyObject *module, PyObject *args) {
  PyObject *record, *ufunc, *owner, *sizes;
  PyUFuncObject *u;
  ufunc_adopted *self;
  int loop, may_raise;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  if (!PyArg_ParseTuple(args, "O!OOiO!p", &PyTuple_Type, &record, &ufunc, &owner, &loop,
                        &PyTuple_Type, &sizes, &may_raise)) {
    return NULL;
  }
  u = ufunc_fields(ufunc);
  if (u == NULL) return NULL;
  if (loop < 0 || loop >= u->ntypes || u->functions == NULL || u->functions[loop] == NULL) {
    return PyErr_Format(PyExc_ValueError, "the ufunc has no inner loop %d", loop);
  }
  self = (ufunc_adopted *)jaxci_adopted_create(sizeof *self, record);
  if (self == NULL) return NULL;
  if (self->base.function.parameter_count != u->nargs + 1 ||
      self->base.function.parameters[0].role != JAXC_ROLE_DATA) {
    PyErr_SetString(PyExc_ValueError, "the description is of another function");
    free(self);
    return NULL;
  }
  if (fill_sizes(self, u, sizes) != 0) {
    free(self);
    return NULL;
  }
  self->loop = u->functions[loop];
  self->data = u->data != NULL ? u->data[loop] : NULL;
  self->operand_count = u->nargs;
  self->may_raise = may_raise;
  self->base.function.rows = ufunc_rows;
  Py_INCREF(ufunc); /* loop and data belong to it, or to the object that made it */
  Py_INCREF(owner);
  return jaxci_adopted_publish(&self->base);
}
