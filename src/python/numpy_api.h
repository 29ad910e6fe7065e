/* numpy_api.h: NumPy's C API, for all files of _jaxc that use it.
 *
 * Include it in the place of NumPy's headers. Every function that is called from Python and
 * uses NumPy begins with `if (jaxci_numpy_ready() != 0) return NULL;`: importing _jaxc alone
 * must not need NumPy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PYTHON_NUMPY_API_H
#define JAXC_PYTHON_NUMPY_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_2_1_API_VERSION
#define NPY_TARGET_VERSION NPY_2_1_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL jaxci_array_api
#define PY_UFUNC_UNIQUE_SYMBOL jaxci_ufunc_api
#ifndef JAXCI_NUMPY_HERE
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>
#if defined(__GNUC__) || defined(__clang__)
#pragma GCC diagnostic pop
#endif

/* Loads the API once; 0, or -1 with an exception. */
int jaxci_numpy_ready(void);

#endif /* JAXC_PYTHON_NUMPY_API_H */
