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
#include "handlers.h"
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
     "call_handler(handlers, arguments, results, attributes, types, options, /)\n--\n\n"
     "Calls an XLA FFI handler once, without XLA.\n\n"
     "Args:\n"
     "  handlers: capsules of instantiate, prepare, initialize and execute, or None.\n"
     "  arguments, results: tuples of (dtype number, shape, buffer or None); results are\n"
     "    written in place.\n"
     "  attributes: tuple of (name, kind, dtype number, bytes); kind is 1 for an array, 3\n"
     "    for a scalar, 4 for a string; 2 for a dictionary, with a tuple of attributes in\n"
     "    the place of bytes.\n"
     "  types: of states, to be registered first: (name, capsule of the id, capsule of the\n"
     "    info or None).\n"
     "  options: numbers by name, as jaxc_host_options has them.\n\n"
     "Returns:\n"
     "  None, or (code, text) of the handler's error, of writes where none belong, or of\n"
     "  what it did not give back.\n\n"
     "Raises:\n"
     "  ValueError: for a buffer smaller than its shape, and what the host refuses."},
    {"describe_handler", jaxci_describe_handler, METH_O,
     "describe_handler(address, /)\n--\n\n"
     "Reads the table of a handler that JAXC_HANDLER made.\n\n"
     "Args:\n"
     "  address: of the symbol jaxc_handler_<name>.\n\n"
     "Returns:\n"
     "  (name, platform, minor, traits, stages, fields); see handlers.c for the tuples.\n\n"
     "Raises:\n"
     "  ValueError: for a table of another version, or a damaged one."},
    {"probe_handler", jaxci_probe_handler, METH_O,
     "probe_handler(capsule, /)\n--\n\n"
     "Asks a handler for its metadata, in a child process.\n\n"
     "Returns:\n"
     "  (major, minor, traits).\n\n"
     "Raises:\n"
     "  ValueError: when the function does not answer, crashes or does not return."},
    {"exported_symbols", jaxci_exported_symbols, METH_O,
     "exported_symbols(path, /)\n--\n\n"
     "Names that a loaded library exports; none where the system does not tell.\n\n"
     "Raises:\n"
     "  OSError: when the system cannot load it."},
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
