/* failure.c: see failure.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpreter.h"

void jaxci_failure_take(jaxci_adopted_call *call, PyObject *helper, jaxc_fault *fault,
                        long long row) {
  PyObject *type, *value, *traceback, *pair = NULL, *first = NULL, *rest = NULL;
  char text[512];
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL) PyException_SetTraceback(value, traceback);
  if (value != NULL) pair = PyObject_CallFunctionObjArgs(helper, value, NULL);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (pair != NULL && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "UU", &first, &rest)) {
    const char *first_utf8 = PyUnicode_AsUTF8AndSize(first, NULL);
    Py_ssize_t length = 0;
    const char *rest_utf8 =
        first_utf8 != NULL ? PyUnicode_AsUTF8AndSize(rest, &length) : NULL;
    if (rest_utf8 != NULL) {
      jaxci_adopted_fail(call, fault, row, first_utf8);
      free(call->detail);
      call->detail = (char *)malloc((size_t)length + 1);
      if (call->detail != NULL) memcpy(call->detail, rest_utf8, (size_t)length + 1);
      Py_DECREF(pair);
      return;
    }
  }
  Py_XDECREF(pair);
  if (PyErr_Occurred()) {
    jaxci_exception_text(text, sizeof text);
  } else {
    (void)snprintf(text, sizeof text, "an exception without a text");
  }
  jaxci_adopted_fail(call, fault, row, text);
}

jaxc_abi_error *jaxci_failure_error(const jaxc_abi_call_frame *frame, const char *name,
                                    jaxc_status status, const char *text,
                                    const char *detail) {
  const size_t size = strlen(name) + strlen(text) + (detail != NULL ? strlen(detail) : 0) + 8;
  char *whole = (char *)malloc(size);
  jaxc_abi_error *error;
  if (whole == NULL) return jaxc_error_create(frame->api, status, text);
  (void)snprintf(whole, size, "%s: %s%s%s", name, text, detail != NULL ? "\n\n" : "",
                 detail != NULL ? detail : "");
  error = jaxc_error_create(frame->api, status, whole);
  free(whole);
  return error;
}
