/* handlers.c: what a hand-written handler says of itself, for jaxc.register and the host.
 *
 *   handler: (name, platform, minor, traits, (stage, ...), (field, ...))
 *   field:   (name, kind, dtype, rank, is_optional, (field, ...))
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "handlers.h"

#include <jaxc/handler.h>
#include <jaxc/host.h>

#include "../run/elf.h"

#ifndef _WIN32
#include <dlfcn.h>
#endif

static PyObject *make_fields(const jaxc_field *fields, int32_t count);

static PyObject *make_field(const jaxc_field *field) {
  PyObject *nested;
  if (field->name == NULL) {
    PyErr_SetString(PyExc_ValueError, "the handler's table has a field without name");
    return NULL;
  }
  nested = field->kind == JAXC_FIELD_NESTED ? make_fields(field->fields, field->rank)
                                            : PyTuple_New(0);
  return Py_BuildValue("(siiiNN)", field->name, (int)field->kind, (int)field->dtype,
                       (int)field->rank, PyBool_FromLong(field->is_optional), nested);
}

static PyObject *make_fields(const jaxc_field *fields, int32_t count) {
  PyObject *out;
  if (count < 0 || (count > 0 && fields == NULL)) {
    PyErr_SetString(PyExc_ValueError, "the handler's table is damaged");
    return NULL;
  }
  out = PyTuple_New(count);
  for (int32_t i = 0; out != NULL && i < count; i++) {
    PyObject *field = make_field(&fields[i]);
    if (field == NULL || PyTuple_SetItem(out, i, field) != 0) {
      Py_DECREF(out);
      return NULL;
    }
  }
  return out;
}

static PyObject *make_stages(const jaxc_handler *handler) {
  const struct {
    const char *name;
    jaxc_handler_function *function;
  } stages[] = {{"instantiate", handler->instantiate},
                {"prepare", handler->prepare},
                {"initialize", handler->initialize},
                {"execute", handler->execute}};
  PyObject *list = PyList_New(0);
  PyObject *out = NULL;
  for (size_t i = 0; list != NULL && i < sizeof stages / sizeof *stages; i++) {
    PyObject *name;
    int failed;
    if (stages[i].function == NULL) continue;
    name = PyUnicode_FromString(stages[i].name);
    failed = name == NULL || PyList_Append(list, name) != 0;
    Py_XDECREF(name);
    if (failed) Py_CLEAR(list);
  }
  if (list != NULL) out = PyList_AsTuple(list);
  Py_XDECREF(list);
  return out;
}

PyObject *jaxci_describe_handler(PyObject *module, PyObject *address) {
  const jaxc_handler *handler;
  (void)module;
  handler = (const jaxc_handler *)PyLong_AsVoidPtr(address);
  if (handler == NULL) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the address is null");
    return NULL;
  }
  if (handler->struct_size < sizeof *handler || handler->abi_version != JAXC_HANDLER_ABI ||
      handler->name == NULL) {
    return PyErr_Format(PyExc_ValueError,
                        "its table has version %d, this jaxc reads version %d",
                        (int)handler->abi_version, JAXC_HANDLER_ABI);
  }
  if (handler->instantiate_state != NULL && handler->instantiate == NULL) {
    return PyErr_Format(PyExc_ValueError,
                        "'%s' has a type of state of instantiate, but no such stage",
                        handler->name);
  }
  return Py_BuildValue("(ssiINN)", handler->name,
                       handler->platform != NULL ? handler->platform : "cpu",
                       handler->minor > JAXC_ABI_MINOR ? (int)handler->minor
                                                       : JAXC_ABI_MINOR,
                       (unsigned int)handler->traits, make_stages(handler),
                       make_fields(handler->fields, handler->field_count));
}

PyObject *jaxci_probe_handler(PyObject *module, PyObject *capsule) {
  jaxc_host_metadata metadata = {0, 0, 0, 0};
  jaxc_host_options options = {0};
  jaxc_abi_handler *handler;
  jaxc_message message;
  jaxc_host *host = NULL;
  jaxc_status status;
  void *address = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  (void)module;
  if (address == NULL) return NULL;
  memcpy(&handler, &address, sizeof handler);
  options.struct_size = sizeof options;
  options.thread_count = JAXC_HOST_NO_POOL;
  /* The child process is waited for without the interpreter's lock. */
  Py_BEGIN_ALLOW_THREADS
  status = jaxc_host_create(&options, &host, &message);
  if (status == JAXC_OK) status = jaxc_host_probe_apart(host, handler, &metadata, &message);
  jaxc_host_destroy(host);
  Py_END_ALLOW_THREADS
  /* A newer version is for the caller to refuse, who knows the runtime's. */
  if (status != JAXC_OK && metadata.minor_version == 0) {
    PyErr_SetString(PyExc_ValueError, message.text);
    return NULL;
  }
  return Py_BuildValue("(iiI)", (int)metadata.major_version, (int)metadata.minor_version,
                       (unsigned int)metadata.traits);
}

#ifdef _WIN32

PyObject *jaxci_exported_symbols(PyObject *module, PyObject *path) {
  (void)module;
  (void)path;
  return PyTuple_New(0);
}

#else

static void add_name(const char *name, int is_function, void *data) {
  PyObject *const list = (PyObject *)data;
  PyObject *text;
  (void)is_function;
  if (PyErr_Occurred()) return;
  text = PyUnicode_FromString(name);
  if (text == NULL) {
    PyErr_Clear(); /* a name that is not UTF-8 is none that anybody looks for */
    return;
  }
  (void)PyList_Append(list, text);
  Py_DECREF(text);
}

PyObject *jaxci_exported_symbols(PyObject *module, PyObject *path) {
  PyObject *encoded = NULL;
  PyObject *list = NULL;
  const char *name;
  void *handle;
  (void)module;
  if (!PyUnicode_FSConverter(path, &encoded)) return NULL;
  name = PyBytes_AsString(encoded);
  handle = name != NULL ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (handle == NULL) {
    const char *const reason = dlerror();
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_OSError, reason != NULL ? reason : name);
    goto done;
  }
  list = PyList_New(0);
  if (list != NULL) {
    (void)jaxci_elf_symbols(handle, add_name, list);
    if (PyErr_Occurred()) Py_CLEAR(list);
  }
  dlclose(handle); /* the caller holds the library */
done:
  Py_DECREF(encoded);
  return list;
}

#endif
