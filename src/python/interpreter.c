/* interpreter.c: see interpreter.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "interpreter.h"

#include <stdio.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <sched.h>
#endif

/* Of the process: the interpreter that PyGILState knows is one. */
static int is_closed;
static int inside;

int jaxci_interpreter_take(jaxci_held *held) {
  /* Counted before the door is looked at, so that closing it sees whom it let in. */
  (void)__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&is_closed, __ATOMIC_SEQ_CST) || !Py_IsInitialized()) {
    (void)__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
    return 0;
  }
  held->state = PyGILState_Ensure();
  return 1;
}

void jaxci_interpreter_give(jaxci_held *held) {
  PyGILState_Release(held->state);
  (void)__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
}

PyObject *jaxci_close_interpreter(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  __atomic_store_n(&is_closed, 1, __ATOMIC_SEQ_CST);
  Py_BEGIN_ALLOW_THREADS
  while (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) > 0) {
#ifdef _WIN32
    Sleep(1);
#else
    sched_yield();
#endif
  }
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

PyObject *jaxci_after_fork(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  /* The threads that were inside are the parent's. */
  __atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
  Py_RETURN_NONE;
}

void jaxci_exception_text(char *out, size_t size) {
  PyObject *type, *value, *traceback, *name, *text;
  const char *name_utf8, *text_utf8;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  name = type != NULL ? PyObject_GetAttrString(type, "__name__") : NULL;
  text = value != NULL ? PyObject_Str(value) : NULL;
  name_utf8 = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  text_utf8 = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  (void)snprintf(out, size, "%s: %s", name_utf8 != NULL ? name_utf8 : "an exception",
                 text_utf8 != NULL ? text_utf8 : "without a text");
  PyErr_Clear();
  Py_XDECREF(name);
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}
