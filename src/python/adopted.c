/* adopted.c: see adopted.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "adopted.h"

#include <jaxc/batch.h>
#include <stdlib.h>

#include "compose.h"

/* ---- the pool ---- */

static const jaxci_adopted *slots[JAXCI_SLOTS];
static int slots_taken;
static PyThread_type_lock slots_lock;

static jaxc_abi_error *slot_call(jaxc_abi_call_frame *frame, int number) {
  const jaxci_adopted *const self = __atomic_load_n(&slots[number], __ATOMIC_ACQUIRE);
  if (self == NULL) { /* only when somebody calls what was never handed out */
    return jaxc_error_create(frame->api, JAXC_INTERNAL, "an empty slot was called");
  }
  return self->handle(frame, self);
}

/* 16^3 handlers, which differ in their number. */
#define SLOT_0(n) \
  static jaxc_abi_error *slot_##n(jaxc_abi_call_frame *f) { return slot_call(f, 0x##n); }
#define SLOT_NAME(n) slot_##n,
#define EACH_1(X, n)                                                                \
  X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)   \
  X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
#define EACH_2(X, n)                                                                \
  EACH_1(X, n##0) EACH_1(X, n##1) EACH_1(X, n##2) EACH_1(X, n##3) EACH_1(X, n##4)   \
  EACH_1(X, n##5) EACH_1(X, n##6) EACH_1(X, n##7) EACH_1(X, n##8) EACH_1(X, n##9)   \
  EACH_1(X, n##a) EACH_1(X, n##b) EACH_1(X, n##c) EACH_1(X, n##d) EACH_1(X, n##e)   \
  EACH_1(X, n##f)
#define EACH_3(X)                                                                   \
  EACH_2(X, 0) EACH_2(X, 1) EACH_2(X, 2) EACH_2(X, 3) EACH_2(X, 4) EACH_2(X, 5)     \
  EACH_2(X, 6) EACH_2(X, 7) EACH_2(X, 8) EACH_2(X, 9) EACH_2(X, a) EACH_2(X, b)     \
  EACH_2(X, c) EACH_2(X, d) EACH_2(X, e) EACH_2(X, f)

EACH_3(SLOT_0)
static jaxc_abi_handler *const handlers[] = {EACH_3(SLOT_NAME)};
_Static_assert(sizeof handlers / sizeof *handlers == JAXCI_SLOTS, "one handler a slot");

/* Takes a slot for `adopted`; NULL with an exception when there is none. */
static jaxc_abi_handler *slot_take(const jaxci_adopted *adopted) {
  int number;
  /* The first caller holds the interpreter's lock, or is one of few at import. */
  if (slots_lock == NULL) slots_lock = PyThread_allocate_lock();
  if (slots_lock == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  PyThread_acquire_lock(slots_lock, WAIT_LOCK);
  number = slots_taken < JAXCI_SLOTS ? slots_taken++ : -1;
  PyThread_release_lock(slots_lock);
  if (number < 0) {
    PyErr_Format(PyExc_RuntimeError,
                 "this process has %d adopted functions (ufunc loops, callbacks, addresses), "
                 "and cannot have more, since compiled programs keep them: make them once, "
                 "not in a loop",
                 JAXCI_SLOTS);
    return NULL;
  }
  __atomic_store_n(&slots[number], adopted, __ATOMIC_RELEASE);
  return handlers[number];
}

/* ---- calls ---- */

void jaxci_adopted_fail(jaxci_adopted_call *call, jaxc_fault *fault, long long row,
                        const char *text) {
  const size_t length = strlen(text);
  jaxci_text *kept = (jaxci_text *)malloc(sizeof *kept + length);
  fault->row = row < 0 ? 0 : row;
  fault->status = row < 0 ? -1 : 0;
  fault->text = "an error, and no memory for its text";
  if (kept == NULL) return;
  memcpy(kept->text, text, length + 1);
  kept->next = __atomic_load_n(&call->texts, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&call->texts, &kept->next, kept, 0, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  fault->text = kept->text;
}

void jaxci_adopted_end(jaxci_adopted_call *call) {
  free(call->detail);
  call->detail = NULL;
  while (call->texts != NULL) {
    jaxci_text *const next = call->texts->next;
    free(call->texts);
    call->texts = next;
  }
}

jaxc_abi_error *jaxci_adopted_run(jaxc_abi_call_frame *frame, const jaxci_adopted *self) {
  jaxc_function function = self->function;
  jaxci_adopted_call call = {self, NULL, NULL};
  jaxc_abi_error *error;
  function.data = &call;
  error = jaxc_batch_handle(frame, &function);
  jaxci_adopted_end(&call);
  return error;
}

/* The handle of a function whose data is its C address. */
static jaxc_abi_error *address_run(jaxc_abi_call_frame *frame, const jaxci_adopted *self) {
  jaxc_abi_error *error;
  if (self->function.lock != NULL) self->function.lock(1);
  error = jaxc_batch_handle(frame, &self->function);
  if (self->function.lock != NULL) self->function.lock(0);
  return error;
}

/* ---- for Python ---- */

void *jaxci_adopted_create(size_t size, PyObject *record) {
  jaxci_adopted *const out = (jaxci_adopted *)calloc(1, size);
  if (out == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  if (record != NULL && jaxci_compose(record, &out->function) != 0) {
    free(out);
    return NULL;
  }
  out->handle = jaxci_adopted_run;
  return out;
}

PyObject *jaxci_adopted_publish(jaxci_adopted *adopted) {
  PyObject *capsule = PyCapsule_New(adopted, JAXCI_ADOPTED, NULL);
  jaxc_abi_handler *handler = capsule != NULL ? slot_take(adopted) : NULL;
  void *address;
  if (handler == NULL) {
    Py_XDECREF(capsule);
    free(adopted);
    return NULL;
  }
  memcpy(&address, &handler, sizeof address);
  return Py_BuildValue("(NN)", PyCapsule_New(address, NULL, NULL), capsule);
}

PyObject *jaxci_adopt_address(PyObject *module, PyObject *args) {
  PyObject *capsule, *number;
  const jaxc_function *function;
  jaxci_adopted *adopted;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyLong_Type, &number)) return NULL;
  function = (const jaxc_function *)PyCapsule_GetPointer(capsule, JAXCI_FUNCTION);
  if (function == NULL) return NULL;
  if (function->parameter_count < 1 || function->parameters[0].role != JAXC_ROLE_DATA) {
    return PyErr_Format(PyExc_ValueError, "%s: has no place for an address", function->name);
  }
  adopted = (jaxci_adopted *)jaxci_adopted_create(sizeof *adopted, NULL);
  if (adopted == NULL) return NULL;
  adopted->function = *function;
  adopted->function.data = PyLong_AsVoidPtr(number);
  adopted->handle = address_run;
  if (adopted->function.data == NULL) {
    free(adopted);
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the address is null");
    return NULL;
  }
  return jaxci_adopted_publish(adopted);
}
