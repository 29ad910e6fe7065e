/* module.c: _jaxc, the part of the Python package that is C.
 *
 * Limited API of CPython 3.11, multi-phase initialisation: one binary for every later
 * Python. What is static is the process's, as XLA's registry of handlers is: the slots of
 * adopted functions (adopted.c) and the door to the interpreter (interpreter.c).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "adopted.h"
#include "callback.h"
#include "describe.h"
#include "gufunc.h"
#include "handlers.h"
#include "host.h"
#include "interpreter.h"
#include "ufunc.h"

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
    {"adopt_ufunc", jaxci_adopt_ufunc, METH_VARARGS,
     "adopt_ufunc(record, ufunc, owner, loop, sizes, may_raise, /)\n--\n\n"
     "Makes a handler of one inner loop of a NumPy ufunc.\n\n"
     "Args:\n"
     "  record: (name, flags, parameters, dims, solve steps, (argument, result, attribute\n"
     "    counts)), as describe.c makes them; the first parameter has role 8 (data).\n"
     "  ufunc: a numpy.ufunc.\n"
     "  owner: kept with it, for what the loop needs to stay.\n"
     "  loop: its number in ufunc_loops.\n"
     "  sizes: for each core dimension of the ufunc (dimension of the record or -1, fixed\n"
     "    size).\n"
     "  may_raise: whether the loop may raise an exception, as loops of numba do.\n\n"
     "Returns:\n"
     "  (capsule of the handler, capsule of the function), kept by the process.\n\n"
     "Raises:\n"
     "  RuntimeError: when the process has no room for another one."},
    {"ufunc_loops", jaxci_ufunc_loops, METH_O,
     "ufunc_loops(ufunc, /)\n--\n\n"
     "Reads a ufunc.\n\n"
     "Returns:\n"
     "  ((type number of each operand, ...) for each loop, (core dimension of each axis, ...)\n"
     "  for each operand, whether a function of its own computes sizes, whether it writes\n"
     "  into inputs)."},
    {"adopt_callback", jaxci_adopt_callback, METH_VARARGS,
     "adopt_callback(record, function, helper, dtypes, is_vectorized, /)\n--\n\n"
     "Makes a handler that calls function(*inputs, *outputs, **statics) on arrays of XLA's\n"
     "memory.\n\n"
     "Args:\n"
     "  record: as for adopt_ufunc.\n"
     "  helper: (exception) -> (first line, the rest) of the error's text.\n"
     "  dtypes: of each parameter; None for those that are no arrays.\n"
     "  is_vectorized: one call with all leading axes, not one for each row."},
    {"adopt_raw_callback", jaxci_adopt_raw_callback, METH_VARARGS,
     "adopt_raw_callback(name, function, helper, dtypes, context, /)\n--\n\n"
     "Makes a handler that calls function(inputs, outputs, attrs, context).\n\n"
     "Args:\n"
     "  dtypes: XLA's number -> dtype.\n"
     "  context: (stage, platform, device ordinal, run id, stream) -> what is passed on."},
    {"adopt_address", jaxci_adopt_address, METH_VARARGS,
     "adopt_address(function, address, /)\n--\n\n"
     "Makes a handler that calls the C function at an address, through the row loop of a\n"
     "described one whose first parameter has role 8 (data)."},
    {"make_ufunc", jaxci_make_ufunc, METH_VARARGS,
     "make_ufunc(members, counts, name, doc, signature, /)\n--\n\n"
     "Makes a numpy.ufunc of described functions.\n\n"
     "Args:\n"
     "  members: for each inner loop (capsule of the function, NumPy's type number of each\n"
     "    operand, ((parameter, bytes or str) of static values, ...), ((dimension, value) of\n"
     "    static dimensions, ...)).\n"
     "  counts: of inputs and outputs.\n"
     "  signature: of core dimensions, or None for a function of numbers."},
    {"close_interpreter", jaxci_close_interpreter, METH_NOARGS,
     "close_interpreter()\n--\n\n"
     "Lets no handler call Python any more, and waits for those that do."},
    {"after_fork", jaxci_after_fork, METH_NOARGS,
     "after_fork()\n--\n\n"
     "Forgets, in a child process, the parent's threads that called Python."},
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
