/* gufunc_loop.c: see gufunc_loop.h.
 *
 * NumPy brings rows with any steps, and core axes with any steps; the C function takes
 * dense core axes. An operand whose core axes are not dense goes through a buffer, a row at
 * a time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gufunc_loop.h"

#include <fenv.h>
#include <stdlib.h>

/* The operands of one call in NumPy's order, inputs and then outputs. */
typedef struct {
  int count;
  int32_t slot[JAXCI_MAX_SLOTS];
  int32_t parameter[JAXCI_MAX_SLOTS];
  int64_t sizes[JAXCI_GUFUNC_AXES];
} operands;

static int rank_of(const PyUFuncObject *u, int k) {
  return u->core_enabled ? u->core_num_dims[k] : 0;
}

/* Fills the batch with what shapes say; sizes: of each core dimension of the ufunc. Outputs
 * only when `with_outputs`, as before their sizes are known they have none. */
static void fill_batch(const jaxci_gufunc_member *m, const npy_intp *sizes,
                       int with_outputs,
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

static jaxc_status solve_sizes(const jaxci_gufunc_member *m, npy_intp *sizes,
                               jaxc_message *message) {
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

int jaxci_gufunc_core_dims(PyUFuncObject *ufunc, npy_intp *sizes) {
  const PyUFuncObject *const u = (const PyUFuncObject *)(const void *)ufunc;
  const jaxci_gufunc_group *const g =
      (const jaxci_gufunc_group *)PyCapsule_GetPointer(u->obj, NULL);
  jaxc_message message;
  if (g == NULL) return -1;
  if (solve_sizes(&g->members[0], sizes, &message) == JAXC_OK) return 0;
  PyErr_Format(PyExc_ValueError, "%s: %s", g->members[0].function.name, message.text);
  return -1;
}

/* ---- the loop ---- */

static void raise_error(const jaxci_gufunc_member *m, const char *text, const char *detail) {
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
  npy_intp dense[JAXCI_GUFUNC_AXES / 8];
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
static jaxc_status run_buffered(const jaxci_gufunc_member *m, jaxci_batch *batch,
                                const operands *ops,
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
static int make_buffers(const jaxci_gufunc_member *m, const jaxci_batch *batch,
                        const operands *ops,
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

static jaxc_status run(const jaxci_gufunc_member *m, jaxci_batch *batch,
                       const operands *ops,
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

static jaxc_status run_in_block(const jaxci_gufunc_member *m, jaxci_batch *batch,
                                const operands *ops,
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

void jaxci_gufunc_loop(char **args, const npy_intp *dimensions, const npy_intp *steps,
                       void *data) {
  const jaxci_gufunc_member *const m = (const jaxci_gufunc_member *)data;
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
