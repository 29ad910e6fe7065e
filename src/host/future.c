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

/* So many that have ended are kept, so that one that is finished again is known as such,
 * and is not another one at the same address. */
#define MAX_ENDED 64

jaxc_abi_error *jaxci_future_create(jaxc_abi_future **out) {
  jaxc_host *const host = jaxci_current();
  jaxc_abi_future *future = NULL;
  if (!jaxci_request_fails(host)) {
    future = (jaxc_abi_future *)jaxci_allocate(host, sizeof *future);
  }
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
static int is_in(const jaxc_abi_future *list, const jaxc_abi_future *future) {
  while (list != NULL && list != future) list = list->next;
  return list != NULL;
}

static int is_known(const jaxc_abi_future *future) {
  return is_in(jaxci_objects.futures, future);
}

/* What a future leaves to whom ends it. */
typedef struct {
  jaxc_abi_error *error;
  jaxci_execution *abandoned;
} remains;

/* With the lock: nothing but whether it is finished again matters from here on. */
static void retire(jaxc_abi_future *future, remains *out) {
  jaxc_abi_future **place = &jaxci_objects.ended;
  out->error = future->error;
  out->abandoned = future->abandoned;
  unlink_future(future);
  if (future->host == NULL) { /* nobody will ask */
    free(future);
    return;
  }
  future->error = NULL;
  future->abandoned = NULL;
  future->next = jaxci_objects.ended;
  jaxci_objects.ended = future;
  for (int i = 0; i < MAX_ENDED && *place != NULL; i++) place = &(*place)->next;
  free(*place); /* one is added at a time, so it is the last */
  *place = NULL;
}

static void clear(const remains *left) {
  jaxci_error_end(left->error);
  if (left->abandoned != NULL) jaxci_execution_end(left->abandoned);
}

/* With the lock. */
static void count_again(jaxc_abi_future *future) {
  if (future->is_done_again || future->host == NULL) return;
  future->is_done_again = 1;
  future->host->twice_count++;
}

/* With the lock; NULL when the future is finished by this. */
static const char *finish(jaxc_abi_future *future, jaxc_abi_error *error, remains *left) {
  if (is_in(jaxci_objects.ended, future)) {
    count_again(future);
    return "the future is none, or its call has ended";
  }
  if (!is_known(future)) return "the future is none, or its call has ended";
  if (future->is_done) {
    count_again(future);
    return "the future is already finished";
  }
  if (error != NULL && !jaxci_error_claim_locked(error)) return "the error is none";
  future->is_done = 1;
  future->error = error;
  /* Nobody waits any more for one that was given up. */
  if (future->abandoned != NULL || (future->is_handed && future->host == NULL)) {
    retire(future, left);
  }
  jaxci_signal(&jaxci_objects.changed);
  return NULL;
}

/* `error` belongs to the future when NULL comes back. */
jaxc_abi_error *jaxci_future_finish(jaxc_abi_future *future, jaxc_abi_error *error) {
  remains left = {NULL, NULL};
  const char *refusal;
  jaxci_lock(&jaxci_objects.lock);
  refusal = finish(future, error, &left);
  jaxci_unlock(&jaxci_objects.lock);
  if (refusal != NULL) {
    return jaxci_error_make(JAXC_FAILED_PRECONDITION, "%s; XLA crashes here", refusal);
  }
  clear(&left);
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
  remains left_behind = {NULL, NULL};
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
    retire(future, &left_behind);
  } else {
    future->abandoned = execution;
    *pending = 1;
  }
  jaxci_unlock(&jaxci_objects.lock);
  if (*pending) {
    return JAXC_FAIL(message, JAXC_DEADLINE_EXCEEDED,
                     "the handler's future was not finished within %d second%s",
                     (int)timeout_s, timeout_s == 1 ? "" : "s");
  }
  if (left_behind.error != NULL) {
    status = JAXC_FAIL(message, (jaxc_status)left_behind.error->code, "%s",
                       left_behind.error->text);
  }
  clear(&left_behind);
  return status;
}

void jaxci_future_count(const jaxc_host *host, int64_t *unfinished, int64_t *unhanded,
                        int64_t *twice) {
  *unfinished = *unhanded = 0;
  jaxci_lock(&jaxci_objects.lock);
  *twice = host->twice_count;
  for (const jaxc_abi_future *f = jaxci_objects.futures; f != NULL; f = f->next) {
    if (f->host != host) continue;
    *unfinished += !f->is_done;
    *unhanded += f->is_done && !f->is_handed;
  }
  jaxci_unlock(&jaxci_objects.lock);
}

/* Those that are not finished stay: someone may still finish them. */
void jaxci_futures_clear(jaxc_host *host) {
  jaxc_abi_future **place = &jaxci_objects.ended;
  jaxc_abi_future *future;
  jaxci_lock(&jaxci_objects.lock);
  while (*place != NULL) {
    future = *place;
    if (future->host == host) {
      *place = future->next;
      free(future);
    } else {
      place = &future->next;
    }
  }
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
