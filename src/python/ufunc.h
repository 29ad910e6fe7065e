/* ufunc.h: inner loops of NumPy's ufuncs as handlers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_UFUNC_H
#define JAXC_PYTHON_UFUNC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* ufunc_loops(ufunc), adopt_ufunc(record, ufunc, owner, loop, sizes, may_raise): module.c. */
PyObject *jaxci_ufunc_loops(PyObject *module, PyObject *ufunc);
PyObject *jaxci_adopt_ufunc(PyObject *module, PyObject *args);

#endif /* JAXC_PYTHON_UFUNC_H */
