/* gufunc.c: see gufunc.h.
 *
 * NumPy brings rows with any steps, and core axes with any steps; the C function takes dense
 * core axes. An operand whose core axes are not dense goes through a buffer, a row at a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gufunc.h"

#include <fenv.h>
#include <jaxc/batch.h>
#include <stdlib.h>

#include "adopted.h"
#include "numpy_api.h"

/* Sizes of all core axes of one call. */
#define MOST_AXES 256

/* One inner loop: a function with its static values. */
typedef struct {
  jaxc_function function;
  const jaxci_adopted *adopted; /* or NULL */
  const PyUFuncObject *ufunc;
  long long dims[JAXC_MAX_DIMS]; /* static ones; JAXCI_UNKNOWN otherwise */
  jaxci_value statics[JAXC_MAX_PARAMETERS];
} member;

/* What a ufunc of ours keeps: freed with it. */
typedef struct {
  int count;
  member *members;
  PyUFuncGenericFunction *loops;
  void **data;
  char *types;
  PyObject *keep; /* the arguments, to which names and strings belong */
} group;

/* The operands of one call in NumPy's order, inputs and then outputs. */
typedef struct {
  int count;
  int32_t slot[JAXCI_MAX_SLOTS];
  int32_t parameter[JAXCI_MAX_SLOTS];
  int64_t sizes[MOST_AXES];
} operands;

static int rank_of(const PyUFuncObject *u, int k) {
  return u->core_enabled ? u->core_num_dims[k] : 0;
}

/* Fills the batch with what shapes say; sizes: of each core dimension of the ufunc. Outputs
 * only when `with_outputs`, as before their sizes are known they have none. */
static void fill_batch(const member *m, const npy_intp *sizes, int with_outputs,
                       jaxci_batch *batch, operands *ops) {
  const jaxc_function *const f = &m->function;
  int64_t *next = ops->sizes;
  memset(batch, 0, sizeof *batch);
  batch->function = f;
  batch->slot_count = f->parameter_count;
  batch->prepares = (f->flags & JAXC_FUNCTION_ZERO) != 0 ? JAXCI_PREPARE_ZEROS : 0;
  batch->context = batch->index = -1;
  batch->rows = 1;
  memcpy(batch->dims, m->dims, sizeof batch->dims);
  memcpy(batch->statics, m->statics, sizeof batch->statics);
  ops->count = 0;
  for (int pass = 0; pass < 2; pass++) { /* inputs, outputs */
    for (int32_t k = 0; k < f->parameter_count; k++) {
      const jaxc_parameter *const p = &f->parameters[k];
      const int is_inout = p->role == JAXC_ROLE_INOUT;
      int32_t slot = k;
      if (pass == 0) batch->source[k] = -1;
      if (p->role != (pass == 0 ? JAXC_ROLE_INPUT : JAXC_ROLE_OUTPUT) && !is_inout) continue;
      if (is_inout && pass == 0) {
        slot = batch->source[k] = batch->slot_count++;
        batch->prepares |= JAXCI_PREPARE_COPIES;
      }
      ops->slot[ops->count] = slot;
      ops->parameter[ops->count] = k;
      if (pass == 0 || with_outputs) {
        batch->core_rank[slot] = p->rank;
        batch->shapes[slot].rank = p->rank;
        batch->shapes[slot].dims = next;
      }
      for (int32_t axis = 0; (pass == 0 || with_outputs) && axis < p->rank; axis++) {
        const int place = m->ufunc->core_offsets[ops->count] + axis;
        const int64_t size = sizes[m->ufunc->core_dim_ixs[place]];
        const int32_t dim = p->bounds[axis].dim;
        *next++ = size;
        if (dim < 0) batch->is_computed = 1;
        if (dim >= 0 && batch->dims[dim] == JAXCI_UNKNOWN) batch->dims[dim] = size;
      }
      ops->count++;
    }
  }
  for (int32_t k = 0; k < f->parameter_count; k++) {
    batch->data[k] = (char *)batch->statics;
    switch (f->parameters[k].role) {
      case JAXC_ROLE_STATIC:
        batch->data[k] = (char *)&batch->statics[k];
        break;
      case JAXC_ROLE_SCRATCH:
        batch->needs_block = 1;
        break;
      case JAXC_ROLE_CONTEXT:
        batch->context = k;
        break;
      case JAXC_ROLE_INDEX:
        batch->data[k] = (char *)batch->range;
        if (batch->index < 0) batch->index = k;
        break;
      default:
        break;
    }
  }
}

/* ---- sizes of outputs ---- */

static jaxc_status solve_sizes(const member *m, npy_intp *sizes, jaxc_message *message) {
  const jaxc_function *const f = &m->function;
  jaxci_batch batch;
  operands ops;
  fill_batch(m, sizes, 0, &batch, &ops);
  for (int32_t i = 0; i < f->solve_count; i++) {
    if (batch.dims[f->solve[i].dim] != JAXCI_UNKNOWN) continue;
    JAXC_TRY(jaxci_batch_solve(&batch, &f->solve[i], message));
  }
  for (int k = 0; k < ops.count; k++) {
    const jaxc_parameter *const p = &f->parameters[ops.parameter[k]];
    for (int32_t axis = 0; axis < p->rank; axis++) {
      npy_intp *const size = &sizes[m->ufunc->core_dim_ixs[m->ufunc->core_offsets[k] + axis]];
      int64_t expected = 0;
      if (!jaxc_bound_value(&p->bounds[axis], batch.dims, &expected) || expected < 0) {
        return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                         "the size %s of '%s' has no value for these dimensions",
                         p->bounds[axis].text, p->name);
      }
      if (*size < 0) *size = (npy_intp)expected;
      if (*size != expected) {
        return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                         "'%s' has %lld elements on core axis %d, expected %s = %lld", p->name,
                         (long long)*size, (int)axis, p->bounds[axis].text,
                         (long long)expected);
      }
    }
  }
  return JAXC_OK;
}

static int process_core_dims(PyUFuncObject *ufunc, npy_intp *sizes) {
  const PyUFuncObject *const u = (const PyUFuncObject *)(const void *)ufunc;
  const group *const g = (const group *)PyCapsule_GetPointer(u->obj, NULL);
  jaxc_message message;
  if (g == NULL) return -1;
  if (solve_sizes(&g->members[0], sizes, &message) == JAXC_OK) return 0;
  PyErr_Format(PyExc_ValueError, "%s: %s", g->members[0].function.name, message.text);
  return -1;
}

/* ---- the loop ---- */

static void raise_error(const member *m, const char *text, const char *detail) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyErr_Format(PyExc_RuntimeError, "%s: %s%s%s", m->function.name, text,
               detail != NULL ? "\n\n" : "", detail != NULL ? detail : "");
  PyGILState_Release(state);
}

/* Copies the core axes of one row; steps: along each axis of `from` and of `to`. */
static void copy_core(int rank, const int64_t *sizes, char *to, const npy_intp *to_steps,
                      const char *from, const npy_intp *from_steps, size_t item) {
  if (rank == 0) {
    memcpy(to, from, item);
    return;
  }
  for (int64_t i = 0; i < sizes[0]; i++) {
    copy_core(rank - 1, sizes + 1, to + i * to_steps[0], to_steps + 1,
              from + i * from_steps[0], from_steps + 1, item);
  }
}

/* Where an operand's rows lie, and how its core axes are laid out. */
typedef struct {
  char *data;
  npy_intp step;
  const npy_intp *core; /* NumPy's steps along core axes */
  npy_intp dense[MOST_AXES / 8];
  size_t bytes; /* of one row */
  char *buffer; /* where a row is brought to, or NULL */
} place;

static int is_dense(const place *p, int rank, const int64_t *sizes) {
  for (int axis = 0; axis < rank; axis++) {
    if (sizes[axis] != 1 && p->core[axis] != p->dense[axis]) return 0;
  }
  return 1;
}

/* A row at a time, through the buffers of operands that have one. */
static jaxc_status run_buffered(const member *m, jaxci_batch *batch, const operands *ops,
                                place *places, npy_intp count, jaxc_message *message) {
  static const long long no_strides[JAXCI_MAX_SLOTS] = {0};
  const jaxc_function *const f = &m->function;
  int64_t failed;
  for (npy_intp row = 0; row < count; row++) {
    for (int pass = 0; pass < 2; pass++) { /* to the buffers, and back */
      for (int k = 0; k < ops->count; k++) {
        place *const p = &places[k];
        const jaxc_parameter *const parameter = &f->parameters[ops->parameter[k]];
        const int is_input = k < m->ufunc->nin;
        const int64_t *const sizes = batch->shapes[ops->slot[k]].dims;
        char *const here = p->data + row * p->step;
        const size_t item = jaxc_dtype_size(parameter->dtype);
        if (pass == 0) batch->data[ops->slot[k]] = p->buffer != NULL ? p->buffer : here;
        if (p->buffer == NULL || is_input != (pass == 0)) continue;
        if (is_input) {
          copy_core(parameter->rank, sizes, p->buffer, p->dense, here, p->core, item);
        } else {
          copy_core(parameter->rank, sizes, here, p->core, p->buffer, p->dense, item);
        }
      }
      if (pass == 0) JAXC_TRY(jaxci_batch_call(batch, no_strides, 1, row, &failed, message));
    }
  }
  return JAXC_OK;
}

/* Gives a buffer to each operand that needs one, in one block; NULL in *block where none
 * does. An input that is an output's memory, as in f(x, out=x), needs one too: the loops
 * are compiled for arrays that do not overlap. */
static int make_buffers(const member *m, const jaxci_batch *batch, const operands *ops,
                        place *places, char **block) {
  size_t total = 0;
  *block = NULL;
  for (int pass = 0; pass < 2; pass++) {
    char *next = *block;
    for (int k = 0; k < ops->count; k++) {
      place *const p = &places[k];
      const int rank = rank_of(m->ufunc, k);
      int needs = !is_dense(p, rank, batch->shapes[ops->slot[k]].dims);
      for (int o = m->ufunc->nin; k < m->ufunc->nin && o < ops->count; o++) {
        needs |= p->data == places[o].data;
      }
      if (!needs) continue;
      if (pass == 1) p->buffer = next;
      total += pass == 0 ? p->bytes + 16 : 0;
      if (pass == 1) next += (p->bytes + 15) / 16 * 16;
    }
    if (total == 0) return 1;
    if (pass == 0 && (*block = (char *)malloc(total)) == NULL) return 0;
  }
  return 1;
}

static jaxc_status run(const member *m, jaxci_batch *batch, const operands *ops,
                       char **args, npy_intp count, const npy_intp *steps,
                       jaxc_message *message) {
  place places[JAXCI_MAX_SLOTS];
  long long strides[JAXCI_MAX_SLOTS] = {0};
  const npy_intp *core = steps + ops->count;
  jaxc_status status;
  char *block;
  int64_t failed;
  for (int k = 0; k < ops->count; k++) {
    place *const p = &places[k];
    const jaxc_parameter *const parameter = &m->function.parameters[ops->parameter[k]];
    npy_intp step = (npy_intp)jaxc_dtype_size(parameter->dtype);
    for (int32_t axis = parameter->rank; axis-- > 0;) {
      p->dense[axis] = step;
      step *= (npy_intp)batch->shapes[ops->slot[k]].dims[axis];
    }
    p->bytes = (size_t)step;
    p->data = args[k];
    p->step = steps[k];
    p->core = core;
    p->buffer = NULL;
    core += parameter->rank;
    batch->data[ops->slot[k]] = args[k];
    strides[ops->slot[k]] = steps[k];
  }
  if (!make_buffers(m, batch, ops, places, &block)) {
    return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory for a row");
  }
  status = block != NULL ? run_buffered(m, batch, ops, places, count, message)
                         : jaxci_batch_call(batch, strides, count, 0, &failed, message);
  free(block);
  return status;
}

/* The runtime that a function with a jaxc_context finds: it has no threads and no devices. */
static const jaxc_abi_api no_api = {
    .struct_size = offsetof(jaxc_abi_api, internal_api),
    .api_version = {sizeof(jaxc_abi_version), NULL, JAXC_ABI_MAJOR, JAXC_ABI_MINOR}};

static jaxc_status run_in_block(const member *m, jaxci_batch *batch, const operands *ops,
                                char **args, npy_intp count, const npy_intp *steps,
                                jaxc_message *message) {
  static const jaxc_abi_attrs no_attributes = {.struct_size = sizeof(jaxc_abi_attrs)};
  char local[JAXCI_LOCAL_SCRATCH + JAXCI_SCRATCH_ALIGNMENT];
  jaxc_abi_call_frame frame;
  jaxc_context context;
  void *allocated = NULL;
  jaxc_status status = JAXC_OK;
  memset(&frame, 0, sizeof frame);
  frame.struct_size = JAXC_ABI_FRAME_SIZE;
  frame.api = &no_api;
  frame.stage = JAXC_STAGE_EXECUTE;
  frame.attrs = no_attributes;
  if (batch->context >= 0) {
    jaxci_context_begin(&context, &frame, m->function.name);
    context.has_future = 1;
    batch->data[batch->context] = (char *)&context;
  }
  if (batch->needs_block) {
    status = jaxci_batch_block(batch, &frame.attrs, local, &allocated, message);
  }
  if (status == JAXC_OK) status = run(m, batch, ops, args, count, steps, message);
  free(allocated);
  return status;
}

static void loop(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data) {
  const member *const m = (const member *)data;
  jaxci_adopted_call call = {m->adopted, NULL, NULL};
  jaxci_batch batch;
  operands ops;
  jaxc_message message;
  jaxc_status status;
  fill_batch(m, dimensions + 1, 1, &batch, &ops);
  if (m->function.parameter_count > 0 &&
      m->function.parameters[0].role == JAXC_ROLE_DATA) {
    batch.data[0] = m->function.data != NULL ? (char *)m->function.data : (char *)&call;
  }
  status = jaxci_batch_dims(&batch, &message);
  if (status == JAXC_OK && batch.index >= 0) status = jaxci_points_count(&batch, &message);
  if (status == JAXC_OK) {
    if (m->function.lock != NULL) m->function.lock(1);
    status = run_in_block(m, &batch, &ops, args, dimensions[0], steps, &message);
    if (m->function.lock != NULL) m->function.lock(0);
  }
  if (status != JAXC_OK) raise_error(m, message.text, call.detail);
  jaxci_adopted_end(&call);
  /* What a vectorised loop raised in lanes that it threw away is nobody's warning. */
  (void)feclearexcept(FE_ALL_EXCEPT);
}

/* ---- making one ---- */

static void group_free(group *g) {
  if (g == NULL) return;
  free(g->members);
  free(g->loops);
  free(g->data);
  free(g->types);
  Py_XDECREF(g->keep);
  free(g);
}

static void group_end(PyObject *capsule) {
  group_free((group *)PyCapsule_GetPointer(capsule, NULL));
}

/* Static values: (place, bytes or str) of parameters, (number, value) of dimensions. */
static int fill_statics(member *m, PyObject *statics, PyObject *dims) {
  for (int i = 0; i < JAXC_MAX_DIMS; i++) m->dims[i] = JAXCI_UNKNOWN;
  for (Py_ssize_t i = 0; i < PyTuple_Size(dims); i++) {
    PyObject *item = PyTuple_GetItem(dims, i);
    long long value;
    int number;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iL", &number, &value)) return -1;
    if (number < 0 || number >= m->function.dim_count) {
      PyErr_SetString(PyExc_ValueError, "a static dimension is outside of the description");
      return -1;
    }
    m->dims[number] = value;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(statics); i++) {
    PyObject *item = PyTuple_GetItem(statics, i);
    PyObject *value;
    int number;
    if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "iO", &number, &value)) return -1;
    if (number < 0 || number >= m->function.parameter_count) {
      PyErr_SetString(PyExc_ValueError, "a static value is outside of the description");
      return -1;
    }
    if (PyUnicode_Check(value)) {
      m->statics[number].string = PyUnicode_AsUTF8AndSize(value, NULL);
      if (m->statics[number].string == NULL) return -1;
    } else {
      char *bytes;
      Py_ssize_t length;
      if (PyBytes_AsStringAndSize(value, &bytes, &length) != 0) return -1;
      if (length > (Py_ssize_t)sizeof m->statics[number]) {
        PyErr_SetString(PyExc_ValueError, "a static value is too large");
        return -1;
      }
      memcpy(&m->statics[number], bytes, (size_t)length);
    }
  }
  return 0;
}

static int fill_member(member *m, PyObject *item, PyObject **types) {
  PyObject *capsule, *statics, *dims;
  if (!PyTuple_Check(item) ||
      !PyArg_ParseTuple(item, "OO!O!O!", &capsule, &PyTuple_Type, types, &PyTuple_Type,
                        &statics, &PyTuple_Type, &dims)) {
    return -1;
  }
  if (PyCapsule_IsValid(capsule, JAXCI_ADOPTED)) {
    m->adopted = (const jaxci_adopted *)PyCapsule_GetPointer(capsule, JAXCI_ADOPTED);
    m->function = m->adopted->function;
  } else {
    const jaxc_function *f =
        (const jaxc_function *)PyCapsule_GetPointer(capsule, JAXCI_FUNCTION);
    if (f == NULL) return -1;
    memset(&m->function, 0, sizeof m->function); /* an older library has less */
    memcpy(&m->function, f, f->struct_size < sizeof *f ? f->struct_size : sizeof *f);
  }
  if (m->function.rows == NULL) {
    PyErr_Format(PyExc_ValueError, "%s: has no row loop for this CPU", m->function.name);
    return -1;
  }
  return fill_statics(m, statics, dims);
}

/* Members with types of NumPy's own become entries of the ufunc, in order; the others are
 * registered. Returns the number of entries, -1 with an exception. */
static int fill_group(group *g, PyObject *members, int nargs) {
  int entries = 0;
  for (int i = 0; i < g->count; i++) {
    PyObject *types;
    int is_own = 1;
    if (fill_member(&g->members[i], PyTuple_GetItem(members, i), &types) != 0) return -1;
    if (PyTuple_Size(types) != nargs) {
      PyErr_SetString(PyExc_ValueError, "a type for each operand is needed");
      return -1;
    }
    for (int k = 0; k < nargs; k++) {
      const long number = PyLong_AsLong(PyTuple_GetItem(types, k));
      if (number == -1 && PyErr_Occurred()) return -1;
      is_own = is_own && number < NPY_USERDEF;
      if (is_own) g->types[entries * nargs + k] = (char)number;
    }
    if (!is_own) continue;
    g->loops[entries] = loop;
    g->data[entries] = &g->members[i];
    entries++;
  }
  return entries;
}

static int register_others(const group *g, PyObject *ufunc, PyObject *members, int nargs) {
  for (int i = 0; i < g->count; i++) {
    PyObject *types = PyTuple_GetItem(PyTuple_GetItem(members, i), 1);
    int numbers[NPY_MAXARGS];
    int user = -1;
    for (int k = 0; k < nargs; k++) {
      numbers[k] = (int)PyLong_AsLong(PyTuple_GetItem(types, k));
      if (numbers[k] >= NPY_USERDEF) user = numbers[k];
    }
    if (user >= 0 &&
        PyUFunc_RegisterLoopForType((PyUFuncObject *)(void *)ufunc, user, loop, numbers,
                                    &g->members[i]) != 0) {
      return -1;
    }
  }
  return 0;
}

static group *group_new(PyObject *args, int count, int nargs) {
  group *g = (group *)calloc(1, sizeof *g);
  if (g != NULL) {
    g->count = count;
    g->members = (member *)calloc((size_t)count, sizeof *g->members);
    g->loops = (PyUFuncGenericFunction *)calloc((size_t)count, sizeof *g->loops);
    g->data = (void **)calloc((size_t)count, sizeof *g->data);
    g->types = (char *)calloc((size_t)count * (size_t)nargs, 1);
    g->keep = Py_NewRef(args);
  }
  if (g != NULL && g->members != NULL && g->loops != NULL && g->data != NULL &&
      g->types != NULL) {
    return g;
  }
  group_free(g);
  PyErr_NoMemory();
  return NULL;
}

PyObject *jaxci_make_ufunc(PyObject *module, PyObject *args) {
  PyObject *members, *out = NULL, *capsule;
  PyUFuncObject *u;
  const char *name, *doc, *signature;
  int nin, nout, entries;
  Py_ssize_t axes = 0;
  group *g;
  (void)module;
  if (jaxci_numpy_ready() != 0) return NULL;
  if (!PyArg_ParseTuple(args, "O!(ii)ssz", &PyTuple_Type, &members, &nin, &nout, &name, &doc,
                        &signature)) {
    return NULL;
  }
  if (nin < 0 || nout < 1 || nin + nout > NPY_MAXARGS) {
    return PyErr_Format(PyExc_ValueError,
                        "%s: NumPy's ufuncs have at most %d operands, and at least one "
                        "result",
                        name, NPY_MAXARGS);
  }
  g = group_new(args, (int)PyTuple_Size(members), nin + nout);
  if (g == NULL) return NULL;
  entries = fill_group(g, members, nin + nout);
  if (entries < 0) goto failed;
  out = PyUFunc_FromFuncAndDataAndSignature(g->loops, g->data, g->types, entries, nin, nout,
                                            PyUFunc_None, name, doc, 0, signature);
  if (out == NULL) goto failed;
  u = (PyUFuncObject *)(void *)out;
  capsule = PyCapsule_New(g, NULL, group_end);
  if (capsule == NULL) goto failed;
  u->obj = capsule; /* the ufunc frees it */
  for (int k = 0; k < u->nargs; k++) axes += rank_of(u, k);
  for (int i = 0; i < g->count; i++) g->members[i].ufunc = u;
  if (axes > MOST_AXES / 8) {
    PyErr_Format(PyExc_ValueError, "%s: has %zd core axes, at most %d are possible", name,
                 axes, MOST_AXES / 8);
    Py_DECREF(out);
    return NULL;
  }
  if (u->core_enabled) u->process_core_dims_func = process_core_dims;
  if (register_others(g, out, members, nin + nout) != 0) {
    Py_DECREF(out);
    return NULL;
  }
  return out;
failed:
  Py_XDECREF(out);
  group_free(g);
  return NULL;
}
