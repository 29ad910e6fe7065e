/* adopted.h: handlers for functions that no compiler wrote a handler for: inner loops of
 * NumPy's ufuncs, Python functions, and functions of which only the address is known.
 *
 * XLA knows a handler by its address alone and gives it no data of ours. So there is a pool
 * of handlers that differ in the number that they pass on; a function takes one and keeps
 * it, because programs that call it may live as long as the process. The pool is the
 * process's, as XLA's registry is; slots are taken under a lock and read without.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_ADOPTED_H
#define JAXC_PYTHON_ADOPTED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <jaxc/library.h>

/* Most adopted functions of a process. */
#define JAXCI_SLOTS 4096

/* Name of the capsule that holds a jaxci_adopted. */
#define JAXCI_ADOPTED "jaxc.adopted"
/* Name of the capsule that holds a jaxc_function of a library. */
#define JAXCI_FUNCTION "jaxc.function"

typedef struct jaxci_adopted jaxci_adopted;

/* The text of an error, kept until the call has made its message of it. */
typedef struct jaxci_text {
  struct jaxci_text *next;
  char text[1];
} jaxci_text;

/* One call of an adopted function: what its parameter of JAXC_ROLE_DATA points to. */
typedef struct {
  const jaxci_adopted *self;
  jaxci_text *texts;
  char *detail; /* that follows the message: a traceback; of malloc, or NULL */
} jaxci_adopted_call;

typedef jaxc_abi_error *jaxci_adopted_handle(jaxc_abi_call_frame *frame,
                                             const jaxci_adopted *self);

struct jaxci_adopted {
  /* Described, with its rows. Where `data` is NULL, the data of a call is its
   * jaxci_adopted_call. */
  jaxc_function function;
  jaxci_adopted_handle *handle;
  void *payload; /* its room's own */
};

/* The common handle: rows by <jaxc/batch.h>, with a jaxci_adopted_call as their data. */
jaxci_adopted_handle jaxci_adopted_run;

/* A new adopted function of `size` bytes, of which the first are a jaxci_adopted, all zero;
 * described by `record` where it is not NULL. NULL with an exception. */
void *jaxci_adopted_create(size_t size, PyObject *record);

/* (capsule of a handler, capsule of the function), after which the process keeps
 * `adopted`. On failure it is freed, with an exception. */
PyObject *jaxci_adopted_publish(jaxci_adopted *adopted);

/* Stops the rows with an error that has this text, which is copied; row: -1 where it may
 * have been any. From any thread. */
void jaxci_adopted_fail(jaxci_adopted_call *call, jaxc_fault *fault, long long row,
                        const char *text);
/* Frees the texts of a call, and its detail. */
void jaxci_adopted_end(jaxci_adopted_call *call);

/* adopt_address(function, address): see module.c. */
PyObject *jaxci_adopt_address(PyObject *module, PyObject *args);

#endif /* JAXC_PYTHON_ADOPTED_H */
