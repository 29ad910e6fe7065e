/* bench.c: the time of a call, beside that of a handler that does nothing.
 *
 * The host costs something too: it builds a frame for each call. Rounds of calls of the
 * handler and of an empty one with the same operands and attributes alternate, so that
 * both see the same machine, and both numbers are printed. Arguments are written once: an
 * aliased one goes through all calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#if !defined(_POSIX_C_SOURCE) && !defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L
#endif
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS ((size_t)100000)
#define ROUND_NS 1e6 /* time of a round that is aimed at */
#define WARM_UP_NS 1e8

static jaxc_abi_error *empty_handler(jaxc_abi_call_frame *frame) {
  (void)jaxc_call_answer_metadata(frame, 0);
  return NULL;
}

static double now_ns(void) {
  struct timespec time = {0, 0};
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Calls `count` times; `out` is the time of one. */
static jaxc_status measure(jaxc_host_call *call, int64_t count, double *out,
                           jaxc_message *message) {
  const double start = now_ns();
  for (int64_t i = 0; i < count; i++) JAXC_TRY(jaxc_host_call_run(call, message));
  *out = (now_ns() - start) / (double)count;
  return JAXC_OK;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* "780 ns", "1.234 us" */
static void print_time(double ns) {
  if (ns < 1e4) {
    printf("%.0f ns", ns);
  } else if (ns < 1e7) {
    printf("%.4g us", ns / 1e3);
  } else {
    printf("%.4g ms", ns / 1e6);
  }
}

static void print_row(const char *name, double *rounds, size_t count, long long calls) {
  qsort(rounds, count, sizeof *rounds, compare);
  printf("%-24s minimum ", name);
  print_time(rounds[0]);
  printf(", median ");
  print_time(rounds[count / 2]);
  printf(" per call; %lld calls in %zu rounds\n", calls, count);
}

static void print_machine(void) {
  struct utsname names;
  const time_t seconds = time(NULL);
  struct tm date;
  char line[256] = "", day[32] = "unknown date";
  const char *model = NULL;
  FILE *const file = fopen("/proc/cpuinfo", "r");
  while (file != NULL && model == NULL && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
      model = strchr(line, ':') + 1;
    }
  }
  if (file != NULL) fclose(file);
  if (model != NULL) {
    line[strcspn(line, "\n")] = '\0';
    model += strspn(model, " \t");
  } else {
    model = uname(&names) >= 0 ? names.machine : "unknown processor";
  }
  if (gmtime_r(&seconds, &date) != NULL)
    (void)strftime(day, sizeof day, "%Y-%m-%d", &date);
  printf("%s, %ld cores, %s\n", model, sysconf(_SC_NPROCESSORS_ONLN), day);
}

typedef struct {
  jaxc_host_call *calls[2]; /* of the handler and of the empty one */
  double *rounds[2];
  int64_t counts[2]; /* calls of a round */
} bench;

/* Runs both until they are warm, and finds how many calls a round has. */
static jaxc_status warm_up(bench *b, jaxc_message *message) {
  for (int side = 0; side < 2; side++) {
    const double end = now_ns() + WARM_UP_NS;
    double one = 0;
    b->counts[side] = 1;
    do {
      JAXC_TRY(measure(b->calls[side], b->counts[side], &one, message));
      if (one * (double)b->counts[side] < ROUND_NS / 2) b->counts[side] *= 2;
    } while (now_ns() < end);
  }
  return JAXC_OK;
}

static jaxc_status run_rounds(bench *b, double seconds, const char *name,
                              jaxc_message *message) {
  const double end = now_ns() + seconds * 1e9;
  size_t count = 0;
  do {
    for (int side = 0; side < 2; side++) {
      JAXC_TRY(
          measure(b->calls[side], b->counts[side], &b->rounds[side][count], message));
    }
    count++;
  } while (now_ns() < end && count < MAX_ROUNDS);
  print_row(name, b->rounds[0], count, (long long)b->counts[0] * (long long)count);
  print_row("an empty handler", b->rounds[1], count,
            (long long)b->counts[1] * (long long)count);
  print_machine();
  return JAXC_OK;
}

jaxc_status jaxci_bench(jaxc_host *host, const jaxci_target *target,
                        const jaxci_options *options, const jaxci_request *request,
                        int *has_begun, jaxc_message *message) {
  jaxci_target empty = *target;
  bench b = {{NULL, NULL}, {NULL, NULL}, {0, 0}};
  jaxc_status status;
  memset(&empty.bundle, 0, sizeof empty.bundle);
  empty.bundle.execute = empty_handler;
  for (int side = 0; side < 2; side++) {
    status = jaxci_call_create(host, side == 0 ? target : &empty, options, request,
                               &b.calls[side], message);
    if (status != JAXC_OK) goto done;
    b.rounds[side] = malloc(MAX_ROUNDS * sizeof *b.rounds[side]);
    if (b.rounds[side] == NULL) {
      status = JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED, "no memory for the times");
      goto done;
    }
  }
  *has_begun = 1;
  status = warm_up(&b, message);
  if (status != JAXC_OK) goto done;
  status = run_rounds(&b, options->bench_seconds, target->name, message);
done:
  for (int side = 0; side < 2; side++) {
    free(b.rounds[side]);
    jaxc_host_call_destroy(b.calls[side]);
  }
  return status;
}
