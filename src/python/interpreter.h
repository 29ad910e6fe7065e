/* interpreter.h: Python's interpreter from XLA's threads.
 *
 *   jaxci_held held;
 *   if (!jaxci_interpreter_take(&held)) ...        Python is ending
 *   ... Python's API ...
 *   jaxci_interpreter_give(&held);
 *
 * A thread that asks for the lock of an interpreter that ends is stopped for good by some
 * versions of Python, inside whatever C++ called it. So calls are counted, and at exit the
 * door is closed first and those inside are waited for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_INTERPRETER_H
#define JAXC_PYTHON_INTERPRETER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
  PyGILState_STATE state;
} jaxci_held;

#define JAXCI_NO_INTERPRETER "Python is ending, and cannot be called any more"

/* Takes the interpreter's lock; 0 when there is no interpreter to take. From any thread,
 * with the lock or without. */
int jaxci_interpreter_take(jaxci_held *held);
void jaxci_interpreter_give(jaxci_held *held);

/* Writes "TypeName: text" of the exception that is set, and clears it. */
void jaxci_exception_text(char *out, size_t size);

/* close_interpreter() and after_fork(): see module.c. */
PyObject *jaxci_close_interpreter(PyObject *module, PyObject *unused);
PyObject *jaxci_after_fork(PyObject *module, PyObject *unused);

#endif /* JAXC_PYTHON_INTERPRETER_H */
