/* module.c: _jaxc, the part of the Python package that is C.
 *
 * Limited API of CPython 3.11, multi-phase initialisation, no static state: one binary
 * for every later Python, and for each interpreter of a process its own module.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "describe.h"
#include "host.h"

static PyMethodDef methods[] = {
    {"open_library", jaxci_open_library, METH_O,
     "open_library(path, /)\n--\n\n"
     "Loads a kernel library and describes it.\n\n"
     "The library stays loaded for the life of the process, because compiled programs\n"
     "hold its handlers.\n\n"
     "Args:\n"
     "  path: of the shared library, absolute.\n\n"
     "Returns:\n"
     "  (name, hash, jaxc_version, functions); see describe.c for the tuples.\n\n"
     "Raises:\n"
     "  OSError: when the system cannot load it, with the system's message.\n"
     "  ValueError: when it has no table, or one of another version."},
    {"call_handler", jaxci_call_handler, METH_VARARGS,
     "call_handler(capsule, arguments, results, attributes, /)\n--\n\n"
     "Calls an XLA FFI handler for the CPU once, without XLA.\n\n"
     "Args:\n"
     "  capsule: of the handler.\n"
     "  arguments, results: tuples of (dtype number, shape, buffer or None); results are\n"
     "    written in place.\n"
     "  attributes: tuple of (name, kind, dtype number, bytes), sorted by name; kind is\n"
     "    1 for an array, 3 for a scalar, 4 for a string.\n\n"
     "Returns:\n"
     "  None, or (code, text) of the handler's error.\n\n"
     "Raises:\n"
     "  ValueError: for a buffer smaller than its shape."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_jaxc",
    .m_doc = "Kernel libraries for Python.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__jaxc(void);
PyMODINIT_FUNC PyInit__jaxc(void) { return PyModuleDef_Init(&module); }
