/* gufunc.h: described functions as NumPy's ufuncs, for use outside of JAX.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_GUFUNC_H
#define JAXC_PYTHON_GUFUNC_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* make_ufunc(members, operand counts, name, doc, signature): see module.c. */
PyObject *jaxci_make_ufunc(PyObject *module, PyObject *args);

#endif /* JAXC_PYTHON_GUFUNC_H */
