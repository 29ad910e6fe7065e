/* future.c: completions of calls that go on after their handler has returned.
 *
 * A future is in the list of the process from its making to its end, since the functions
 * that finish it carry no context and may be called from any thread, at any time.
 *
 *   handler:  jaxci_future_create(&future); frame->future = future; return NULL;
 *   host:     jaxci_future_await(frame->future, ...);        frees it
 *   thread:   jaxci_future_finish(future, NULL);             wakes the host
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

jaxc_abi_error *jaxci_future_create(jaxc_abi_future **out) {
  jaxc_host *const host = jaxci_current();
  jaxc_abi_future *const future =
      (jaxc_abi_future *)jaxci_allocate(host, sizeof(jaxc_abi_future));
  if (future == NULL) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, "no memory for a future");
  }
  future->host = host;
  jaxci_lock(&jaxci_objects.lock);
  future->next = jaxci_objects.futures;
  if (future->next != NULL) future->next->previous = future;
  jaxci_objects.futures = future;
  jaxci_unlock(&jaxci_objects.lock);
  *out = future;
  return NULL;
}

/* With the lock. */
static void unlink_future(jaxc_abi_future *future) {
  if (future->next != NULL) future->next->previous = future->previous;
  if (future->previous != NULL) {
    future->previous->next = future->next;
  } else {
    jaxci_objects.futures = future->next;
  }
}

/* With the lock. */
static int is_known(const jaxc_abi_future *future) {
  const jaxc_abi_future *one = jaxci_objects.futures;
  while (one != NULL && one != future) one = one->next;
  return one != NULL;
}

static void end(jaxc_abi_future *future) {
  jaxci_error_end(future->error);
  if (future->abandoned != NULL) jaxci_execution_end(future->abandoned);
  free(future);
}

/* `error` belongs to the future when NULL comes back. */
jaxc_abi_error *jaxci_future_finish(jaxc_abi_future *future, jaxc_abi_error *error) {
  const char *refusal = NULL;
  int ends_here = 0;
  jaxci_lock(&jaxci_objects.lock);
  if (!is_known(future)) {
    refusal = "the future is none, or its call has ended";
  } else if (future->is_done) {
    refusal = "the future is already finished";
  } else if (error != NULL && !jaxci_error_claim_locked(error)) {
    refusal = "the error is none";
  } else {
    future->is_done = 1;
    future->error = error;
    /* Nobody waits any more for one that was given up. */
    ends_here = future->abandoned != NULL || (future->is_handed && future->host == NULL);
    if (ends_here) unlink_future(future);
    jaxci_signal(&jaxci_objects.changed);
  }
  jaxci_unlock(&jaxci_objects.lock);
  if (refusal != NULL) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION, "%s; XLA crashes here", refusal);
  }
  if (ends_here) end(future);
  return NULL;
}

/* Marks a future as handed over to the host; 0 when it is none or was handed over before.
 */
static int hand_over(jaxc_abi_future *future, jaxc_host *host) {
  int is_new;
  jaxci_lock(&jaxci_objects.lock);
  is_new = is_known(future) && !future->is_handed;
  if (is_new) {
    future->is_handed = 1;
    future->host = host; /* one of the handler's own threads may have made it */
  }
  jaxci_unlock(&jaxci_objects.lock);
  return is_new;
}

jaxc_status jaxci_future_await(jaxc_abi_future *future, jaxci_execution *execution,
                               int32_t timeout_s, int *pending, jaxc_message *message) {
  const int64_t deadline = jaxci_now_ms() + (int64_t)timeout_s * 1000;
  jaxc_status status = JAXC_OK;
  *pending = 0;
  if (!hand_over(future, execution->call->host)) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the handler put a pointer into the frame that is no future of the "
                     "runtime, or one that it has handed over before");
  }
  jaxci_lock(&jaxci_objects.lock);
  while (!future->is_done) {
    const int64_t left = deadline - jaxci_now_ms();
    if (left <= 0) break;
    jaxci_wait_ms(&jaxci_objects.changed, &jaxci_objects.lock,
                  left < 500 ? (int)left : 500);
  }
  if (future->is_done) {
    unlink_future(future);
  } else {
    future->abandoned = execution;
    *pending = 1;
  }
  jaxci_unlock(&jaxci_objects.lock);
  if (*pending) {
    return JAXC_FAIL(message, JAXC_DEADLINE_EXCEEDED,
                     "the handler's future was not finished within %d seconds",
                     (int)timeout_s);
  }
  if (future->error != NULL) {
    status = JAXC_FAIL(message, (jaxc_status)future->error->code, "%s",
                       future->error->text);
  }
  end(future);
  return status;
}

void jaxci_future_count(const jaxc_host *host, int64_t *unfinished, int64_t *unhanded) {
  *unfinished = *unhanded = 0;
  jaxci_lock(&jaxci_objects.lock);
  for (const jaxc_abi_future *f = jaxci_objects.futures; f != NULL; f = f->next) {
    if (f->host != host) continue;
    *unfinished += !f->is_done;
    *unhanded += f->is_done && !f->is_handed;
  }
  jaxci_unlock(&jaxci_objects.lock);
}

/* Those that are not finished stay: someone may still finish them. */
void jaxci_futures_clear(jaxc_host *host) {
  jaxc_abi_future *future;
  jaxci_lock(&jaxci_objects.lock);
  future = jaxci_objects.futures;
  while (future != NULL) {
    jaxc_abi_future *const next = future->next;
    if (future->host == host) {
      future->host = NULL;
      future->is_handed = 1; /* nobody will wait for it */
      if (future->is_done) {
        unlink_future(future);
        jaxci_error_end(future->error);
        free(future);
      }
    }
    future = next;
  }
  jaxci_unlock(&jaxci_objects.lock);
}
