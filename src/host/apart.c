/* apart.c: probe a function in a process of its own, since a function that is no handler
 * may do anything when it is called with a frame.
 *
 *   JAXC_TRY(jaxc_host_probe_apart(host, dlsym(library, "f"), &metadata, &message));
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

#define LIMIT_MS 10000

#ifdef _WIN32

jaxc_status jaxci_probe_apart(jaxc_host *host, jaxc_abi_handler *handler, int limit_ms,
                              jaxc_host_metadata *out, jaxc_message *message) {
  (void)host, (void)handler, (void)limit_ms;
  memset(out, 0, sizeof *out);
  return JAXC_FAIL(message, JAXC_UNIMPLEMENTED, "processes cannot be forked here");
}

#else

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the child sends. */
typedef struct {
  int32_t status;
  jaxc_host_metadata metadata;
  jaxc_message message;
} answer;

/* In the child, where other threads are gone: apart from the handler itself and what it
 * calls of the host, whose locks the parent held, only what a signal handler may call. */
static void run_child(jaxc_host *host, jaxc_abi_handler *handler, int out) {
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
  const struct rlimit none = {0, 0};
  const int nowhere = open("/dev/null", O_RDWR);
  const char *from;
  size_t left;
  answer said;
  /* A crash is silent and leaves no core; what exit() would flush goes nowhere. */
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
    (void)signal(fatal[i], SIG_DFL);
  }
  (void)setrlimit(RLIMIT_CORE, &none);
  if (nowhere >= 0) {
    (void)dup2(nowhere, 0);
    (void)dup2(nowhere, 1);
    (void)dup2(nowhere, 2);
  }
  memset(&said, 0, sizeof said);
  said.status = (int32_t)jaxc_host_probe(host, handler, &said.metadata, &said.message);
  from = (const char *)&said;
  left = sizeof said;
  while (left > 0) {
    const ssize_t count = write(out, from, left);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    from += count;
    left -= (size_t)count;
  }
  _exit(0);
}

/* Reads what the child says until it is complete, the child has ended, or time is up. */
static size_t listen_to(int in, int limit_ms, answer *said, int *is_late) {
  const int64_t deadline = jaxci_now_ms() + limit_ms;
  size_t have = 0;
  *is_late = 0;
  while (have < sizeof *said) {
    struct pollfd one = {in, POLLIN, 0};
    const int64_t left = deadline - jaxci_now_ms();
    ssize_t count;
    int ready;
    if (left <= 0) {
      *is_late = 1;
      break;
    }
    ready = poll(&one, 1, (int)left);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) break;
    count = read(in, (char *)said + have, sizeof *said - have);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    have += (size_t)count;
  }
  return have;
}

static jaxc_status judge(pid_t child, size_t have, int is_late, int limit_ms,
                         answer *said, jaxc_host_metadata *out, jaxc_message *message) {
  int ended = 0;
  pid_t waited;
  if (have < sizeof *said) (void)kill(child, SIGKILL);
  do {
    waited = waitpid(child, &ended, 0);
  } while (waited < 0 && errno == EINTR);
  if (have == sizeof *said && said->status >= JAXC_OK &&
      said->status <= JAXC_UNAUTHENTICATED) {
    /* The function may have written over anything of the child. */
    said->message.text[sizeof said->message.text - 1] = '\0';
    *out = said->metadata;
    if (said->status == JAXC_OK) return JAXC_OK;
    return JAXC_FAIL(message, (jaxc_status)said->status, "%s", said->message.text);
  }
  if (is_late) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the function did not answer the query for metadata within %d ms: "
                     "it is no handler",
                     limit_ms);
  }
  if (waited == child && WIFSIGNALED(ended) && WTERMSIG(ended) != SIGKILL) {
    return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                     "the function crashed with signal %d when it was asked for "
                     "metadata: it is no handler",
                     WTERMSIG(ended));
  }
  return JAXC_FAIL(message, JAXC_FAILED_PRECONDITION,
                   "the function ended its process when it was asked for metadata: it is "
                   "no handler");
}

jaxc_status jaxci_probe_apart(jaxc_host *host, jaxc_abi_handler *handler, int limit_ms,
                              jaxc_host_metadata *out, jaxc_message *message) {
  answer said;
  jaxc_status status;
  int ends[2];
  int is_late;
  size_t have;
  pid_t child;
  memset(out, 0, sizeof *out);
  if (pipe(ends) != 0) {
    return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no pipe: %s", strerror(errno));
  }
  (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  /* Held over the fork, so that no other thread leaves them locked in the child. */
  jaxci_lock(&host->lock);
  jaxci_lock(&jaxci_objects.lock);
  child = fork();
  jaxci_unlock(&jaxci_objects.lock);
  jaxci_unlock(&host->lock);
  if (child == 0) {
    (void)close(ends[0]);
    run_child(host, handler, ends[1]);
  }
  (void)close(ends[1]);
  if (child < 0) {
    status = JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no process: %s",
                       strerror(errno));
  } else {
    have = listen_to(ends[0], limit_ms, &said, &is_late);
    status = judge(child, have, is_late, limit_ms, &said, out, message);
  }
  (void)close(ends[0]);
  return status;
}

#endif

jaxc_status jaxc_host_probe_apart(jaxc_host *host, jaxc_abi_handler *handler,
                                  jaxc_host_metadata *out, jaxc_message *message) {
  return jaxci_probe_apart(host, handler, LIMIT_MS, out, message);
}
