/* host.c: one call frame, built from Python buffers, for one call of a handler.
 *
 * Shapes and sizes come from the caller and are checked against the buffers, so that a
 * wrong description is a ValueError and not a wild read. Every buffer is held while the
 * handler runs. No thread pool, stream or state: the context is NULL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "host.h"

#include <jaxc/jaxc.h>
#include <stdlib.h>
#include <string.h>

struct jaxc_abi_error {
  int32_t code;
  char *text;
};

/* An error without its text when there is no memory for that; without any memory, one
 * that is shared and constant, since NULL would mean success. */
static jaxc_abi_error *create_error(jaxc_abi_error_create_args *args) {
  static jaxc_abi_error no_memory = {JAXC_RESOURCE_EXHAUSTED, NULL};
  const size_t length = strlen(args->message);
  jaxc_abi_error *error = (jaxc_abi_error *)malloc(sizeof *error);
  if (error == NULL) return &no_memory;
  error->code = args->code;
  error->text = (char *)malloc(length + 1);
  if (error->text == NULL) {
    free(error);
    return &no_memory;
  }
  memcpy(error->text, args->message, length + 1);
  return error;
}

static const jaxc_abi_api api = {
    .struct_size = sizeof(jaxc_abi_api),
    .api_version = {24, NULL, 0, 3},
    .error_create = create_error,
};

/* Everything that one list of operands or the attributes need; freed by clear(). */
typedef struct {
  Py_ssize_t count;
  jaxc_abi_buffer *buffers;
  Py_buffer *views; /* views[i].obj is NULL while it is not held */
  int64_t **dims;
  void **data;
  int32_t *types;
} operand_list;

static void operands_clear(operand_list *list) {
  for (Py_ssize_t i = 0; i < list->count; i++) {
    if (list->views != NULL && list->views[i].obj != NULL) {
      PyBuffer_Release(&list->views[i]);
    }
    if (list->dims != NULL) free(list->dims[i]);
  }
  free(list->buffers);
  free(list->views);
  free(list->dims);
  free(list->data);
  free(list->types);
}

/* calloc of at least one byte, or MemoryError. */
static void *allocate(Py_ssize_t count, size_t size) {
  void *memory = calloc(count > 0 ? (size_t)count : 1, size);
  if (memory == NULL) PyErr_NoMemory();
  return memory;
}

/* Fills operand i from (dtype, shape, buffer or None). */
static int operand_fill(operand_list *list, Py_ssize_t i, PyObject *item, int writable) {
  PyObject *shape, *object;
  jaxc_abi_buffer *buffer = &list->buffers[i];
  int64_t elements = 1;
  int dtype;
  if (!PyTuple_Check(item)) {
    PyErr_SetString(PyExc_TypeError, "an operand is (dtype, shape, buffer or None)");
    return -1;
  }
  if (!PyArg_ParseTuple(item, "iO!O", &dtype, &PyTuple_Type, &shape, &object)) return -1;
  buffer->struct_size = sizeof *buffer;
  buffer->dtype = dtype;
  buffer->rank = PyTuple_Size(shape);
  list->dims[i] = (int64_t *)allocate((Py_ssize_t)buffer->rank, sizeof(int64_t));
  if (list->dims[i] == NULL) return -1;
  buffer->dims = list->dims[i];
  for (Py_ssize_t axis = 0; axis < (Py_ssize_t)buffer->rank; axis++) {
    const long long size = PyLong_AsLongLong(PyTuple_GetItem(shape, axis));
    if (size == -1 && PyErr_Occurred()) return -1;
    if (!jaxc_multiply(elements, size, &elements)) {
      PyErr_Format(PyExc_ValueError, "impossible size %lld", size);
      return -1;
    }
    buffer->dims[axis] = size;
  }
  list->types[i] = JAXC_ABI_BUFFER;
  list->data[i] = buffer;
  if (object == Py_None) return 0;
  if (PyObject_GetBuffer(object, &list->views[i],
                         writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
    return -1;
  }
  if (!jaxc_multiply(elements, (int64_t)jaxc_dtype_size(dtype), &elements) ||
      elements > (int64_t)list->views[i].len) {
    PyErr_Format(PyExc_ValueError, "operand %zd needs %lld bytes, its buffer has %zd", i,
                 (long long)elements, list->views[i].len);
    return -1;
  }
  buffer->data = list->views[i].buf;
  return 0;
}

static int operands_fill(operand_list *list, PyObject *items, int writable) {
  const Py_ssize_t count = PyTuple_Size(items);
  list->buffers = (jaxc_abi_buffer *)allocate(count, sizeof *list->buffers);
  list->views = (Py_buffer *)allocate(count, sizeof *list->views);
  list->dims = (int64_t **)allocate(count, sizeof *list->dims);
  list->data = (void **)allocate(count, sizeof *list->data);
  list->types = (int32_t *)allocate(count, sizeof *list->types);
  if (list->buffers == NULL || list->views == NULL || list->dims == NULL ||
      list->data == NULL || list->types == NULL) {
    return -1;
  }
  list->count = count;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (operand_fill(list, i, PyTuple_GetItem(items, i), writable) != 0) return -1;
  }
  return 0;
}

/* An attribute of any kind that a jaxc library uses. */
typedef struct {
  jaxc_abi_span name;
  jaxc_abi_scalar scalar;
  jaxc_abi_array array;
  jaxc_abi_span string;
} attribute;

typedef struct {
  Py_ssize_t count;
  attribute *items;
  jaxc_abi_span **names;
  void **data;
  int32_t *types;
} attribute_list;

static void attributes_clear(attribute_list *list) {
  free(list->items);
  free(list->names);
  free(list->data);
  free(list->types);
}

/* Fills attribute i from (name, kind, dtype, bytes), all of which `items` keeps alive. */
static int attribute_fill(attribute_list *list, Py_ssize_t i, PyObject *item) {
  attribute *a = &list->items[i];
  const char *name;
  char *bytes;
  Py_ssize_t name_length, length;
  int kind, dtype;
  if (!PyTuple_Check(item)) {
    PyErr_SetString(PyExc_TypeError, "an attribute is (name, kind, dtype, bytes)");
    return -1;
  }
  if (!PyArg_ParseTuple(item, "s#iiy#", &name, &name_length, &kind, &dtype, &bytes,
                        &length)) {
    return -1;
  }
  a->name.ptr = name;
  a->name.len = (size_t)name_length;
  list->names[i] = &a->name;
  list->types[i] = kind;
  if (kind == JAXC_ABI_ATTR_STRING) {
    a->string.ptr = bytes;
    a->string.len = (size_t)length;
    list->data[i] = &a->string;
    return 0;
  }
  if (jaxc_dtype_size(dtype) == 0 || (size_t)length < jaxc_dtype_size(dtype) ||
      (kind != JAXC_ABI_ATTR_SCALAR && kind != JAXC_ABI_ATTR_ARRAY)) {
    PyErr_Format(PyExc_ValueError, "attribute '%s' has kind %d, dtype %d and %zd bytes",
                 name, kind, dtype, length);
    return -1;
  }
  a->scalar.dtype = a->array.dtype = dtype;
  a->scalar.value = a->array.data = bytes;
  a->array.size = (size_t)length / jaxc_dtype_size(dtype);
  list->data[i] = kind == JAXC_ABI_ATTR_SCALAR ? (void *)&a->scalar : (void *)&a->array;
  return 0;
}

static int attributes_fill(attribute_list *list, PyObject *items) {
  const Py_ssize_t count = PyTuple_Size(items);
  list->items = (attribute *)allocate(count, sizeof *list->items);
  list->names = (jaxc_abi_span **)allocate(count, sizeof *list->names);
  list->data = (void **)allocate(count, sizeof *list->data);
  list->types = (int32_t *)allocate(count, sizeof *list->types);
  if (list->items == NULL || list->names == NULL || list->data == NULL ||
      list->types == NULL) {
    return -1;
  }
  list->count = count;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (attribute_fill(list, i, PyTuple_GetItem(items, i)) != 0) return -1;
  }
  return 0;
}

static void frame_list(jaxc_abi_operands *out, const operand_list *list) {
  out->struct_size = sizeof *out;
  out->size = list->count;
  out->types = list->types;
  out->data = list->data;
}

/* Runs the handler without the interpreter lock; None, or (code, text). */
static PyObject *run(jaxc_abi_handler *handler, const operand_list *arguments,
                     const operand_list *results, const attribute_list *attributes) {
  jaxc_abi_call_frame frame;
  jaxc_abi_error *error;
  PyObject *out;
  memset(&frame, 0, sizeof frame);
  frame.struct_size = offsetof(jaxc_abi_call_frame, attrs) + sizeof frame.attrs;
  frame.api = &api;
  frame.stage = JAXC_STAGE_EXECUTE;
  frame_list(&frame.args, arguments);
  frame_list(&frame.results, results);
  frame.attrs.struct_size = sizeof frame.attrs;
  frame.attrs.size = attributes->count;
  frame.attrs.types = attributes->types;
  frame.attrs.names = attributes->names;
  frame.attrs.data = attributes->data;
  Py_BEGIN_ALLOW_THREADS
  error = handler(&frame);
  Py_END_ALLOW_THREADS
  if (error == NULL) return Py_NewRef(Py_None);
  if (error->text == NULL) return PyErr_NoMemory();
  out = Py_BuildValue("(is)", (int)error->code, error->text);
  free(error->text);
  free(error);
  return out;
}

PyObject *jaxci_call_handler(PyObject *module, PyObject *args) {
  PyObject *capsule, *arguments, *results, *attributes;
  PyObject *out = NULL;
  operand_list inputs = {0}, outputs = {0};
  attribute_list attrs = {0};
  jaxc_abi_handler *handler;
  void *address;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO!O!O!", &capsule, &PyTuple_Type, &arguments, &PyTuple_Type,
                        &results, &PyTuple_Type, &attributes)) {
    return NULL;
  }
  address = PyCapsule_GetPointer(capsule, NULL);
  if (address == NULL) return NULL;
  memcpy(&handler, &address, sizeof handler);
  if (operands_fill(&inputs, arguments, 0) == 0 &&
      operands_fill(&outputs, results, 1) == 0 && attributes_fill(&attrs, attributes) == 0) {
    out = run(handler, &inputs, &outputs, &attrs);
  }
  operands_clear(&inputs);
  operands_clear(&outputs);
  attributes_clear(&attrs);
  return out;
}
