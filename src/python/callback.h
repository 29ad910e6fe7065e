/* callback.h: Python functions as handlers, on views of XLA's own memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_CALLBACK_H
#define JAXC_PYTHON_CALLBACK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* adopt_callback(record, function, helper, dtypes, is_vectorized) and
 * adopt_raw_callback(name, function, helper, dtypes, context): see module.c. */
PyObject *jaxci_adopt_callback(PyObject *module, PyObject *args);
PyObject *jaxci_adopt_raw_callback(PyObject *module, PyObject *args);

#endif /* JAXC_PYTHON_CALLBACK_H */
