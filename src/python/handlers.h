/* handlers.h: hand-written handlers as Python objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_HANDLERS_H
#define JAXC_PYTHON_HANDLERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* describe_handler(address), probe_handler(capsule), exported_symbols(path): module.c. */
PyObject *jaxci_describe_handler(PyObject *module, PyObject *address);
PyObject *jaxci_probe_handler(PyObject *module, PyObject *capsule);
PyObject *jaxci_exported_symbols(PyObject *module, PyObject *path);

#endif /* JAXC_PYTHON_HANDLERS_H */
