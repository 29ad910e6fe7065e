/* failure.c: error objects of the runtime.
 *
 *   return jaxci_error_make(JAXC_UNIMPLEMENTED, "XLA FFI GPU context is not available");
 *
 * The ABI makes and destroys errors without saying in which call: the host that counts
 * them is the one whose handler runs in the thread. Threads that a handler has started by
 * itself have none; their errors belong to no host and are counted by none.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

#include <stdarg.h>
#include <stdio.h>

jaxci_registry jaxci_objects = {JAXCI_MUTEX_INIT, JAXCI_CONDITION_INIT, NULL, NULL, NULL};

/* error_create, type_register and future_create carry no context, so that only the
 * thread can say to which host they belong. */
#ifdef _MSC_VER
static __declspec(thread) jaxc_host *current_host;
#else
static _Thread_local jaxc_host *current_host;
#endif

jaxc_host *jaxci_current(void) { return current_host; }

jaxc_host *jaxci_enter(jaxc_host *host) {
  jaxc_host *const before = current_host;
  current_host = host;
  return before;
}

/* NULL would mean success, so this stands for each error that there is no memory for. It
 * is never written, never in the list and never destroyed. */
static const jaxc_abi_error no_memory = {NULL, NULL, NULL, JAXC_RESOURCE_EXHAUSTED, ""};

jaxc_abi_error *jaxci_error_shared(void) {
  return (jaxc_abi_error *)&no_memory;
}

jaxc_abi_error *jaxci_error_text(int32_t code, const char *text) {
  jaxc_host *const host = current_host;
  const size_t length = strlen(text);
  jaxc_abi_error *error = NULL;
  size_t bytes;
  if (jaxci_add(sizeof *error + 1, length, &bytes)) {
    error = (jaxc_abi_error *)jaxci_allocate(host, bytes);
  }
  if (error == NULL) return jaxci_error_shared();
  /* What is none of the known codes is unknown to XLA's status too. */
  error->code = code < JAXC_OK || code > JAXC_UNAUTHENTICATED ? JAXC_UNKNOWN : code;
  error->host = host;
  memcpy(error + 1, text, length + 1);
  error->text = (const char *)(error + 1);
  jaxci_lock(&jaxci_objects.lock);
  error->next = jaxci_objects.errors;
  if (error->next != NULL) error->next->previous = error;
  jaxci_objects.errors = error;
  jaxci_unlock(&jaxci_objects.lock);
  return error;
}

jaxc_abi_error *jaxci_error_make(int32_t code, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  if (vsnprintf(text, sizeof text, format, list) < 0) text[0] = '\0';
  va_end(list);
  return jaxci_error_text(code, text);
}

/* With the lock. */
static void unlink_error(jaxc_abi_error *error) {
  if (error->next != NULL) error->next->previous = error->previous;
  if (error->previous != NULL) {
    error->previous->next = error->next;
  } else {
    jaxci_objects.errors = error->next;
  }
}

static int is_known(const jaxc_abi_error *error) {
  const jaxc_abi_error *one = jaxci_objects.errors;
  while (one != NULL && one != error) one = one->next;
  return one != NULL;
}

int jaxci_error_claim_locked(jaxc_abi_error *error) {
  if (error == &no_memory) return 1;
  if (!is_known(error)) return 0;
  unlink_error(error);
  return 1;
}

int jaxci_error_is_known(const jaxc_abi_error *error) {
  int known;
  if (error == &no_memory) return 1;
  jaxci_lock(&jaxci_objects.lock);
  known = is_known(error);
  jaxci_unlock(&jaxci_objects.lock);
  return known;
}

int jaxci_error_claim(jaxc_abi_error *error) {
  int known;
  jaxci_lock(&jaxci_objects.lock);
  known = jaxci_error_claim_locked(error);
  jaxci_unlock(&jaxci_objects.lock);
  return known;
}

void jaxci_error_end(jaxc_abi_error *error) {
  if (error != NULL && error != &no_memory) free(error);
}

jaxc_status jaxci_error_settle(jaxc_abi_error *error, jaxc_message *message) {
  jaxc_status status;
  if (!jaxci_error_claim(error)) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the handler returned a pointer that is no error of the runtime, "
                     "or one that it has destroyed");
  }
  status = (jaxc_status)error->code;
  if (status != JAXC_OK) status = JAXC_FAIL(message, status, "%s", error->text);
  jaxci_error_end(error);
  return status;
}

int64_t jaxci_error_count(const jaxc_host *host) {
  int64_t count = 0;
  jaxci_lock(&jaxci_objects.lock);
  for (const jaxc_abi_error *e = jaxci_objects.errors; e != NULL; e = e->next) {
    count += e->host == host;
  }
  jaxci_unlock(&jaxci_objects.lock);
  return count;
}

void jaxci_errors_clear(jaxc_host *host) {
  jaxc_abi_error *error;
  jaxci_lock(&jaxci_objects.lock);
  error = jaxci_objects.errors;
  while (error != NULL) {
    jaxc_abi_error *const next = error->next;
    if (error->host == host) {
      unlink_error(error);
      free(error);
    }
    error = next;
  }
  jaxci_unlock(&jaxci_objects.lock);
}
