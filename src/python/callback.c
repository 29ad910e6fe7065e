/* callback.c: see callback.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "callback.h"

#include <jaxc/batch.h>
#include <stdlib.h>

#include "adopted.h"
#include "interpreter.h"
#include "views.h"

typedef struct {
  jaxci_adopted base;
  PyObject *function;
  PyObject *helper; /* (exception) -> (first line, the rest) of the error's text */
  PyArray_Descr *dtypes[JAXC_MAX_PARAMETERS]; /* of arrays; NULL for other parameters */
  Py_ssize_t array_count;
  int is_vectorized;
} callback_adopted;

/* Takes the exception that is set: its first line goes to the fault, its traceback to the
 * call. */
static void take_exception(jaxci_adopted_call *call, PyObject *helper, jaxc_fault *fault,
                           long long row) {
  PyObject *type, *value, *traceback, *pair = NULL, *first = NULL, *rest = NULL;
  char text[512];
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL) PyException_SetTraceback(value, traceback);
  if (value != NULL) pair = PyObject_CallFunctionObjArgs(helper, value, NULL);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (pair != NULL && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "UU", &first, &rest)) {
    const char *first_utf8 = PyUnicode_AsUTF8AndSize(first, NULL);
    Py_ssize_t length = 0;
    const char *rest_utf8 =
        first_utf8 != NULL ? PyUnicode_AsUTF8AndSize(rest, &length) : NULL;
    if (rest_utf8 != NULL) {
      jaxci_adopted_fail(call, fault, row, first_utf8);
      free(call->detail);
      call->detail = (char *)malloc((size_t)length + 1);
      if (call->detail != NULL) memcpy(call->detail, rest_utf8, (size_t)length + 1);
      Py_DECREF(pair);
      return;
    }
  }
  Py_XDECREF(pair);
  if (PyErr_Occurred()) {
    jaxci_exception_text(text, sizeof text);
  } else {
    (void)snprintf(text, sizeof text, "an exception without a text");
  }
  jaxci_adopted_fail(call, fault, row, text);
}

/* Calls function(*arrays, **statics); 0, or -1 with an exception. */
static int call_function(const callback_adopted *self, PyObject *arrays, PyObject *statics) {
  PyObject *result = PyObject_Call(self->function, arrays, statics);
  int failed = result == NULL;
  Py_ssize_t held;
  if (!failed && result != Py_None) {
    PyObject *kind = PyObject_GetAttrString((PyObject *)Py_TYPE(result), "__name__");
    if (kind != NULL) {
      PyErr_Format(PyExc_TypeError,
                   "it returned a value of type %U; results are written into the arrays "
                   "that follow the inputs, and nothing is returned",
                   kind);
    }
    Py_XDECREF(kind);
    failed = 1;
  }
  Py_XDECREF(result);
  if (failed) return -1; /* its traceback may hold the arrays until it is formatted */
  held = jaxci_views_end(arrays);
  if (held < 0) return 0;
  {
    const jaxc_function *const f = &self->base.function;
    int32_t k = 0;
    for (Py_ssize_t place = -1; k < f->parameter_count; k++) {
      if (self->dtypes[k] != NULL && ++place == held) break;
    }
    PyErr_Format(PyExc_RuntimeError,
                 "it keeps '%s', or a view of it, after it has returned, when the memory is "
                 "XLA's again; keep a copy: %s.copy()",
                 f->parameters[k].name, f->parameters[k].name);
  }
  return -1;
}

/* The exception with the arrays that its frames held let go. */
static void end_failed(jaxci_adopted_call *call, const callback_adopted *self, PyObject *arrays,
                       jaxc_fault *fault, long long row) {
  take_exception(call, self->helper, fault, row);
  if (arrays != NULL) (void)jaxci_views_end(arrays);
}

static PyObject *static_value(const jaxc_parameter *parameter, const char *data) {
  switch (parameter->dtype) {
    case JAXC_PRED:
      return PyBool_FromLong(*data != 0);
    case JAXC_S64: {
      int64_t value;
      memcpy(&value, data, sizeof value);
      return PyLong_FromLongLong(value);
    }
    case JAXC_F64: {
      double value;
      memcpy(&value, data, sizeof value);
      return PyFloat_FromDouble(value);
    }
    case JAXC_C128: {
      double parts[2];
      memcpy(parts, data, sizeof parts);
      return PyComplex_FromDoubles(parts[0], parts[1]);
    }
    default: {
      const char *text;
      memcpy(&text, data, sizeof text);
      return PyUnicode_FromString(text);
    }
  }
}

/* Static values by name; *out is NULL where there are none. */
static int make_statics(const jaxc_function *f, char *const *data, PyObject **out) {
  *out = NULL;
  for (int32_t k = 0; k < f->parameter_count; k++) {
    PyObject *value;
    int failed;
    if (f->parameters[k].role != JAXC_ROLE_STATIC) continue;
    if (*out == NULL && (*out = PyDict_New()) == NULL) return -1;
    value = static_value(&f->parameters[k], data[k]);
    failed = value == NULL || PyDict_SetItemString(*out, f->parameters[k].name, value) != 0;
    Py_XDECREF(value);
    if (failed) return -1;
  }
  return 0;
}

/* Arrays of every parameter that is one, in order. leading: axes in front of the core
 * ones, with their sizes; steps[k]: bytes along them. */
static PyObject *make_arrays(const callback_adopted *self, const long long *dims,
                             char *const *data, int32_t leading, const npy_intp *sizes,
                             const npy_intp (*steps)[JAXC_MAX_AXES]) {
  const jaxc_function *const f = &self->base.function;
  PyObject *arrays = PyTuple_New(self->array_count);
  Py_ssize_t place = 0;
  for (int32_t k = 0; arrays != NULL && k < f->parameter_count; k++) {
    const jaxc_parameter *const parameter = &f->parameters[k];
    npy_intp shape[2 * JAXC_MAX_AXES], strides[2 * JAXC_MAX_AXES];
    npy_intp step = (npy_intp)jaxc_dtype_size(parameter->dtype);
    PyObject *view;
    if (self->dtypes[k] == NULL) continue;
    for (int32_t axis = parameter->rank; axis-- > 0;) {
      int64_t size = 0; /* the handler has compared it */
      (void)jaxc_bound_value(&parameter->bounds[axis], dims, &size);
      shape[leading + axis] = (npy_intp)size;
      strides[leading + axis] = step;
      step *= (npy_intp)size;
    }
    for (int32_t axis = 0; axis < leading; axis++) {
      shape[axis] = sizes[axis];
      strides[axis] = steps[k][axis];
    }
    view = jaxci_view_new(self->dtypes[k], leading + parameter->rank, shape, strides,
                          data[k], parameter->role == JAXC_ROLE_OUTPUT);
    if (view == NULL || PyTuple_SetItem(arrays, place++, view) != 0) Py_CLEAR(arrays);
  }
  return arrays;
}

static int callback_rows(const long long *dims, char *const *data, const long long *strides,
                         long long count, jaxc_fault *fault) {
  jaxci_adopted_call *const call = (jaxci_adopted_call *)(void *)data[0];
  const callback_adopted *const self =
      (const callback_adopted *)(const void *)call->self;
  const jaxc_function *const f = &self->base.function;
  char *place[JAXCI_MAX_SLOTS];
  PyObject *statics = NULL;
  jaxci_held held;
  int failed;
  if (!jaxci_interpreter_take(&held)) {
    jaxci_adopted_fail(call, fault, 0, JAXCI_NO_INTERPRETER);
    return 1;
  }
  memcpy(place, data, (size_t)f->parameter_count * sizeof *place);
  failed = make_statics(f, data, &statics) != 0;
  if (failed) end_failed(call, self, NULL, fault, 0);
  for (long long row = 0; !failed && row < count; row++) {
    PyObject *arrays = make_arrays(self, dims, place, 0, NULL, NULL);
    failed = arrays == NULL || call_function(self, arrays, statics) != 0;
    if (failed) end_failed(call, self, arrays, fault, row);
    Py_XDECREF(arrays);
    for (int32_t k = 0; k < f->parameter_count; k++) {
      if (self->dtypes[k] != NULL) place[k] += strides[k];
    }
  }
  Py_XDECREF(statics);
  jaxci_interpreter_give(&held);
  return failed;
}

/* One call for all rows: arrays with their leading axes, where one that an operand lacks,
 * or has at size 1, has step 0. */
static jaxc_status run_whole(const jaxc_abi_call_frame *frame, jaxci_batch *batch,
                             jaxci_adopted_call *call, jaxc_message *message) {
  const callback_adopted *const self =
      (const callback_adopted *)(const void *)call->self;
  npy_intp sizes[JAXC_MAX_AXES];
  npy_intp(*steps)[JAXC_MAX_AXES];
  char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
  void *allocated = NULL;
  jaxc_fault fault = {0, 0, NULL};
  jaxc_status status = JAXC_OK;
  jaxci_axes axes;
  PyObject *statics = NULL, *arrays = NULL;
  jaxci_held held;
  const int32_t leading = (int32_t)batch->leading;
  JAXC_TRY(jaxci_batch_axes(batch, &axes, message)); /* they broadcast, and are few */
  if (batch->rows == 0) return JAXC_OK;
  for (int32_t axis = 0; axis < leading; axis++) sizes[axis] = 1;
  steps = (npy_intp(*)[JAXC_MAX_AXES])calloc((size_t)batch->slot_count, sizeof *steps);
  if (steps == NULL) return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory");
  for (int32_t k = 0; k < batch->slot_count; k++) {
    const jaxci_shape *const shape = &batch->shapes[k];
    const int64_t own = shape->rank - batch->core_rank[k];
    npy_intp step = (npy_intp)jaxci_row_bytes(batch, k, self->base.function.parameters[k].dtype);
    for (int64_t back = 1; back <= own; back++) {
      const int64_t size = shape->dims[own - back];
      steps[k][leading - back] = size == 1 ? 0 : step;
      if (size != 1) sizes[leading - back] = (npy_intp)size;
      step *= (npy_intp)size;
    }
  }
  if (batch->needs_block) status = jaxci_batch_block(batch, &frame->attrs, local, &allocated, message);
  if (status != JAXC_OK) goto done;
  batch->rows = 1; /* an error is of the whole */
  if (!jaxci_interpreter_take(&held)) {
    status = JAXC_FAIL(message, JAXC_CANCELLED, "%s", JAXCI_NO_INTERPRETER);
    goto done;
  }
  if (make_statics(&self->base.function, batch->data, &statics) == 0) {
    arrays = make_arrays(self, batch->dims, batch->data, leading, sizes,
                         (const npy_intp(*)[JAXC_MAX_AXES])steps);
  }
  if (arrays == NULL || call_function(self, arrays, statics) != 0) {
    end_failed(call, self, arrays, &fault, 0);
    status = jaxci_batch_fault(batch, &fault, 0, message);
  }
  Py_XDECREF(arrays);
  Py_XDECREF(statics);
  jaxci_interpreter_give(&held);
done:
  free(allocated);
  free(steps);
  return status;
}

/* The runtime's error: name, message, and the traceback, however long. */
static jaxc_abi_error *make_error(const jaxc_abi_call_frame *frame, const char *name,
                                  jaxc_status status, const char *text,
                                  const char *detail) {
  const size_t size = strlen(name) + strlen(text) + (detail != NULL ? strlen(detail) : 0) + 8;
  char *whole = (char *)malloc(size);
  jaxc_abi_error *error;
  if (whole == NULL) return jaxc_error_create(frame->api, status, text);
  (void)snprintf(whole, size, "%s: %s%s%s", name, text, detail != NULL ? "\n\n" : "",
                 detail != NULL ? detail : "");
  error = jaxc_error_create(frame->api, status, whole);
  free(whole);
  return error;
}

static jaxc_abi_error *callback_run(jaxc_abi_call_frame *frame, const jaxci_adopted *base) {
  const callback_adopted *const self = (const callback_adopted *)(const void *)base;
  jaxc_function function = base->function;
  jaxci_adopted_call call = {base, NULL, NULL};
  jaxc_abi_error *error = NULL;
  jaxci_batch batch;
  jaxc_message message;
  jaxc_status status;
  if (jaxc_call_answer_metadata(frame, 0)) return NULL;
  function.data = &call;
  batch.function = &function;
  message.text[0] = '\0';
  if (self->is_vectorized) {
    status = jaxci_batch_operands(&batch, frame, &message);
    if (status == JAXC_OK) status = jaxci_batch_dims(&batch, &message);
    if (status == JAXC_OK) status = run_whole(frame, &batch, &call, &message);
  } else {
    status = jaxci_batch_run(frame, &batch, &message);
  }
  if (status != JAXC_OK) {
    error = make_error(frame, function.name, status, message.text, call.detail);
  }
  jaxci_adopted_end(&call);
  return error;
}

PyObject *jaxci_adopt_callback(PyObject *module, PyObject *args) {
  PyObject *record, *function, *helper, *dtypes;
  callback_adopted *self;
  int is_vectorized;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  if (!PyArg_ParseTuple(args, "O!OOO!p", &PyTuple_Type, &record, &function, &helper,
                        &PyTuple_Type, &dtypes, &is_vectorized)) {
    return NULL;
  }
  self = (callback_adopted *)jaxci_adopted_create(sizeof *self, record);
  if (self == NULL) return NULL;
  if (PyTuple_Size(dtypes) != self->base.function.parameter_count) {
    free(self);
    PyErr_SetString(PyExc_ValueError, "a dtype, or None, for each parameter is needed");
    return NULL;
  }
  for (Py_ssize_t k = 0; k < PyTuple_Size(dtypes); k++) {
    PyObject *dtype = PyTuple_GetItem(dtypes, k);
    const int rank = (int)self->base.function.parameters[k].rank;
    if (dtype == Py_None) continue;
    if (!PyObject_TypeCheck(dtype, &PyArrayDescr_Type) || rank > JAXC_MAX_AXES) {
      free(self);
      PyErr_SetString(PyExc_ValueError, "an array has no dtype, or too many axes");
      return NULL;
    }
    self->dtypes[k] = (PyArray_Descr *)(void *)Py_NewRef(dtype);
    self->array_count++;
  }
  self->function = Py_NewRef(function);
  self->helper = Py_NewRef(helper);
  self->is_vectorized = is_vectorized;
  self->base.function.rows = callback_rows;
  self->base.handle = callback_run;
  return jaxci_adopted_publish(&self->base);
}

/* ---- raw: func(inputs, outputs, attrs, context) ---- */

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
      for (int64_t axis = 0; axis < view.rank; axis++) sizes[axis] = (npy_intp)view.dims[axis];
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

static PyObject *raw_attribute(const raw_adopted *self, int32_t kind, void *data, int depth) {
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
    PyObject *name = PyUnicode_DecodeUTF8(span->ptr, (Py_ssize_t)span->len, "surrogateescape");
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
  PyObject *result = context != NULL ? PyObject_CallFunctionObjArgs(
                                           self->function, inputs, outputs, attrs, context, NULL)
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
    return make_error(frame, self->name, JAXC_INVALID_ARGUMENT, message.text, NULL);
  }
  if (!jaxci_interpreter_take(&held)) {
    return make_error(frame, self->name, JAXC_CANCELLED, JAXCI_NO_INTERPRETER, NULL);
  }
  inputs = raw_arrays(self, &frame->args, 0);
  outputs = inputs != NULL ? raw_arrays(self, &frame->results, 1) : NULL;
  failed = outputs == NULL || raw_call(self, frame, inputs, outputs) != 0;
  if (failed) take_exception(&call, self->helper, &fault, 0);
  for (int i = 0; i < 2; i++) {
    PyObject *const list = i == 0 ? inputs : outputs;
    const Py_ssize_t kept = list != NULL ? jaxci_views_end(list) : -1;
    if (kept >= 0 && !failed) {
      PyErr_Format(PyExc_RuntimeError,
                   "it keeps %s %zd, or a view of it, after it has returned, when the memory "
                   "is XLA's again; keep a copy",
                   i == 0 ? "input" : "output", kept);
      take_exception(&call, self->helper, &fault, 0);
      failed = 1;
    }
  }
  Py_XDECREF(inputs);
  Py_XDECREF(outputs);
  jaxci_interpreter_give(&held);
  if (failed) error = make_error(frame, self->name, JAXC_UNKNOWN, fault.text, call.detail);
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
