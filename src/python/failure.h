/* failure.h: Python's exceptions as errors of XLA.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_FAILURE_H
#define JAXC_PYTHON_FAILURE_H

#include <jaxc/error.h>

#include "adopted.h"

/* Takes the exception that is set: its first line goes to the fault, its traceback to the
 * call, both as helper(exception) makes them. Clears the exception. With the interpreter's
 * lock. */
void jaxci_failure_take(jaxci_adopted_call *call, PyObject *helper, jaxc_fault *fault,
                        long long row);

/* The runtime's error: "name: text", and behind it `detail` where that is not NULL, however
 * long. */
jaxc_abi_error *jaxci_failure_error(const jaxc_abi_call_frame *frame, const char *name,
                                    jaxc_status status, const char *text,
                                    const char *detail);

#endif /* JAXC_PYTHON_FAILURE_H */
