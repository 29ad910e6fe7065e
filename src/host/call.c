/* call.c: a call site of a program and its executions, stage by stage.
 *
 * As XLA does it. On a CPU: instantiate once with attributes alone, then execute. On a
 * GPU: instantiate once with shapes, then for each execution prepare with shapes,
 * initialize, and execute.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

/* What a frame is filled with once its handler has returned: no pointer that can be
 * followed, and sizes below 0. */
#define STALE 0xDD

static void end_state(jaxci_state *state) {
  if (state->object != NULL && state->deleter != NULL) state->deleter(state->object);
  memset(state, 0, sizeof *state);
}

/* The call ends with its last user: an execution may outlive jaxc_host_call_destroy when
 * its future was given up. */
static void release(jaxc_host_call *call) {
  if (atomic_fetch_sub(&call->references, 1) != 1) return;
  end_state(&call->state);
  jaxci_attrs_end(call->attrs);
  jaxci_operands_end(&call->arguments);
  jaxci_operands_end(&call->results);
  free(call);
}

static jaxci_execution *begin(jaxc_host_call *call, void *const *arguments,
                              void *const *results) {
  jaxci_execution *const execution =
      (jaxci_execution *)jaxci_allocate(call->host, sizeof(jaxci_execution));
  if (execution == NULL) return NULL;
  execution->call = call;
  execution->arguments = arguments;
  execution->results = results;
  atomic_fetch_add(&call->references, 1);
  return execution;
}

void jaxci_execution_end(jaxci_execution *execution) {
  while (execution->first_late != NULL) { /* scheduled at the moment of the return */
    jaxci_task *const next = execution->first_late->next;
    free(execution->first_late);
    execution->first_late = next;
  }
  end_state(&execution->states[1]);
  end_state(&execution->states[0]);
  free(execution->block);
  release(execution->call);
  free(execution);
}

/* ---- a stage ---- */

jaxc_abi_context *jaxci_context_lend(jaxc_host *host) {
  jaxc_abi_context *context;
  jaxci_lock(&host->lock);
  context = host->contexts;
  if (context != NULL) host->contexts = context->next;
  jaxci_unlock(&host->lock);
  if (context == NULL) {
    context = (jaxc_abi_context *)jaxci_allocate(host, sizeof *context);
    if (context == NULL) return NULL;
    context->host = host;
  }
  return context;
}

void jaxci_context_return(jaxc_abi_context *context) {
  jaxc_host *const host = context->host;
  atomic_store(&context->is_live, 0);
  jaxci_lock(&host->lock);
  context->next = host->contexts;
  host->contexts = context;
  jaxci_unlock(&host->lock);
}

jaxc_abi_error *jaxci_invoke(jaxc_host *host, jaxc_abi_handler *handler,
                             jaxc_abi_call_frame *frame, int in_mode) {
  jaxc_host *const before = jaxci_enter(host);
  jaxc_abi_error *error;
  if (in_mode && host->options.flush_denormals) {
    const uint64_t mode = jaxci_flush_begin();
    error = handler(frame);
    jaxci_flush_end(mode);
  } else {
    error = handler(frame);
  }
  (void)jaxci_enter(before);
  return error;
}

/* What comes of the two things that a handler can leave behind. */
static jaxc_status outcome(jaxci_execution *execution, jaxc_abi_error *error,
                           jaxc_abi_future *future, int *pending,
                           jaxc_message *message) {
  const int32_t timeout_s = execution->call->host->options.timeout_s;
  jaxc_message text;
  jaxc_status status = JAXC_OK;
  *pending = 0;
  if (error != NULL) status = jaxci_error_settle(error, future == NULL ? message : &text);
  if (future == NULL) return status;
  if (error == NULL) {
    return jaxci_future_await(future, execution, timeout_s, pending, message);
  }
  /* Not waited for; its work may go on all the same. */
  (void)jaxci_future_await(future, execution, 0, pending, NULL);
  return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                   "the handler returned both a future and an error: %s",
                   status == JAXC_OK ? "OK" : text.text);
}

/* Runs one stage; the execution is no longer the caller's when *pending is 1. */
static jaxc_status run_stage(jaxci_execution *execution, int32_t stage,
                             jaxc_abi_handler *handler, int *pending,
                             jaxc_message *message) {
  jaxc_host *const host = execution->call->host;
  jaxc_abi_context *context;
  jaxc_abi_call_frame *frame;
  jaxc_abi_error *error;
  jaxc_abi_future *future;
  jaxc_status status;
  *pending = 0;
  if (handler == NULL) return JAXC_OK;
  context = jaxci_context_lend(host);
  if (context == NULL) return jaxci_no_memory(message, sizeof *context);
  frame = jaxci_frame_build(execution, stage, context);
  if (frame == NULL) {
    jaxci_context_return(context);
    return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory for a call frame");
  }
  context->execution = execution;
  context->stage = stage;
  atomic_store(&context->is_live, 1);
  error = jaxci_invoke(host, handler, frame, stage != JAXC_STAGE_INSTANTIATE);
  future = frame->future;
  memset(execution->block, STALE, execution->block_bytes);
  jaxci_context_return(context);
  jaxci_pool_run_late(execution);
  status = outcome(execution, error, future, pending, message);
  if (*pending) return status;
  free(execution->block);
  execution->block = NULL;
  return status;
}

/* ---- the call ---- */

jaxc_status jaxc_host_call_create(jaxc_host *host, const jaxc_abi_bundle *handlers,
                                  jaxc_host_call **out, jaxc_message *message) {
  jaxc_host_metadata metadata;
  jaxc_host_call *call;
  *out = NULL;
  if (handlers == NULL || handlers->execute == NULL) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "FFI handler must provide an execute implementation");
  }
  JAXC_TRY(jaxc_host_probe(host, handlers->execute, &metadata, message));
  /* XLA asks instantiate too, for its state's type, which there is from API 0.2 on. */
  if (handlers->instantiate != NULL && host->options.minor >= 2) {
    JAXC_TRY(jaxc_host_probe(host, handlers->instantiate, &metadata, message));
  }
  call = (jaxc_host_call *)jaxci_allocate(host, sizeof *call);
  if (call == NULL) return jaxci_no_memory(message, sizeof *call);
  call->host = host;
  call->handlers = *handlers;
  atomic_init(&call->references, 1);
  call->attrs = jaxci_attrs_make(host, &call->is_instantiated);
  if (call->attrs == NULL) {
    release(call);
    return jaxci_no_memory(message, sizeof *call->attrs);
  }
  *out = call;
  return JAXC_OK;
}

void jaxc_host_call_destroy(jaxc_host_call *call) {
  if (call != NULL) release(call);
}

jaxc_host_attrs *jaxc_host_call_attrs(jaxc_host_call *call) { return call->attrs; }

jaxc_status jaxc_host_call_instantiate(jaxc_host_call *call, jaxc_message *message) {
  jaxci_execution *execution;
  jaxc_status status;
  int pending = 0;
  if (call->is_instantiated) return JAXC_OK;
  execution = begin(call, NULL, NULL);
  if (execution == NULL) return jaxci_no_memory(message, sizeof *execution);
  status = run_stage(execution, JAXC_STAGE_INSTANTIATE, call->handlers.instantiate,
                     &pending, message);
  if (!pending) jaxci_execution_end(execution);
  if (status != JAXC_OK) {
    if (!pending) end_state(&call->state);
    return status;
  }
  call->is_instantiated = 1;
  return JAXC_OK;
}

/* All stages of one execution. */
static jaxc_status execute(jaxc_host_call *call, void *const *arguments,
                           void *const *results, jaxc_message *message) {
  jaxc_host *const host = call->host;
  jaxci_execution *const execution = begin(call, arguments, results);
  jaxc_status status = JAXC_OK;
  int pending = 0;
  if (execution == NULL) return jaxci_no_memory(message, sizeof *execution);
  execution->run_id = host->options.run_id + atomic_fetch_add(&host->run_count, 1);
  if (host->options.profile == JAXC_HOST_GPU) {
    status = run_stage(execution, JAXC_STAGE_PREPARE, call->handlers.prepare, &pending,
                       message);
    if (status == JAXC_OK) {
      status = run_stage(execution, JAXC_STAGE_INITIALIZE, call->handlers.initialize,
                         &pending, message);
    }
  }
  if (status == JAXC_OK) {
    status = run_stage(execution, JAXC_STAGE_EXECUTE, call->handlers.execute, &pending,
                       message);
  }
  if (!pending) jaxci_execution_end(execution);
  return status;
}

jaxc_status jaxc_host_call_run(jaxc_host_call *call, jaxc_message *message) {
  jaxc_status status;
  call->has_results = 0;
  if (!call->is_instantiated) JAXC_TRY(jaxc_host_call_instantiate(call, message));
  for (size_t i = 0; i < call->arguments.count; i++) {
    const jaxci_operand *const argument = &call->arguments.list[i];
    if (argument->snapshot == NULL) continue;
    memcpy(argument->snapshot, argument->own.data, argument->bytes);
  }
  call->has_run = 1;
  status = execute(call, NULL, NULL, message);
  call->has_results = status == JAXC_OK;
  return status;
}

static jaxc_status check_data(const jaxci_operand_list *operands, const char *kind,
                              void *const *data, jaxc_message *message) {
  for (size_t i = 0; i < operands->count; i++) {
    if (operands->list[i].bytes == 0 || (data != NULL && data[i] != NULL)) continue;
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT, "%s %zu has no memory for %zu bytes",
                     kind, i, operands->list[i].bytes);
  }
  return JAXC_OK;
}

jaxc_status jaxc_host_call_run_on(jaxc_host_call *call, void *const *arguments,
                                  void *const *results, jaxc_message *message) {
  if (!call->is_instantiated) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the call was not instantiated yet");
  }
  JAXC_TRY(check_data(&call->arguments, "argument", arguments, message));
  JAXC_TRY(check_data(&call->results, "result", results, message));
  return execute(call, arguments, results, message);
}
