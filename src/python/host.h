/* host.h: call a handler from Python without XLA.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_HOST_H
#define JAXC_PYTHON_HOST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* call_handler(capsule, arguments, results, attributes): see module.c. The interpreter
 * lock is released while the handler runs. */
PyObject *jaxci_call_handler(PyObject *module, PyObject *args);

#endif /* JAXC_PYTHON_HOST_H */
