/* callback.c: see callback.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "callback.h"

#include <jaxc/batch.h>
#include <stdlib.h>

#include "adopted.h"
#include "failure.h"
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

/* Calls function(*arrays, **statics); 0, or -1 with an exception. */
static int call_function(const callback_adopted *self, PyObject *arrays,
                         PyObject *statics) {
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
static void end_failed(jaxci_adopted_call *call, const callback_adopted *self,
                       PyObject *arrays, jaxc_fault *fault, long long row) {
  jaxci_failure_take(call, self->helper, fault, row);
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
    const int32_t dtype = self->base.function.parameters[k].dtype;
    npy_intp step = (npy_intp)jaxci_row_bytes(batch, k, dtype);
    for (int64_t back = 1; back <= own; back++) {
      const int64_t size = shape->dims[own - back];
      steps[k][leading - back] = size == 1 ? 0 : step;
      if (size != 1) sizes[leading - back] = (npy_intp)size;
      step *= (npy_intp)size;
    }
  }
  if (batch->needs_block) {
    status = jaxci_batch_block(batch, &frame->attrs, local, &allocated, message);
  }
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
    error = jaxci_failure_error(frame, function.name, status, message.text, call.detail);
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
