/* gufunc.c: see gufunc.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gufunc.h"

#include <stdlib.h>

#include "gufunc_loop.h"

static void group_free(jaxci_gufunc_group *g) {
  if (g == NULL) return;
  free(g->members);
  free(g->loops);
  free(g->data);
  free(g->types);
  Py_XDECREF(g->keep);
  free(g);
}

static void group_end(PyObject *capsule) {
  group_free((jaxci_gufunc_group *)PyCapsule_GetPointer(capsule, NULL));
}

/* Static values: (place, bytes or str) of parameters, (number, value) of dimensions. */
static int fill_statics(jaxci_gufunc_member *m, PyObject *statics, PyObject *dims) {
  for (int i = 0; i < JAXC_MAX_DIMS; i++) m->dims[i] = JAXCI_UNKNOWN;
  for (Py_ssize_t i = 0; i < PyTuple_Size(dims); i++) {
    PyObject *item = PyTuple_GetItem(dims, i);
    long long value;
    int number;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iL", &number, &value)) return -1;
    if (number < 0 || number >= m->function.dim_count) {
      PyErr_SetString(PyExc_ValueError, "a static dimension is outside of the description");
      return -1;
    }
    m->dims[number] = value;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(statics); i++) {
    PyObject *item = PyTuple_GetItem(statics, i);
    PyObject *value;
    int number;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iO", &number, &value)) return -1;
    if (number < 0 || number >= m->function.parameter_count) {
      PyErr_SetString(PyExc_ValueError, "a static value is outside of the description");
      return -1;
    }
    if (PyUnicode_Check(value)) {
      m->statics[number].string = PyUnicode_AsUTF8AndSize(value, NULL);
      if (m->statics[number].string == NULL) return -1;
    } else {
      char *bytes;
      Py_ssize_t length;
      if (PyBytes_AsStringAndSize(value, &bytes, &length) != 0) return -1;
      if (length > (Py_ssize_t)sizeof m->statics[number]) {
        PyErr_SetString(PyExc_ValueError, "a static value is too large");
        return -1;
      }
      memcpy(&m->statics[number], bytes, (size_t)length);
    }
  }
  return 0;
}

static int fill_member(jaxci_gufunc_member *m, PyObject *item, PyObject **types) {
  PyObject *capsule, *statics, *dims;
  if (!PyTuple_Check(item) ||
      !PyArg_ParseTuple(item, "OO!O!O!", &capsule, &PyTuple_Type, types, &PyTuple_Type,
                        &statics, &PyTuple_Type, &dims)) {
    return -1;
  }
  if (PyCapsule_IsValid(capsule, JAXCI_ADOPTED)) {
    m->adopted = (const jaxci_adopted *)PyCapsule_GetPointer(capsule, JAXCI_ADOPTED);
    m->function = m->adopted->function;
  } else {
    const jaxc_function *f =
        (const jaxc_function *)PyCapsule_GetPointer(capsule, JAXCI_FUNCTION);
    if (f == NULL) return -1;
    memset(&m->function, 0, sizeof m->function); /* an older library has less */
    memcpy(&m->function, f, f->struct_size < sizeof *f ? f->struct_size : sizeof *f);
  }
  if (m->function.rows == NULL) {
    PyErr_Format(PyExc_ValueError, "%s: has no row loop for this CPU", m->function.name);
    return -1;
  }
  return fill_statics(m, statics, dims);
}

/* Members with types of NumPy's own become entries of the ufunc, in order; the others are
 * registered. Returns the number of entries, -1 with an exception. */
static int fill_group(jaxci_gufunc_group *g, PyObject *members, int nargs) {
  int entries = 0;
  for (int i = 0; i < g->count; i++) {
    PyObject *types;
    int is_own = 1;
    if (fill_member(&g->members[i], PyTuple_GetItem(members, i), &types) != 0) return -1;
    if (PyTuple_Size(types) != nargs) {
      PyErr_SetString(PyExc_ValueError, "a type for each operand is needed");
      return -1;
    }
    for (int k = 0; k < nargs; k++) {
      const long number = PyLong_AsLong(PyTuple_GetItem(types, k));
      if (number == -1 && PyErr_Occurred()) return -1;
      is_own = is_own && number < NPY_USERDEF;
      if (is_own) g->types[entries * nargs + k] = (char)number;
    }
    if (!is_own) continue;
    g->loops[entries] = jaxci_gufunc_loop;
    g->data[entries] = &g->members[i];
    entries++;
  }
  return entries;
}

static int register_others(const jaxci_gufunc_group *g, PyObject *ufunc,
                           PyObject *members, int nargs) {
  for (int i = 0; i < g->count; i++) {
    PyObject *types = PyTuple_GetItem(PyTuple_GetItem(members, i), 1);
    int numbers[NPY_MAXARGS];
    int user = -1;
    for (int k = 0; k < nargs; k++) {
      numbers[k] = (int)PyLong_AsLong(PyTuple_GetItem(types, k));
      if (numbers[k] >= NPY_USERDEF) user = numbers[k];
    }
    if (user >= 0 &&
        PyUFunc_RegisterLoopForType((PyUFuncObject *)(void *)ufunc, user, jaxci_gufunc_loop,
                                    numbers,
                                    &g->members[i]) != 0) {
      return -1;
    }
  }
  return 0;
}

static jaxci_gufunc_group *group_new(PyObject *args, int count, int nargs) {
  jaxci_gufunc_group *g = (jaxci_gufunc_group *)calloc(1, sizeof *g);
  if (g != NULL) {
    g->count = count;
    g->members = (jaxci_gufunc_member *)calloc((size_t)count, sizeof *g->members);
    g->loops = (PyUFuncGenericFunction *)calloc((size_t)count, sizeof *g->loops);
    g->data = (void **)calloc((size_t)count, sizeof *g->data);
    g->types = (char *)calloc((size_t)count * (size_t)nargs, 1);
    g->keep = Py_NewRef(args);
  }
  if (g != NULL && g->members != NULL && g->loops != NULL && g->data != NULL &&
      g->types != NULL) {
    return g;
  }
  group_free(g);
  PyErr_NoMemory();
  return NULL;
}

PyObject *jaxci_make_ufunc(PyObject *module, PyObject *args) {
  PyObject *members, *out = NULL, *capsule;
  PyUFuncObject *u;
  const char *name, *doc, *signature;
  int nin, nout, entries;
  Py_ssize_t axes = 0;
  jaxci_gufunc_group *g;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  if (!PyArg_ParseTuple(args, "O!(ii)ssz", &PyTuple_Type, &members, &nin, &nout, &name, &doc,
                        &signature)) {
    return NULL;
  }
  if (nin < 0 || nout < 0 || nin + nout > NPY_MAXARGS) {
    return PyErr_Format(PyExc_ValueError,
                        "%s: NumPy's ufuncs have at most %d operands", name, NPY_MAXARGS);
  }
  g = group_new(args, (int)PyTuple_Size(members), nin + nout);
  if (g == NULL) return NULL;
  entries = fill_group(g, members, nin + nout);
  if (entries < 0) goto failed;
  out = PyUFunc_FromFuncAndDataAndSignature(g->loops, g->data, g->types, entries, nin, nout,
                                            PyUFunc_None, name, doc, 0, signature);
  if (out == NULL) goto failed;
  u = (PyUFuncObject *)(void *)out;
  capsule = PyCapsule_New(g, NULL, group_end);
  if (capsule == NULL) goto failed;
  u->obj = capsule; /* the ufunc frees it */
  for (int k = 0; k < u->nargs; k++) axes += (u->core_enabled ? u->core_num_dims[k] : 0);
  for (int i = 0; i < g->count; i++) g->members[i].ufunc = u;
  if (axes > JAXCI_GUFUNC_AXES / 8) {
    PyErr_Format(PyExc_ValueError, "%s: has %zd core axes, at most %d are possible", name,
                 axes, JAXCI_GUFUNC_AXES / 8);
    Py_DECREF(out);
    return NULL;
  }
  if (u->core_enabled) u->process_core_dims_func = jaxci_gufunc_core_dims;
  if (register_others(g, out, members, nin + nout) != 0) {
    Py_DECREF(out);
    return NULL;
  }
  return out;
failed:
  Py_XDECREF(out);
  group_free(g);
  return NULL;
}
