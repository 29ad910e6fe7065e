/* host.c: one call of a handler on Python buffers, by the host of <jaxc/host.h>.
 *
 * Shapes and sizes come from the caller and are checked against the buffers, so that a
 * wrong description is a ValueError and not a wild read. Every buffer is held while the
 * handler runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include <jaxc/host.h>
#include <jaxc/jaxc.h>
#include <string.h>

/* What one call holds; all zero before begin(). */
typedef struct {
  jaxc_host *host;
  jaxc_host_call *call;
  Py_buffer *views;
  Py_ssize_t view_count;
  jaxc_message message;
} session;

static void session_clear(session *s) {
  jaxc_host_call_destroy(s->call);
  jaxc_host_destroy(s->host);
  for (Py_ssize_t i = 0; i < s->view_count; i++) PyBuffer_Release(&s->views[i]);
  PyMem_Free(s->views);
}

/* 0, or -1 with an exception that has the host's own words. */
static int forward(const session *s, jaxc_status status) {
  if (status == JAXC_OK) return 0;
  if (status == JAXC_RESOURCE_EXHAUSTED) {
    PyErr_SetString(PyExc_MemoryError, s->message.text);
  } else {
    PyErr_SetString(PyExc_ValueError, s->message.text);
  }
  return -1;
}

/* Options by name, as jaxc_host_options and its faults have them. */
static int options_fill(jaxc_host_options *options, PyObject *given) {
  const struct {
    const char *name;
    int32_t *place;
  } numbers[] = {{"minor", &options->minor},
                 {"profile", &options->profile},
                 {"thread_count", &options->thread_count},
                 {"device_ordinal", &options->device_ordinal},
                 {"flush_denormals", &options->flush_denormals},
                 {"timeout_s", &options->timeout_s},
                 {"unknown_extensions", &options->faults.unknown_extensions}};
  const struct {
    const char *name;
    int64_t *place;
  } large[] = {{"run_id", &options->run_id},
               {"fail_allocation", &options->faults.fail_allocation},
               {"fail_error", &options->faults.fail_error}};
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    PyObject *value = PyDict_GetItemString(given, numbers[i].name);
    if (value == NULL) continue;
    *numbers[i].place = (int32_t)PyLong_AsLong(value);
    if (PyErr_Occurred()) return -1;
  }
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    PyObject *value = PyDict_GetItemString(given, large[i].name);
    if (value == NULL) continue;
    *large[i].place = PyLong_AsLongLong(value);
    if (PyErr_Occurred()) return -1;
  }
  return 0;
}

static int handlers_fill(jaxc_abi_bundle *handlers, PyObject *capsules) {
  jaxc_abi_handler **places[] = {&handlers->instantiate, &handlers->prepare,
                                 &handlers->initialize, &handlers->execute};
  if (PyTuple_Size(capsules) != 4) {
    PyErr_SetString(PyExc_ValueError, "handlers are a tuple of four");
    return -1;
  }
  memset(handlers, 0, sizeof *handlers);
  for (Py_ssize_t i = 0; i < 4; i++) {
    PyObject *capsule = PyTuple_GetItem(capsules, i);
    void *address;
    if (capsule == Py_None) continue;
    address = PyCapsule_GetPointer(capsule, NULL);
    if (address == NULL) return -1;
    memcpy(places[i], &address, sizeof address);
  }
  return 0;
}

/* Adds an operand (dtype, shape, buffer or None). */
static int operand_add(session *s, PyObject *item, int is_result) {
  PyObject *shape, *object;
  int64_t dims[32], bits;
  Py_ssize_t rank;
  int dtype;
  Py_buffer *view = &s->views[s->view_count];
  void *data = NULL;
  if (!PyTuple_Check(item)) {
    PyErr_SetString(PyExc_TypeError, "an operand is (dtype, shape, buffer or None)");
    return -1;
  }
  if (!PyArg_ParseTuple(item, "iO!O", &dtype, &PyTuple_Type, &shape, &object)) return -1;
  rank = PyTuple_Size(shape);
  if (rank > (Py_ssize_t)(sizeof dims / sizeof *dims)) {
    PyErr_Format(PyExc_ValueError, "an operand has %zd axes, at most 32 are possible", rank);
    return -1;
  }
  bits = (int64_t)jaxc_dtype_bits(dtype);
  for (Py_ssize_t axis = 0; axis < rank; axis++) {
    const long long size = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
    if (size == -1 && PyErr_Occurred()) return -1;
    if (!jaxc_multiply(bits, size, &bits)) {
      PyErr_Format(PyExc_ValueError, "impossible size %lld", size);
      return -1;
    }
    dims[axis] = size;
  }
  if (object != Py_None) {
    const int64_t bytes = bits / 8 + (bits % 8 != 0);
    if (PyObject_GetBuffer(object, view, is_result ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
      return -1;
    }
    s->view_count++;
    if (bytes > (int64_t)view->len) {
      PyErr_Format(PyExc_ValueError, "an operand needs %lld bytes, its buffer has %zd",
                   (long long)bytes, view->len);
      return -1;
    }
    data = view->buf;
  }
  return forward(s, is_result ? jaxc_host_call_result(s->call, dtype, (int32_t)rank, dims,
                                                      data, &s->message)
                              : jaxc_host_call_argument(s->call, dtype, (int32_t)rank, dims,
                                                        data, &s->message));
}

static int operands_add(session *s, PyObject *items, int is_result) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
    if (operand_add(s, PyTuple_GetItem(items, i), is_result) != 0) return -1;
  }
  return 0;
}

static int attributes_add(session *s, jaxc_host_attrs *attrs, PyObject *items, int depth);

/* Adds an attribute (name, kind, dtype, bytes), or for a dictionary its attributes. */
static int attribute_add(session *s, jaxc_host_attrs *attrs, PyObject *item, int depth) {
  PyObject *payload;
  const char *name;
  char *bytes = NULL;
  Py_ssize_t length = 0;
  int kind, dtype;
  size_t size;
  if (!PyTuple_Check(item)) {
    PyErr_SetString(PyExc_TypeError, "an attribute is (name, kind, dtype, bytes)");
    return -1;
  }
  if (!PyArg_ParseTuple(item, "siiO", &name, &kind, &dtype, &payload)) return -1;
  if (kind == JAXC_ABI_ATTR_DICTIONARY) {
    jaxc_host_attrs *inner = NULL;
    if (!PyTuple_Check(payload)) {
      PyErr_SetString(PyExc_TypeError, "a dictionary is a tuple of attributes");
      return -1;
    }
    if (forward(s, jaxc_host_attrs_dictionary(attrs, name, &inner, &s->message)) != 0) {
      return -1;
    }
    return attributes_add(s, inner, payload, depth + 1);
  }
  if (PyBytes_AsStringAndSize(payload, &bytes, &length) != 0) return -1;
  if (kind == JAXC_ABI_ATTR_STRING) {
    return forward(
        s, jaxc_host_attrs_string(attrs, name, bytes, (size_t)length, &s->message));
  }
  size = jaxc_dtype_size(dtype);
  if (size == 0 || (size_t)length % size != 0 ||
      (kind == JAXC_ABI_ATTR_SCALAR && (size_t)length != size) ||
      (kind != JAXC_ABI_ATTR_SCALAR && kind != JAXC_ABI_ATTR_ARRAY)) {
    PyErr_Format(PyExc_ValueError, "attribute '%s' has kind %d, dtype %d and %zd bytes",
                 name, kind, dtype, length);
    return -1;
  }
  if (kind == JAXC_ABI_ATTR_SCALAR) {
    return forward(s, jaxc_host_attrs_scalar(attrs, name, dtype, bytes, &s->message));
  }
  return forward(s, jaxc_host_attrs_array(attrs, name, dtype, (size_t)length / size, bytes,
                                          &s->message));
}

static int attributes_add(session *s, jaxc_host_attrs *attrs, PyObject *items, int depth) {
  if (depth > 16) {
    PyErr_SetString(PyExc_ValueError, "dictionaries are nested more than 16 deep");
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
    if (attribute_add(s, attrs, PyTuple_GetItem(items, i), depth) != 0) return -1;
  }
  return 0;
}

/* Registers types (name, capsule of the id, capsule of the info or None). */
static int types_add(session *s, PyObject *types) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); i++) {
    PyObject *item = PyTuple_GetItem(types, i);
    PyObject *id_capsule, *info_capsule;
    jaxc_abi_type_id *id;
    const jaxc_abi_type_info *info = NULL;
    const char *name;
    if (!PyTuple_Check(item)) {
      PyErr_SetString(PyExc_TypeError, "a type is (name, type_id, type_info or None)");
      return -1;
    }
    if (!PyArg_ParseTuple(item, "sOO", &name, &id_capsule, &info_capsule)) return -1;
    id = (jaxc_abi_type_id *)PyCapsule_GetPointer(id_capsule,
                                                  PyCapsule_GetName(id_capsule));
    if (id == NULL) return -1;
    if (info_capsule != Py_None) {
      info = (const jaxc_abi_type_info *)PyCapsule_GetPointer(
          info_capsule, PyCapsule_GetName(info_capsule));
      if (info == NULL) return -1;
    }
    if (forward(s, jaxc_host_add_type(s->host, name, &id->type_id,
                                      info != NULL ? info->deleter : NULL,
                                      &s->message)) != 0) {
      return -1;
    }
  }
  return 0;
}

static int session_begin(session *s, PyObject *capsules, Py_ssize_t operand_count,
                         PyObject *types, PyObject *given) {
  jaxc_host_options options;
  jaxc_abi_bundle handlers;
  if (handlers_fill(&handlers, capsules) != 0 || options_fill(&options, given) != 0) {
    return -1;
  }
  s->views = (Py_buffer *)PyMem_Calloc((size_t)operand_count + 1, sizeof *s->views);
  if (s->views == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  if (forward(s, jaxc_host_create(&options, &s->host, &s->message)) != 0) return -1;
  if (types_add(s, types) != 0) return -1;
  return forward(s, jaxc_host_call_create(s->host, &handlers, &s->call, &s->message));
}

/* Runs the call without the interpreter lock; None, or (code, text). */
static PyObject *session_run(session *s) {
  jaxc_status status;
  Py_BEGIN_ALLOW_THREADS
  status = jaxc_host_call_run(s->call, &s->message);
  if (status == JAXC_OK) status = jaxc_host_call_check(s->call, &s->message);
  if (status == JAXC_OK) status = jaxc_host_leaks(s->host, &s->message);
  Py_END_ALLOW_THREADS
  if (status == JAXC_OK) return Py_NewRef(Py_None);
  return Py_BuildValue("(iN)", (int)status,
                       PyUnicode_DecodeUTF8(s->message.text,
                                            (Py_ssize_t)strlen(s->message.text),
                                            "replace"));
}

PyObject *jaxci_call_handler(PyObject *module, PyObject *args) {
  PyObject *capsules, *arguments, *results, *attributes, *types, *options;
  PyObject *out = NULL;
  session s;
  (void)module;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!", &PyTuple_Type, &capsules, &PyTuple_Type,
                        &arguments, &PyTuple_Type, &results, &PyTuple_Type, &attributes,
                        &PyTuple_Type, &types, &PyDict_Type, &options)) {
    return NULL;
  }
  memset(&s, 0, sizeof s);
  if (session_begin(&s, capsules, PyTuple_Size(arguments) + PyTuple_Size(results),
                    types, options) == 0 &&
      operands_add(&s, arguments, 0) == 0 && operands_add(&s, results, 1) == 0 &&
      attributes_add(&s, jaxc_host_call_attrs(s.call), attributes, 0) == 0) {
    out = session_run(&s);
  }
  session_clear(&s);
  return out;
}
