/* views.c: see views.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "views.h"

#include <stdlib.h>
#include <string.h>

PyObject *jaxci_view_new(PyArray_Descr *dtype, int rank, const npy_intp *sizes,
                         const npy_intp *strides, void *data, int is_writable) {
  const int flags = is_writable ? NPY_ARRAY_WRITEABLE : 0;
  Py_INCREF((PyObject *)(void *)dtype); /* NewFromDescr takes it */
  return PyArray_NewFromDescr(&PyArray_Type, dtype, rank, (npy_intp *)(uintptr_t)sizes,
                              (npy_intp *)(uintptr_t)strides, data, flags, NULL);
}

static void free_copy(PyObject *capsule) {
  free(PyCapsule_GetPointer(capsule, NULL));
}

/* Gives the array memory of its own, dense and with the same elements. */
static void keep_apart(PyObject *object) {
  PyArrayObject *const array = (PyArrayObject *)(void *)object;
  PyArrayObject_fields *const fields = (PyArrayObject_fields *)(void *)object;
  const size_t bytes = (size_t)PyArray_NBYTES(array);
  PyObject *dense, *owner;
  void *copy;
  if (PyArray_BASE(array) != NULL) return; /* it has been given some */
  dense = PyArray_NewCopy(array, NPY_CORDER);
  copy = dense != NULL ? malloc(bytes != 0 ? bytes : 1) : NULL;
  owner = copy != NULL ? PyCapsule_New(copy, NULL, free_copy) : NULL;
  if (owner == NULL) { /* better empty than dangling */
    PyErr_Clear();
    free(copy);
    for (int axis = 0; axis < fields->nd; axis++) fields->dimensions[axis] = 0;
  } else {
    memcpy(copy, PyArray_DATA((PyArrayObject *)(void *)dense), bytes);
    for (int axis = 0; axis < fields->nd; axis++) {
      fields->strides[axis] = PyArray_STRIDES((PyArrayObject *)(void *)dense)[axis];
    }
    fields->data = (char *)copy;
    if (PyArray_SetBaseObject(array, owner) != 0) PyErr_Clear(); /* takes owner */
  }
  Py_XDECREF(dense);
}

static int is_held(PyObject *item) { return item != Py_None && Py_REFCNT(item) > 1; }

Py_ssize_t jaxci_views_end(PyObject *items) {
  const int is_list = PyList_Check(items);
  const Py_ssize_t count = is_list ? PyList_Size(items) : PyTuple_Size(items);
  Py_ssize_t first = -1;
  for (Py_ssize_t i = 0; first < 0 && i < count; i++) {
    if (is_held(is_list ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i))) first = i;
  }
  if (first < 0 && Py_REFCNT(items) == 1) return -1;
  if (first >= 0) PyGC_Collect(); /* a cycle that is garbage holds nothing */
  first = -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = is_list ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i);
    if (item == Py_None || (!is_held(item) && Py_REFCNT(items) == 1)) continue;
    keep_apart(item);
    if (first < 0) first = i;
  }
  return first;
}
