/* gufunc_loop.h: the inner loop of a described function as NumPy calls it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_GUFUNC_LOOP_H
#define JAXC_PYTHON_GUFUNC_LOOP_H

#include <jaxc/batch.h>

#include "adopted.h"
#include "numpy_api.h"

/* Sizes of all core axes of one call. */
#define JAXCI_GUFUNC_AXES 256

/* One inner loop: a function with its static values. */
typedef struct {
  jaxc_function function;
  const jaxci_adopted *adopted; /* or NULL */
  const PyUFuncObject *ufunc;
  long long dims[JAXC_MAX_DIMS]; /* static ones; JAXCI_UNKNOWN otherwise */
  jaxci_value statics[JAXC_MAX_PARAMETERS];
} jaxci_gufunc_member;

/* What a ufunc of ours keeps: freed with it. */
typedef struct {
  int count;
  jaxci_gufunc_member *members;
  PyUFuncGenericFunction *loops;
  void **data;
  char *types;
  PyObject *keep; /* the arguments, to which names and strings belong */
} jaxci_gufunc_group;

/* A PyUFuncGenericFunction; data: a jaxci_gufunc_member. */
void jaxci_gufunc_loop(char **args, const npy_intp *dimensions, const npy_intp *steps,
                       void *data);

/* Finds the sizes of outputs, and compares those that are given; u->obj: a capsule of the
 * jaxci_gufunc_group. 0, or -1 with an exception. */
int jaxci_gufunc_core_dims(PyUFuncObject *ufunc, npy_intp *sizes);

#endif /* JAXC_PYTHON_GUFUNC_LOOP_H */
