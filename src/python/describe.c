/* describe.c: read the table of <jaxc/library.h> from a loaded library into tuples.
 *
 *   library:   (name, hash, jaxc_version, (function, ...))
 *   function:  (name, overload, prototype, doc, file, line, flags, refusal,
 *               (parameter, ...), (dim, ...), ((dim, parameter, axis), ...),
 *               ((platform, capsule), ...), capsule of the function)
 *   parameter: (name, declaration, role, dtype, (bound, ...), dim, flags)
 *   bound:     (text, ((code, argument), ...))
 *   dim:       (name, minimum, maximum, is_static)
 *
 * The library comes from a file, so counts and pointers are checked before they are used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "describe.h"

#include <jaxc/library.h>
#include <string.h>

#include "adopted.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

/* Makes entry `index` of a sequence of structs; returns a new reference or NULL. */
typedef PyObject *maker(const void *items, Py_ssize_t index);

static PyObject *make_tuple(const void *items, Py_ssize_t count, maker *make) {
  PyObject *tuple;
  if (count < 0 || (count > 0 && items == NULL)) {
    PyErr_SetString(PyExc_ValueError, "the library's table is damaged");
    return NULL;
  }
  tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++) {
    PyObject *item = make(items, i);
    if (item == NULL || PyTuple_SetItem(tuple, i, item) != 0) {
      Py_DECREF(tuple);
      return NULL;
    }
  }
  return tuple;
}

/* A C string as str, with bytes that are not UTF-8 kept as surrogates; NULL as None. */
static PyObject *make_text(const char *text) {
  if (text == NULL) return Py_NewRef(Py_None);
  return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

static PyObject *make_step(const void *items, Py_ssize_t index) {
  const jaxc_bound_step *step = (const jaxc_bound_step *)items + index;
  return Py_BuildValue("(LL)", (long long)step->code, (long long)step->argument);
}

static PyObject *make_bound(const void *items, Py_ssize_t index) {
  const jaxc_bound *bound = (const jaxc_bound *)items + index;
  return Py_BuildValue("(NN)", make_text(bound->text),
                       make_tuple(bound->steps, bound->step_count, make_step));
}

static PyObject *make_parameter(const void *items, Py_ssize_t index) {
  const jaxc_parameter *p = (const jaxc_parameter *)items + index;
  return Py_BuildValue("(NNiiNiI)", make_text(p->name), make_text(p->declaration),
                       (int)p->role, (int)p->dtype,
                       make_tuple(p->bounds, p->rank, make_bound), (int)p->dim,
                       (unsigned int)p->flags);
}

static PyObject *make_dim(const void *items, Py_ssize_t index) {
  const jaxc_dim *dim = (const jaxc_dim *)items + index;
  return Py_BuildValue("(NLLi)", make_text(dim->name), (long long)dim->minimum,
                       (long long)dim->maximum, (int)dim->is_static);
}

static PyObject *make_solve_step(const void *items, Py_ssize_t index) {
  const jaxc_solve_step *step = (const jaxc_solve_step *)items + index;
  return Py_BuildValue("(iii)", (int)step->dim, (int)step->parameter, (int)step->axis);
}

/* The capsule has no name, as jax.ffi.register_ffi_target expects. ISO C has no way from
 * a function pointer to void *, every system that has dlsym does. */
static PyObject *make_entry(const void *items, Py_ssize_t index) {
  const jaxc_entry *entry = (const jaxc_entry *)items + index;
  void *address;
  if (entry->execute == NULL) {
    PyErr_SetString(PyExc_ValueError, "the library's table has an empty handler");
    return NULL;
  }
  memcpy(&address, &entry->execute, sizeof address);
  return Py_BuildValue("(NN)", make_text(entry->platform),
                       PyCapsule_New(address, NULL, NULL));
}

static PyObject *make_function(const void *items, Py_ssize_t index) {
  const jaxc_function *f = ((const jaxc_function *const *)items)[index];
  if (f == NULL || f->struct_size < JAXC_FUNCTION_LEAST_SIZE || f->name == NULL) {
    PyErr_SetString(PyExc_ValueError, "the library's table is damaged");
    return NULL;
  }
  return Py_BuildValue(
      "(NNNNNiINNNNNN)", make_text(f->name), make_text(f->overload),
      make_text(f->prototype), make_text(f->doc), make_text(f->file), (int)f->line,
      (unsigned int)f->flags, make_text(f->refusal),
      make_tuple(f->parameters, f->parameter_count, make_parameter),
      make_tuple(f->dims, f->dim_count, make_dim),
      make_tuple(f->solve, f->solve_count, make_solve_step),
      make_tuple(f->entries, f->entry_count, make_entry),
      PyCapsule_New((void *)(uintptr_t)f, JAXCI_FUNCTION, NULL));
}

static PyObject *make_library(const jaxc_library *library) {
  if (library->struct_size < sizeof *library ||
      library->abi_version != JAXC_LIBRARY_ABI) {
    return PyErr_Format(PyExc_ValueError,
                        "its table has version %d, this jaxc reads version %d",
                        (int)library->abi_version, JAXC_LIBRARY_ABI);
  }
  return Py_BuildValue(
      "(NNNN)", make_text(library->name), make_text(library->hash),
      make_text(library->jaxc_version),
      make_tuple((const void *)library->functions, library->function_count,
                 make_function));
}

#ifdef _WIN32

PyObject *jaxci_open_library(PyObject *module, PyObject *path) {
  wchar_t *name;
  HMODULE handle;
  const jaxc_library *library;
  (void)module;
  name = PyUnicode_AsWideCharString(path, NULL);
  if (name == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS
  handle = LoadLibraryW(name);
  Py_END_ALLOW_THREADS
  PyMem_Free(name);
  if (handle == NULL) {
    return PyErr_Format(PyExc_OSError, "%U: LoadLibrary failed with error %lu", path,
                        GetLastError());
  }
  library = (const jaxc_library *)(void *)GetProcAddress(handle, "jaxc_library_table");
  if (library == NULL) {
    return PyErr_Format(PyExc_ValueError,
                        "%U is no kernel library: it exports no 'jaxc_library_table'", path);
  }
  return make_library(library);
}

#else

PyObject *jaxci_open_library(PyObject *module, PyObject *path) {
  PyObject *encoded = NULL;
  PyObject *out = NULL;
  const char *name;
  void *handle;
  const jaxc_library *library;
  (void)module;
  if (!PyUnicode_FSConverter(path, &encoded)) return NULL;
  name = PyBytes_AsString(encoded);
  if (name == NULL) goto done;
  Py_BEGIN_ALLOW_THREADS
  handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  Py_END_ALLOW_THREADS
  if (handle == NULL) {
    const char *reason = dlerror();
    PyErr_SetString(PyExc_OSError, reason != NULL ? reason : name);
    goto done;
  }
  library = (const jaxc_library *)dlsym(handle, "jaxc_library_table");
  if (library == NULL) {
    PyErr_Format(PyExc_ValueError,
                 "%s is no kernel library: it exports no 'jaxc_library_table'", name);
    goto done;
  }
  out = make_library(library);
done:
  Py_DECREF(encoded);
  return out;
}

#endif
