/* raw_callback.c: see callback.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/attrs.h>
#include <jaxc/call.h>
#include <jaxc/context.h>

#include "adopted.h"
#include "callback.h"
#include "failure.h"
#include "interpreter.h"
#include "views.h"

typedef struct {
  jaxci_adopted base;
  const char *name;
  PyObject *function;
  PyObject *helper;
  PyObject *dtypes;  /* XLA's number -> dtype */
  PyObject *context; /* (stage, platform, device ordinal, run id, stream) -> object */
} raw_adopted;

static PyArray_Descr *raw_dtype(const raw_adopted *self, int32_t dtype) {
  PyObject *number = PyLong_FromLong(dtype);
  PyObject *found = number != NULL ? PyDict_GetItemWithError(self->dtypes, number) : NULL;
  Py_XDECREF(number);
  if (found != NULL) return (PyArray_Descr *)(void *)found;
  if (!PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError, "NumPy has no dtype for XLA's %s (%d)",
                 jaxc_dtype_name(dtype), (int)dtype);
  }
  return NULL;
}

static PyObject *raw_arrays(const raw_adopted *self, const jaxc_abi_operands *operands,
                            int is_result) {
  PyObject *list = PyList_New((Py_ssize_t)operands->size);
  for (int64_t i = 0; list != NULL && i < operands->size; i++) {
    jaxc_message message;
    jaxc_view view;
    PyObject *item = NULL;
    npy_intp sizes[NPY_MAXDIMS];
    if (jaxc_call_operand(operands, i, is_result ? "result" : "argument", "", JAXC_ANY,
                          JAXC_ANY_RANK, &view, &message) != JAXC_OK) {
      PyErr_SetString(PyExc_ValueError, message.text);
    } else if (view.rank > NPY_MAXDIMS) {
      PyErr_Format(PyExc_ValueError, "an array has %lld axes", (long long)view.rank);
    } else if (view.dtype == JAXC_TOKEN) {
      item = Py_NewRef(Py_None);
    } else {
      PyArray_Descr *dtype = raw_dtype(self, view.dtype);
      for (int64_t axis = 0; axis < view.rank; axis++) {
        sizes[axis] = (npy_intp)view.dims[axis];
      }
      if (dtype != NULL) {
        item = jaxci_view_new(dtype, (int)view.rank, sizes, NULL,
                              view.data != NULL ? view.data : sizes, is_result);
      }
    }
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) Py_CLEAR(list);
  }
  return list;
}

static PyObject *raw_attributes(const raw_adopted *self, const jaxc_abi_attrs *attrs,
                                int depth);

static PyObject *raw_attribute(const raw_adopted *self, int32_t kind, void *data,
                               int depth) {
  switch (kind) {
    case JAXC_ABI_ATTR_SCALAR: {
      const jaxc_abi_scalar *const scalar = (const jaxc_abi_scalar *)data;
      PyArray_Descr *dtype = raw_dtype(self, scalar->dtype);
      return dtype != NULL ? PyArray_Scalar(scalar->value, dtype, NULL) : NULL;
    }
    case JAXC_ABI_ATTR_ARRAY: {
      const jaxc_abi_array *const array = (const jaxc_abi_array *)data;
      PyArray_Descr *dtype = raw_dtype(self, array->dtype);
      npy_intp size = (npy_intp)array->size;
      PyObject *out;
      if (dtype == NULL) return NULL;
      Py_INCREF((PyObject *)(void *)dtype);
      out = PyArray_NewFromDescr(&PyArray_Type, dtype, 1, &size, NULL, NULL, 0, NULL);
      if (out != NULL && array->size != 0) { /* a copy: attributes go with the call */
        memcpy(PyArray_DATA((PyArrayObject *)(void *)out), array->data,
               (size_t)PyArray_NBYTES((PyArrayObject *)(void *)out));
      }
      return out;
    }
    case JAXC_ABI_ATTR_STRING: {
      const jaxc_abi_span *const span = (const jaxc_abi_span *)data;
      return PyUnicode_DecodeUTF8(span->ptr, (Py_ssize_t)span->len, "surrogateescape");
    }
    case JAXC_ABI_ATTR_DICTIONARY:
      return raw_attributes(self, (const jaxc_abi_attrs *)data, depth + 1);
    default:
      PyErr_Format(PyExc_TypeError, "an attribute has the unknown kind %d", (int)kind);
      return NULL;
  }
}

static PyObject *raw_attributes(const raw_adopted *self, const jaxc_abi_attrs *attrs,
                                int depth) {
  PyObject *out;
  if (depth > 32 || !jaxci_attrs_are_whole(attrs)) {
    PyErr_SetString(PyExc_ValueError, "attributes are damaged, or nested too deeply");
    return NULL;
  }
  out = PyDict_New();
  for (int64_t i = 0; out != NULL && i < attrs->size; i++) {
    const jaxc_abi_span *const span = attrs->names[i];
    PyObject *name =
        PyUnicode_DecodeUTF8(span->ptr, (Py_ssize_t)span->len, "surrogateescape");
    PyObject *value =
        name != NULL ? raw_attribute(self, attrs->types[i], attrs->data[i], depth) : NULL;
    if (value == NULL || PyDict_SetItem(out, name, value) != 0) Py_CLEAR(out);
    Py_XDECREF(name);
    Py_XDECREF(value);
  }
  return out;
}

static PyObject *raw_context(const raw_adopted *self, const jaxc_abi_call_frame *frame) {
  static const char *const stages[] = {"instantiate", "prepare", "initialize", "execute"};
  jaxc_context context;
  int32_t ordinal = 0;
  int64_t run_id = 0;
  PyObject *ordinal_object, *run_id_object;
  jaxci_context_begin(&context, frame, self->name);
  ordinal_object = jaxc_context_device_ordinal(&context, &ordinal) == JAXC_OK
                       ? PyLong_FromLong(ordinal)
                       : Py_NewRef(Py_None);
  run_id_object = jaxc_context_run_id(&context, &run_id) == JAXC_OK
                      ? PyLong_FromLongLong(run_id)
                      : Py_NewRef(Py_None);
  /* A stream is there on GPUs only, where no Python function is registered. */
  return PyObject_CallFunction(
      self->context, "ssNNO",
      frame->stage >= 0 && frame->stage <= 3 ? stages[frame->stage] : "unknown", "cpu",
      ordinal_object, run_id_object, Py_None);
}

/* Calls the function; 0, or -1 with an exception. */
static int raw_call(const raw_adopted *self, const jaxc_abi_call_frame *frame,
                    PyObject *inputs, PyObject *outputs) {
  PyObject *attrs = raw_attributes(self, &frame->attrs, 0);
  PyObject *context = attrs != NULL ? raw_context(self, frame) : NULL;
  PyObject *result =
      context != NULL ? PyObject_CallFunctionObjArgs(self->function, inputs, outputs, attrs,
                                                     context, NULL)
                      : NULL;
  int failed = result == NULL;
  Py_XDECREF(attrs);
  Py_XDECREF(context);
  if (!failed && result != Py_None) {
    PyErr_SetString(PyExc_TypeError,
                    "it returned a value; results are written into `outputs`, and nothing is "
                    "returned");
    failed = 1;
  }
  Py_XDECREF(result);
  return failed ? -1 : 0;
}

static jaxc_abi_error *raw_run(jaxc_abi_call_frame *frame, const jaxci_adopted *base) {
  const raw_adopted *const self = (const raw_adopted *)(const void *)base;
  jaxci_adopted_call call = {base, NULL, NULL};
  jaxc_fault fault = {0, 0, NULL};
  jaxc_abi_error *error = NULL;
  jaxc_message message;
  PyObject *inputs, *outputs;
  jaxci_held held;
  int failed;
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  if (jaxc_call_check_frame(frame, &message) != JAXC_OK) {
    return jaxci_failure_error(frame, self->name, JAXC_INVALID_ARGUMENT, message.text, NULL);
  }
  if (!jaxci_interpreter_take(&held)) {
    return jaxci_failure_error(frame, self->name, JAXC_CANCELLED, JAXCI_NO_INTERPRETER, NULL);
  }
  inputs = raw_arrays(self, &frame->args, 0);
  outputs = inputs != NULL ? raw_arrays(self, &frame->results, 1) : NULL;
  failed = outputs == NULL || raw_call(self, frame, inputs, outputs) != 0;
  if (failed) jaxci_failure_take(&call, self->helper, &fault, 0);
  for (int i = 0; i < 2; i++) {
    PyObject *const list = i == 0 ? inputs : outputs;
    const Py_ssize_t kept = list != NULL ? jaxci_views_end(list) : -1;
    if (kept >= 0 && !failed) {
      PyErr_Format(PyExc_RuntimeError,
                   "it keeps %s %zd, or a view of it, after it has returned, when the memory "
                   "is XLA's again; keep a copy",
                   i == 0 ? "input" : "output", kept);
      jaxci_failure_take(&call, self->helper, &fault, 0);
      failed = 1;
    }
  }
  Py_XDECREF(inputs);
  Py_XDECREF(outputs);
  jaxci_interpreter_give(&held);
  if (failed) error = jaxci_failure_error(frame, self->name, JAXC_UNKNOWN, fault.text, call.detail);
  jaxci_adopted_end(&call);
  return error;
}

PyObject *jaxci_adopt_raw_callback(PyObject *module, PyObject *args) {
  PyObject *name, *function, *helper, *dtypes, *context;
  raw_adopted *self;
  const char *utf8;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  if (!PyArg_ParseTuple(args, "UOOO!O", &name, &function, &helper, &PyDict_Type, &dtypes,
                        &context)) {
    return NULL;
  }
  utf8 = PyUnicode_AsUTF8AndSize(name, NULL); /* lives as long as the name */
  self = utf8 != NULL ? (raw_adopted *)jaxci_adopted_create(sizeof *self, NULL) : NULL;
  if (self == NULL) return NULL;
  Py_INCREF(name);
  self->name = utf8;
  self->function = Py_NewRef(function);
  self->helper = Py_NewRef(helper);
  self->dtypes = Py_NewRef(dtypes);
  self->context = Py_NewRef(context);
  self->base.handle = raw_run;
  return jaxci_adopted_publish(&self->base);
}
