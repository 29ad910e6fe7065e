/* test_parallel.c: loops over the runtime's threads: each index once, whatever the pool,
 * and tasks that start late, are refused, or find no memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdatomic.h>
#include <stdlib.h>

/* Memory of parallel.h fails when `allocations_left` runs out. Pool threads free too. */
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
#include <jaxc/jaxc.h>
#undef malloc
#undef free

#include <pthread.h>
#include <sched.h>

#include "test_host_common.h"

static const int pools[] = {0, 1, 2, 4, JAXC_HOST_INLINE, JAXC_HOST_NO_POOL};
#define POOLS (sizeof pools / sizeof *pools)

/* ---- a handler that does the job which the test gives it ---- */

typedef jaxc_status job_t(jaxc_context *context);
static job_t *job;
static int job_stage = JAXC_STAGE_EXECUTE;
static _Atomic int jobs_done;
static void (*change_table)(jaxc_abi_api *table); /* for this call alone */

typedef struct {
  const jaxc_abi_attrs *all;
} work_call;
static const jaxc_field work_fields[] = {JAXC_ALL_ATTRIBUTES(work_call, all)};
static jaxc_status work(jaxc_context *context, const void *data) {
  (void)data;
  if (jaxc_context_stage(context) != job_stage) return JAXC_OK;
  JAXC_TRY(job(context));
  jobs_done++;
  return JAXC_OK;
}
JAXC_HANDLER(Work, work_call, work_fields, .execute = work, .instantiate = work);

static jaxc_abi_error *work_with_table(jaxc_abi_call_frame *frame) {
  const jaxc_abi_api *const api = frame->api;
  jaxc_abi_api changed;
  jaxc_abi_error *error;
  if (frame->extension_start != NULL || change_table == NULL) return Work(frame);
  changed = *api;
  change_table(&changed);
  frame->api = &changed;
  error = Work(frame);
  frame->api = api;
  return error;
}

static jaxc_host *make_pool(int threads, int profile) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.thread_count = threads;
  options.profile = profile;
  return make_host_as(&options);
}

static jaxc_status make_work(jaxc_host *host, jaxc_host_call **out) {
  const jaxc_abi_bundle handlers = {.execute = work_with_table, .instantiate = Work};
  return jaxc_host_call_create(host, &handlers, out, &message);
}

/* One execution of a job on a host; what it took is given back when it ends. */
static void run_on_host(jaxc_host *host, job_t *wanted) {
  const int before = jobs_done;
  jaxc_host_call *call;
  job = wanted;
  CHECK_INT(make_work(host, &call), JAXC_OK);
  if (jaxc_host_call_run(call, &message) != JAXC_OK) CHECK_TEXT(message.text, "");
  CHECK_INT(jobs_done, before + 1);
  end(host, call);
  CHECK_INT(allocated, 0);
}

static void run_with_pool(int threads, job_t *wanted) {
  run_on_host(make_pool(threads, JAXC_HOST_CPU), wanted);
}

/* ---- a loop that notes each index ---- */

#define MOST 1000
typedef struct {
  int64_t count, grain;
  _Atomic int pieces;
  _Atomic int seen[MOST];
} cover;

static void cover_piece(void *data, int64_t begin, int64_t end) {
  cover *const c = (cover *)data;
  const int64_t grain = c->grain < 1 ? 1 : c->grain;
  CHECK(begin >= 0 && begin < end && end <= c->count);
  CHECK_INT(begin % grain, 0);
  CHECK(end == c->count || end - begin == grain);
  c->pieces++;
  for (int64_t i = begin; i < end; i++) c->seen[i]++;
}

static void cover_run(jaxc_context *context, int64_t count, int64_t grain) {
  cover c = {.count = count, .grain = grain};
  const int64_t step = grain < 1 ? 1 : grain;
  jaxc_parallel_for(context, count, grain, cover_piece, &c);
  for (int64_t i = 0; i < count; i++) CHECK_INT(c.seen[i], 1);
  CHECK_INT(c.pieces, (count - 1) / step + 1);
}

static int64_t the_count, the_grain;
static jaxc_status cover_once(jaxc_context *context) {
  cover_run(context, the_count, the_grain);
  return JAXC_OK;
}

static jaxc_status cover_all(jaxc_context *context) {
  static const int64_t counts[] = {1, 2, 7, 64, 1000};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    const int64_t count = counts[i];
    const int64_t grains[] = {INT64_MIN, -5,        0,         1,        3,
                              7,         count - 1, count + 1, INT64_MAX, count};
    for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
      cover_run(context, count, grains[k]);
    }
  }
  return JAXC_OK;
}

TEST(each_index_is_seen_once_with_every_pool_and_grain) {
  for (size_t i = 0; i < POOLS; i++) run_with_pool(pools[i], cover_all);
}

TEST(a_gpu_has_no_pool_and_the_loop_runs_all_the_same) {
  run_on_host(make_pool(0, JAXC_HOST_GPU), cover_all);
  CHECK_INT(made, 0);
}

TEST(a_loop_in_instantiate_runs_in_the_calling_thread) {
  job_stage = JAXC_STAGE_INSTANTIATE;
  run_with_pool(4, cover_all);
  CHECK_INT(made, 0);
}

TEST(a_table_without_a_pool_is_not_read_beyond_its_end) {
  jaxc_host_options options = {.struct_size = sizeof options};
  options.thread_count = 4;
  options.faults.short_table = sizeof(jaxc_abi_api) - offsetof(jaxc_abi_api, schedule);
  run_on_host(make_host_as(&options), cover_all);
  CHECK_INT(made, 0);
}

static void never(void *data, int64_t begin, int64_t end) {
  (void)data, (void)begin, (void)end;
  CHECK(0);
}
static jaxc_status cover_nothing(jaxc_context *context) {
  static const int64_t counts[] = {0, -1, -1000, INT64_MIN};
  for (int i = 0; i < 4; i++) {
    jaxc_parallel_for(context, counts[i], 1, never, NULL);
    jaxc_parallel_for(context, counts[i], INT64_MAX, never, NULL);
  }
  return JAXC_OK;
}
TEST(no_index_is_no_call) {
  for (size_t i = 0; i < POOLS; i++) run_with_pool(pools[i], cover_nothing);
  CHECK_INT(made, 0);
}

/* ---- counts at the end of int64 ---- */

typedef struct {
  int64_t grain;
  _Atomic int64_t covered;
  _Atomic int pieces;
} huge;
static void huge_piece(void *data, int64_t begin, int64_t end) {
  huge *const h = (huge *)data;
  CHECK(begin >= 0 && begin < end);
  CHECK_INT(begin % h->grain, 0);
  h->pieces++;
  CHECK(h->pieces < 100); /* one that wrapped goes on for ever */
  h->covered += end - begin;
  sched_yield(); /* so that several threads take pieces at the end */
}
static jaxc_status cover_huge(jaxc_context *context) {
  for (int64_t below = 0; below < 3; below++) {
    const int64_t count = INT64_MAX - below;
    const int64_t grains[] = {INT64_MAX,     INT64_MAX - 1,      INT64_MAX - 3,
                              INT64_MAX / 2, INT64_MAX / 2 + 1,  INT64_MAX / 3,
                              INT64_MAX / 5, INT64_C(1) << 62,   INT64_C(1) << 60};
    for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
          huge h = {.grain = grains[k]};
      jaxc_parallel_for(context, count, grains[k], huge_piece, &h);
      CHECK_INT(h.covered, count);
      CHECK_INT(h.pieces, (count - 1) / grains[k] + 1);
    }
  }
  return JAXC_OK;
}
TEST(counts_at_the_end_of_int64_do_not_wrap) {
  for (size_t i = 0; i < POOLS; i++) run_with_pool(pools[i], cover_huge);
}

/* ---- at the same time ---- */

/* Two pieces that each wait for the other: only two threads come out. */
static void meet_piece(void *data, int64_t begin, int64_t end) {
  _Atomic int *const inside = (_Atomic int *)data;
  CHECK_INT(end - begin, 1);
  (*inside)++;
  while (*inside < 2) sched_yield();
}
static jaxc_status meet(jaxc_context *context) {
  _Atomic int inside = 0;
  jaxc_parallel_for(context, 2, 1, meet_piece, &inside);
  CHECK_INT(inside, 2);
  return JAXC_OK;
}
TEST(pieces_run_at_the_same_time) {
  run_with_pool(2, meet);
  run_with_pool(4, meet);
}

typedef struct {
  pthread_t thread;
  int64_t next;
} alone_t;
static void alone_piece(void *data, int64_t begin, int64_t end) {
  alone_t *const a = (alone_t *)data;
  CHECK(pthread_equal(a->thread, pthread_self()));
  CHECK_INT(begin, a->next); /* and in order */
  a->next = end;
}
static jaxc_status alone(jaxc_context *context) {
  alone_t a = {pthread_self(), 0};
  jaxc_parallel_for(context, 1000, 3, alone_piece, &a);
  CHECK_INT(a.next, 1000);
  return JAXC_OK;
}
TEST(without_a_pool_the_calling_thread_does_all_in_order) {
  static const int alone_pools[] = {0, 1, JAXC_HOST_INLINE, JAXC_HOST_NO_POOL};
  for (int i = 0; i < 4; i++) run_with_pool(alone_pools[i], alone);
  CHECK_INT(made, 0);
}

/* A data race or a use after the end would show here, under a sanitizer. */
static jaxc_status many_short_loops(jaxc_context *context) {
  for (int i = 0; i < 300; i++) cover_run(context, 2 + i % 9, 1);
  return JAXC_OK;
}
TEST(short_loops_end_well_one_after_the_other) {
  run_with_pool(2, many_short_loops);
  run_with_pool(4, many_short_loops);
}

/* Plain memory, not atomics: what pieces write is seen when the loop has returned. */
static void write_piece(void *data, int64_t begin, int64_t end) {
  int64_t *const values = (int64_t *)data;
  for (int64_t i = begin; i < end; i++) values[i] += i;
}
static jaxc_status write_often(jaxc_context *context) {
  int64_t values[MOST] = {0};
  for (int i = 0; i < 50; i++) {
    jaxc_parallel_for(context, MOST, 10, write_piece, values);
    for (int64_t k = 0; k < MOST; k++) CHECK_INT(values[k], k * (i + 1));
  }
  return JAXC_OK;
}
TEST(what_pieces_write_is_seen_afterwards) {
  for (size_t i = 0; i < POOLS; i++) run_with_pool(pools[i], write_often);
}

/* ---- on the pool's own threads ---- */

typedef struct {
  jaxc_context *context;
  _Atomic int done;
} task_t;
static void task_with_a_loop(void *data) {
  task_t *const t = (task_t *)data;
  for (int i = 0; i < 20; i++) cover_run(t->context, 500, 7);
  t->done++;
}
/* As many tasks as threads and more, each with loops, while the handler has its own. */
static jaxc_status loops_in_tasks(jaxc_context *context) {
  task_t t = {context, 0};
  for (int i = 0; i < 6; i++) {
    CHECK_INT(jaxc_context_schedule(context, task_with_a_loop, &t), JAXC_OK);
  }
  cover_run(context, 500, 7);
  while (t.done < 6) sched_yield();
  return JAXC_OK;
}
TEST(a_task_of_the_pool_may_run_loops) {
  static const int with_pool[] = {0, 1, 2, 4, JAXC_HOST_INLINE};
  for (int i = 0; i < 5; i++) run_with_pool(with_pool[i], loops_in_tasks);
}

typedef struct {
  jaxc_context *context;
  int depth;
  _Atomic int leaves;
} nest;
static void nest_piece(void *data, int64_t begin, int64_t end) {
  nest *const n = (nest *)data;
  for (int64_t i = begin; i < end; i++) {
    nest inner = {n->context, n->depth - 1, 0};
    if (n->depth == 0) {
      n->leaves++;
      continue;
    }
    jaxc_parallel_for(n->context, 5, 1, nest_piece, &inner);
    n->leaves += inner.leaves;
  }
}
static jaxc_status nested(jaxc_context *context) {
  nest n = {context, 3, 0};
  jaxc_parallel_for(context, 5, 1, nest_piece, &n);
  CHECK_INT(n.leaves, 5 * 5 * 5 * 5);
  return JAXC_OK;
}
TEST(loops_nest) {
  for (size_t i = 0; i < POOLS; i++) run_with_pool(pools[i], nested);
}

/* ---- a pool that has no thread free until the handler has returned ---- */

static _Atomic int blocked, is_open;
static void wait_for_gate(void *data) {
  (void)data;
  blocked++;
  while (!is_open) sched_yield();
}
static void block_pool(jaxc_context *context, int threads) {
  for (int i = 0; i < threads; i++) {
    CHECK_INT(jaxc_context_schedule(context, wait_for_gate, NULL), JAXC_OK);
  }
  while (blocked < threads) sched_yield();
}

/* Overwrites the stack below, where the handler's loop was. */
static void spoil_stack(void) {
  volatile unsigned char gone[65536];
  for (size_t i = 0; i < sizeof gone; i++) gone[i] = 0xDB;
}

static int pool_size;
static jaxc_status loop_on_blocked_pool(jaxc_context *context) {
  block_pool(context, pool_size);
  cover_run(context, 1000, 1);
  cover_run(context, 100, 3); /* a second loop, whose tasks wait behind the first's */
  return JAXC_OK;
}
static void run_on_blocked_pool(int threads, job_t *wanted) {
  jaxc_host *const host = make_pool(threads, JAXC_HOST_CPU);
  jaxc_host_call *call;
  pool_size = threads;
  blocked = is_open = 0;
  job = wanted;
  CHECK_INT(make_work(host, &call), JAXC_OK);
  CHECK_INT(jaxc_host_call_run(call, &message), JAXC_OK); /* ends with the gate closed */
  spoil_stack();
  is_open = 1;
  end(host, call); /* the tasks run */
  CHECK_INT(allocated, 0);
}
TEST(a_loop_ends_though_no_thread_of_the_pool_is_free) {
  run_on_blocked_pool(1, loop_on_blocked_pool);
  CHECK_INT(made, 0); /* a pool of one thread is not asked */
  run_on_blocked_pool(2, loop_on_blocked_pool);
  CHECK_INT(made, 2);
  run_on_blocked_pool(4, loop_on_blocked_pool);
}

/* A pool that says four: as XLA's may, of which all but one are busy for long. */
static jaxc_abi_error *say_four(jaxc_abi_thread_count_args *args) {
  *args->thread_count = 4;
  return NULL;
}
static void boast(jaxc_abi_api *table) { table->thread_count = say_four; }
static jaxc_status long_loop(jaxc_context *context) {
  if (pool_size > 0) block_pool(context, pool_size);
  cover_run(context, 1000, 1);
  return JAXC_OK;
}
TEST(a_pool_of_one_blocked_thread_is_not_waited_for) {
  change_table = boast;
  run_on_blocked_pool(1, long_loop);
  CHECK_INT(made, 1);
}
TEST(tasks_that_run_where_they_are_scheduled_do_all_of_the_loop) {
  change_table = boast;
  run_with_pool(JAXC_HOST_INLINE, long_loop);
  run_with_pool(0, long_loop);
  CHECK_INT(made, 2);
}

/* A pool that cannot be had after all: it says how many threads it has, and refuses. */
static const jaxc_host *refusing_host;
static jaxc_abi_error *refuse(jaxc_abi_schedule_args *args) {
  jaxc_abi_error_create_args create = JAXC_ZERO;
  (void)args;
  create.struct_size = JAXC_ABI_SIZE(jaxc_abi_error_create_args, code);
  create.message = "the pool is closed";
  create.code = JAXC_UNAVAILABLE;
  return jaxc_host_api(refusing_host)->error_create(&create);
}
static void close_pool(jaxc_abi_api *table) { table->schedule = refuse; }
TEST(a_refused_task_leaves_the_loop_to_the_calling_thread) {
  jaxc_host *const host = make_pool(4, JAXC_HOST_CPU);
  refusing_host = host;
  change_table = close_pool;
  run_on_host(host, alone); /* the error was destroyed */
  CHECK_INT(made, 1);
}

/* ---- several handlers at once ---- */

static jaxc_host_call *shared_call;
static void *run_often(void *data) {
  jaxc_message own;
  (void)data;
  for (int i = 0; i < 25; i++) {
    CHECK_INT(jaxc_host_call_run_on(shared_call, NULL, NULL, &own), JAXC_OK);
  }
  return NULL;
}
static jaxc_status two_loops(jaxc_context *context) {
  cover_run(context, 1000, 7);
  cover_run(context, 9, 1);
  return JAXC_OK;
}
TEST(four_threads_call_handlers_with_loops_at_once) {
  job = two_loops;
  for (size_t i = 0; i < POOLS; i++) {
    jaxc_host *const host = make_pool(pools[i], JAXC_HOST_CPU);
    pthread_t threads[4];
    CHECK_INT(make_work(host, &shared_call), JAXC_OK);
    CHECK_INT(jaxc_host_call_instantiate(shared_call, &message), JAXC_OK);
    for (int k = 0; k < 4; k++) {
      CHECK_INT(pthread_create(&threads[k], NULL, run_often, NULL), 0);
    }
    for (int k = 0; k < 4; k++) CHECK_INT(pthread_join(threads[k], NULL), 0);
    end(host, shared_call);
    CHECK_INT(allocated, 0);
  }
  CHECK_INT(jobs_done, POOLS * 4 * 25);
}

/* ---- memory ---- */

TEST(a_loop_of_one_piece_allocates_nothing) {
  for (size_t i = 0; i < POOLS; i++) {
    the_count = 1000;
    the_grain = 1000;
    run_with_pool(pools[i], cover_once);
    the_count = 1;
    the_grain = 0;
    run_with_pool(pools[i], cover_once);
  }
  CHECK_INT(made, 0);
}

TEST(a_loop_for_several_threads_allocates_one_block) {
  the_count = 1000;
  the_grain = 10;
  run_with_pool(4, cover_once);
  CHECK_INT(made, 1);
}

TEST(without_memory_the_calling_thread_does_all) {
  allocations_left = 0;
  run_with_pool(4, alone);
  run_with_pool(2, alone);
  CHECK_INT(made, 2);
}

/* Each allocation of the host in turn, those for tasks among them. */
TEST(a_task_that_the_pool_has_no_memory_for_is_no_error) {
  int refused = 0;
  int64_t last = 0;
  the_count = 1000;
  the_grain = 10;
  job = cover_once;
  for (int64_t k = 1; k <= last + 1; k++) {
    jaxc_host_options options = {.struct_size = sizeof options};
    const int before = jobs_done;
    jaxc_host *host;
    jaxc_host_call *call = NULL;
    jaxc_status status;
    options.thread_count = 4;
    options.faults.fail_allocation = k;
    last = k;
    if (jaxc_host_create(&options, &host, &message) != JAXC_OK) continue;
    status = make_work(host, &call);
    if (status == JAXC_OK) status = jaxc_host_call_run(call, &message);
    if (jobs_done != before) { /* cover_run has looked at what it did */
      CHECK_INT(status, JAXC_OK);
      last = jaxc_host_allocation_count(host);
      refused += last >= k;
    }
    end(host, call);
    CHECK_INT(allocated, 0);
  }
  CHECK_INT(refused, 3); /* a pool of four is given three tasks */
}

TEST_MAIN
