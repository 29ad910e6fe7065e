/* test_rows_common.h: batch.h with thresholds that a test chooses, and hosts with pools.
 *
 *   split_all();
 *   host = make_pool(4);
 *
 * The thresholds of rows.h are variables here: `split_all` gives each call with more than
 * one row to all threads, `split_after_measuring` after the first rows, `as_shipped` what
 * users get.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_TESTS_ROWS_COMMON_H
#define JAXC_TESTS_ROWS_COMMON_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static int64_t parallel_bytes, piece_bytes;
static double parallel_ns, piece_ns;
#define JAXCI_PARALLEL_NS parallel_ns
#define JAXCI_PIECE_NS piece_ns
#define JAXCI_PARALLEL_BYTES parallel_bytes
#define JAXCI_PIECE_BYTES piece_bytes

/* Memory of rows.h fails when `allocations_left` runs out. */
static _Atomic int allocations_left = 1000000;
static _Atomic int allocated; /* blocks that live */
static _Atomic int made;      /* blocks that were asked for */
static void *test_malloc(size_t size) {
  made++;
  if (allocations_left-- <= 0) return NULL;
  allocated++;
  return malloc(size);
}
static void test_free(void *data) {
  if (data != NULL) allocated--;
  free(data);
}
#define malloc test_malloc
#define free test_free
#include <jaxc/batch.h>
#include <jaxc/jaxc.h>
#undef malloc
#undef free

#include <pthread.h>
#include <sched.h>

#include "test_host_common.h"

static void split_all(void) {
  parallel_bytes = piece_bytes = 1;
  parallel_ns = 1e18;
  piece_ns = 1;
}
static void split_after_measuring(void) {
  parallel_bytes = INT64_MAX;
  parallel_ns = 0;
  piece_bytes = 1;
  piece_ns = 1;
}
static void as_shipped(void) {
  parallel_ns = 20000;
  piece_ns = 5000;
  parallel_bytes = (int64_t)256 * 1024;
  piece_bytes = (int64_t)16 * 1024;
}
JAXC_UNUSED static void (*const splits[])(void) = {split_all, split_after_measuring, as_shipped};

JAXC_UNUSED static const int pools[] = {JAXC_HOST_NO_POOL, 0, 1, 2, 4, JAXC_HOST_INLINE};
#define POOLS (sizeof pools / sizeof *pools)

static jaxc_host *make_pool(int threads) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.thread_count = threads;
  return make_host_as(&options);
}

#define MOST_ROWS 100000
static _Atomic int called[MOST_ROWS]; /* times, by row */
static _Atomic int64_t rows_called;

static void host_end(jaxc_host *host) {
  CHECK_INT(jaxc_host_leaks(host, &message), JAXC_OK);
  jaxc_host_destroy(host);
  CHECK_INT(allocated, 0);
}

#endif /* JAXC_TESTS_ROWS_COMMON_H */
