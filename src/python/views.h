/* views.h: NumPy arrays over memory of a call, and what is done when one outlives it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_VIEWS_H
#define JAXC_PYTHON_VIEWS_H

#include "numpy_api.h"

/* A row-major array over `data`, which is borrowed; strides NULL: dense. A new reference,
 * or NULL with an exception. */
PyObject *jaxci_view_new(PyArray_Descr *dtype, int rank, const npy_intp *sizes,
                         const npy_intp *strides, void *data, int is_writable);

/* Position of the first array of a tuple (or list) of views that somebody else still holds,
 * -1 when there is none. `items` itself must have one owner. Items may be None. Arrays that
 * are held get a copy of their memory, so that reading them later reads no foreign memory;
 * views of them cannot be helped. */
Py_ssize_t jaxci_views_end(PyObject *items);

#endif /* JAXC_PYTHON_VIEWS_H */
