/* call.c: a call of the host from options, files and attributes.
 *
 * The host makes all memory, so that its guards lie around arrays and --misalign moves
 * them; elements are copied in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if !defined(_POSIX_C_SOURCE) && !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "run.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* As many threads as there are processors, which is what XLA does. */
static int32_t thread_count(const jaxci_options *options) {
  long processors;
  if (options->threads == NULL) {
    processors = sysconf(_SC_NPROCESSORS_ONLN);
    return processors < 1 ? 1 : processors > 1024 ? 1024 : (int32_t)processors;
  }
  if (strcmp(options->threads, "inline") == 0) return JAXC_HOST_INLINE;
  if (strcmp(options->threads, "late") == 0) return JAXC_HOST_LATE;
  if (strcmp(options->threads, "none") == 0) return JAXC_HOST_NO_POOL;
  return (int32_t)options->thread_count;
}

static int is_gpu_given(const jaxci_options *options) {
  return options->platform != NULL && strcmp(options->platform, "gpu") == 0;
}

jaxc_host_options jaxci_call_options(const jaxci_options *options) {
  jaxc_host_options out;
  memset(&out, 0, sizeof out);
  out.struct_size = sizeof out;
  out.minor = (int32_t)options->minor;
  out.profile = is_gpu_given(options) ? JAXC_HOST_GPU : JAXC_HOST_CPU;
  out.thread_count = thread_count(options);
  out.flush_denormals = (int32_t)options->flush_denormals;
  out.timeout_s = (int32_t)options->timeout;
  out.exact_memory = (int32_t)options->exact;
  out.faults.fail_allocation = options->fail_allocation;
  out.faults.fail_request = options->fail_request;
  out.faults.fail_error = options->fail_error;
  out.faults.short_frame = (size_t)options->short_frame;
  out.faults.unknown_extensions = (int32_t)options->unknown_extensions;
  out.faults.misalignment = (size_t)options->misalign;
  return out;
}

jaxc_status jaxci_call_check_platform(const jaxci_options *options,
                                      const jaxci_target *target, jaxc_message *message) {
  if (!jaxci_target_is_gpu(target) || is_gpu_given(options)) return JAXC_OK;
  return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                   "'%s' is for %s, and the host has no device memory; --platform gpu "
                   "calls it with memory of this machine all the same",
                   target->name, target->platform);
}

/* ---- a handler that does not return ---- */

enum { AT_NOTHING, AT_HANDLER, AT_TASKS, MOMENT_COUNT };

/* Handlers carry no data, so that what runs in their place finds them here; there is one
 * target in a run of the program. `moment` tells the thread where the call is, and the
 * number of the change, which it would not see when all goes fast. */
static struct {
  jaxc_abi_bundle handlers;
  int64_t timeout_s;
  int64_t changes;
  _Atomic int64_t moment; /* changes * MOMENT_COUNT + where */
} watched;

static void go_to(int64_t where) {
  if (watched.timeout_s == 0) return;
  watched.changes++;
  atomic_store_explicit(&watched.moment, watched.changes * MOMENT_COUNT + where,
                        memory_order_relaxed);
}

void jaxci_watch_tasks(void) { go_to(AT_TASKS); }
void jaxci_watch_nothing(void) { go_to(AT_NOTHING); }

static jaxc_abi_error *call_watched(jaxc_abi_handler *handler,
                                    jaxc_abi_call_frame *frame) {
  const int is_query = jaxc_call_metadata(frame) != NULL;
  jaxc_abi_error *error;
  go_to(AT_HANDLER);
  error = handler(frame);
  go_to(is_query ? AT_NOTHING : AT_TASKS);
  return error;
}

static jaxc_abi_error *instantiate(jaxc_abi_call_frame *frame) {
  return call_watched(watched.handlers.instantiate, frame);
}
static jaxc_abi_error *prepare(jaxc_abi_call_frame *frame) {
  return call_watched(watched.handlers.prepare, frame);
}
static jaxc_abi_error *initialize(jaxc_abi_call_frame *frame) {
  return call_watched(watched.handlers.initialize, frame);
}
static jaxc_abi_error *execute(jaxc_abi_call_frame *frame) {
  return call_watched(watched.handlers.execute, frame);
}

static int64_t now_ms(void) {
  struct timespec now = {0, 0};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *watch(void *unused) {
  const struct timespec pause = {0, 20000000};
  int64_t seen = 0, since = now_ms();
  for (;;) {
    const int64_t moment = atomic_load_explicit(&watched.moment, memory_order_relaxed);
    const int64_t where = moment % MOMENT_COUNT;
    /* The host waits for a future as long, and has more to say of it. */
    const int64_t limit_s = watched.timeout_s + (where == AT_TASKS);
    if (moment != seen || where == AT_NOTHING) {
      seen = moment;
      since = now_ms();
    } else if (now_ms() - since >= limit_s * 1000) {
      break;
    }
    (void)nanosleep(&pause, NULL);
  }
  fprintf(stderr, "DEADLINE_EXCEEDED: the %s in %lld s\n",
          seen % MOMENT_COUNT == AT_HANDLER ? "handler has not returned"
                                            : "handler's tasks have not ended",
          (long long)watched.timeout_s);
  /* What the handler printed, unless it is printing. */
  if (ftrylockfile(stdout) == 0) (void)fflush(stdout);
  _Exit(JAXCI_EXIT_ERROR);
  return unused;
}

jaxc_status jaxci_watch_start(const jaxci_options *options, jaxci_target *target,
                              jaxc_message *message) {
  jaxc_abi_bundle *const bundle = &target->bundle;
  pthread_t thread;
  if (options->timeout == 0) return JAXC_OK;
  watched.handlers = *bundle;
  watched.timeout_s = options->timeout;
  if (bundle->instantiate != NULL) bundle->instantiate = instantiate;
  if (bundle->prepare != NULL) bundle->prepare = prepare;
  if (bundle->initialize != NULL) bundle->initialize = initialize;
  if (bundle->execute != NULL) bundle->execute = execute;
  if (pthread_create(&thread, NULL, watch, NULL) == 0 && pthread_detach(thread) == 0) {
    return JAXC_OK;
  }
  return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "--timeout: no thread");
}

/* ---- a call ---- */

jaxc_status jaxci_call_probe(jaxc_host *host, const jaxci_target *target,
                             jaxc_message *message) {
  const struct {
    const char *stage;
    jaxc_abi_handler *handler;
  } stages[] = {{"execute", target->bundle.execute},
                {"instantiate", target->bundle.instantiate},
                {"prepare", target->bundle.prepare},
                {"initialize", target->bundle.initialize}};
  if (target->function != NULL || target->handler != NULL) return JAXC_OK;
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    jaxc_message inner = {""};
    jaxc_host_metadata metadata;
    jaxc_status status;
    if (stages[i].handler == NULL) continue;
    status = jaxc_host_probe_apart(host, stages[i].handler, &metadata, &inner);
    if (status == JAXC_OK || status == JAXC_UNIMPLEMENTED) continue; /* no child here */
    return JAXC_FAIL(message, status,
                     "'%s' cannot be called as an XLA FFI handler (%s): %s", target->name,
                     stages[i].stage, inner.text);
  }
  return JAXC_OK;
}

void jaxci_call_fill(jaxc_host_call *call, const jaxci_target *target,
                     const jaxci_request *request) {
  const int32_t first = jaxci_call_tokens(target);
  for (int i = 0; i < request->argument_count; i++) {
    const jaxci_array *const a = &request->arguments[i];
    const size_t size = jaxc_dtype_bits(a->shape.dtype) / 8;
    size_t bytes = 0;
    unsigned char *const data = jaxc_host_call_argument_data(call, first + i, &bytes);
    if (data == NULL || bytes == 0) continue;
    if (a->data != NULL) {
      memcpy(data, a->data, bytes < a->bytes ? bytes : a->bytes);
    } else if (!a->is_filled) {
      memset(data, 0, bytes);
    } else {
      for (size_t at = 0; at + size <= bytes; at += size)
        memcpy(data + at, a->fill, size);
    }
  }
}

static jaxc_status fail_operand(const char *kind, int index, const jaxci_shape *shape,
                                jaxc_status status, const jaxc_message *inner,
                                jaxc_message *message) {
  return JAXC_FAIL(message, status, "%s %d, %s: %s", kind, index,
                   jaxci_shape_text(shape).text, inner->text);
}

static jaxc_status add_operands(jaxc_host_call *call, const jaxci_target *target,
                                const jaxci_request *request, jaxc_message *message) {
  jaxc_message inner = {""};
  if (jaxci_call_tokens(target) != 0) {
    JAXC_TRY(jaxc_host_call_argument(call, JAXC_TOKEN, 0, NULL, NULL, message));
    JAXC_TRY(jaxc_host_call_result(call, JAXC_TOKEN, 0, NULL, NULL, message));
  }
  for (int i = 0; i < request->argument_count; i++) {
    const jaxci_shape *const s = &request->arguments[i].shape;
    const jaxc_status status =
        jaxc_host_call_argument(call, s->dtype, s->rank, s->dims, NULL, &inner);
    if (status != JAXC_OK) return fail_operand("--arg", i, s, status, &inner, message);
  }
  for (int i = 0; i < request->result_count; i++) {
    const jaxci_shape *const s = &request->results[i];
    const jaxc_status status =
        jaxc_host_call_result(call, s->dtype, s->rank, s->dims, NULL, &inner);
    if (status != JAXC_OK) return fail_operand("--result", i, s, status, &inner, message);
  }
  return JAXC_OK;
}

static jaxc_status add_alias(jaxc_host_call *call, const jaxci_target *target,
                             const char *text, jaxc_message *message) {
  const int32_t first = jaxci_call_tokens(target);
  const char *const colon = strchr(text, ':');
  const size_t length = colon == NULL ? 0 : (size_t)(colon - text);
  char argument_text[16] = "";
  int64_t argument, result;
  jaxc_message inner;
  jaxc_status status;
  if (length > 0 && length < sizeof argument_text) memcpy(argument_text, text, length);
  if (length == 0 ||
      jaxci_number_parse(argument_text, 0, 1000000, &argument, NULL) != JAXC_OK ||
      jaxci_number_parse(colon + 1, 0, 1000000, &result, NULL) != JAXC_OK) {
    return JAXC_FAIL(message, JAXC_INVALID_ARGUMENT,
                     "--alias: expected ARG:RESULT, two numbers from 0 on, got '%s'",
                     text);
  }
  status = jaxc_host_call_alias(call, first + (int32_t)argument, first + (int32_t)result,
                                &inner);
  if (status == JAXC_OK) return JAXC_OK;
  return JAXC_FAIL(message, status, "--alias %s: %s", text, inner.text);
}

jaxc_status jaxci_call_create(jaxc_host *host, const jaxci_target *target,
                              const jaxci_options *options, const jaxci_request *request,
                              jaxc_host_call **out, jaxc_message *message) {
  jaxc_message inner;
  jaxc_status status;
  JAXC_TRY(jaxc_host_call_create(host, &target->bundle, out, message));
  JAXC_TRY(add_operands(*out, target, request, message));
  for (int i = 0; i < options->aliases.count; i++) {
    JAXC_TRY(add_alias(*out, target, options->aliases.items[i], message));
  }
  jaxci_call_fill(*out, target, request);
  status = jaxci_attributes_add(&request->attributes, jaxc_host_call_attrs(*out), &inner);
  if (status == JAXC_OK) return JAXC_OK;
  return JAXC_FAIL(message, status, "--attr: %s", inner.text);
}
