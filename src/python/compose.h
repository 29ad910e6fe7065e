/* compose.h: a function's description from Python as the struct of <jaxc/library.h>.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_COMPOSE_H
#define JAXC_PYTHON_COMPOSE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <jaxc/library.h>

/* Fills *out from (name, flags, (parameter, ...), (dim, ...), (solve step, ...), counts):
 * a record as describe.c makes it, with counts = (arguments, results, attributes). rows,
 * data, lock and entries are the caller's to fill. What it points to is never freed, as
 * the handler of a target never is. 0, or -1 with an exception. */
int jaxci_compose(PyObject *record, jaxc_function *out);

#endif /* JAXC_PYTHON_COMPOSE_H */
