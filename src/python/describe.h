/* describe.h: a kernel library's table as Python objects.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_DESCRIBE_H
#define JAXC_PYTHON_DESCRIBE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* open_library(path): see module.c. Called with the interpreter lock held; loading runs
 * without it, because a library's constructors may take time. */
PyObject *jaxci_open_library(PyObject *module, PyObject *path);

#endif /* JAXC_PYTHON_DESCRIBE_H */
