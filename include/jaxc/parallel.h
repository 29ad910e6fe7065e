/* parallel.h: a loop over the runtime's own threads.
 *
 *   static void scale(void *data, int64_t begin, int64_t end) {
 *     const scale_call *call = data;
 *     for (int64_t i = begin; i < end; i++) call->y.data[i] = 2 * call->x.data[i];
 *   }
 *   ...
 *   jaxc_parallel_for(context, call->y.count, 16384, scale, (void *)call);
 *
 * The calling thread takes pieces itself and returns when all are done, so the loop ends
 * also where the pool has no thread free, has size 0 or 1, or is the pool of the calling
 * thread: a task that has not started is never waited for. One that starts when the loop
 * has ended finds that out from memory that it shares with the loop and frees last.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_PARALLEL_H
#define JAXC_PARALLEL_H

#include <jaxc/context.h>
#ifndef _WIN32
#include <sched.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define JAXCI_HAS_ATOMICS 1
/* One order for all: a task raises `running` and then looks at `next`, the calling thread
 * ends `next` and then looks at `running`. */
#define JAXCI_LOAD(place) __atomic_load_n(place, __ATOMIC_SEQ_CST)
#define JAXCI_STORE(place, value) __atomic_store_n(place, value, __ATOMIC_SEQ_CST)
#define JAXCI_ADD(place, value) __atomic_fetch_add(place, value, __ATOMIC_SEQ_CST)
/* Sets *place to `to` where it is *from; else *from is what it is. */
#define JAXCI_SWAP(place, from, to)                                              \
  __atomic_compare_exchange_n(place, from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#else
#define JAXCI_HAS_ATOMICS 0 /* loops then run in the calling thread */
#define JAXCI_LOAD(place) (*(place))
#define JAXCI_STORE(place, value) (*(place) = (value))
#define JAXCI_ADD(place, value) ((*(place) += (value)) - (value))
#define JAXCI_SWAP(place, from, to) (*(place) = (to), (void)(from), 1)
#endif

/* What the threads of one loop share. Freed by whom uses it last. */
typedef struct jaxci_loop {
  int64_t next;       /* begin of the next piece */
  int64_t count;
  int64_t piece;
  int64_t limit;      /* nothing from here on is begun: somewhere the work has failed */
  int64_t running;    /* tasks that may be inside `work` */
  int64_t references;
  void (*work)(struct jaxci_loop *loop, void *data, void *own);
  void *data;         /* the caller's; gone when next >= count and nothing is running */
} jaxci_loop;

/* Takes the next piece; 0 when there is none. */
static inline int jaxci_loop_next(jaxci_loop *loop, int64_t *begin, int64_t *end) {
  *begin = JAXCI_LOAD(&loop->next);
  do {
    if (*begin >= loop->count || *begin >= JAXCI_LOAD(&loop->limit)) return 0;
    *end = loop->count - *begin < loop->piece ? loop->count : *begin + loop->piece;
  } while (!JAXCI_SWAP(&loop->next, begin, *end));
  return 1;
}

/* Nothing from `index` on need be begun. Pieces are taken in order, so all before it have
 * been taken, and the least of all indices that are told here is the same in every run. */
JAXC_UNUSED static inline void jaxci_loop_stop(jaxci_loop *loop, int64_t index) {
  int64_t limit = JAXCI_LOAD(&loop->limit);
  while (index < limit && !JAXCI_SWAP(&loop->limit, &limit, index)) {
  }
}

static inline void jaxci_loop_release(jaxci_loop *loop) {
  if (JAXCI_ADD(&loop->references, -1) == 1) free(loop);
}

/* A task of the pool. */
JAXC_UNUSED static void jaxci_loop_task(void *shared) {
  jaxci_loop *const loop = (jaxci_loop *)shared;
  (void)JAXCI_ADD(&loop->running, 1);
  /* Asked after `running` was raised: the caller leaves only when nothing is running, and
   * from then on there is nothing left to take. */
  if (JAXCI_LOAD(&loop->next) < loop->count) loop->work(loop, loop->data, NULL);
  (void)JAXCI_ADD(&loop->running, -1);
  jaxci_loop_release(loop);
}

/* Waits for the pieces that other threads have taken. They are running, and short. */
JAXC_UNUSED static void jaxci_loop_wait(const jaxci_loop *loop) {
  int spins = 0;
  while (JAXCI_LOAD(&loop->running) != 0) {
    if (++spins < 4096) {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      __asm__ __volatile__("yield");
#endif
    } else {
#ifndef _WIN32
      sched_yield();
#endif
    }
  }
}

/* Whether the runtime knows of a pool at all. */
static inline int jaxci_loop_has_pool(const jaxc_abi_call_frame *frame) {
  return JAXCI_HAS_ATOMICS && JAXC_ABI_HAS(frame->api, jaxc_abi_api, thread_count) &&
         frame->api->thread_count != NULL && frame->api->schedule != NULL;
}

/* Threads that a loop may use, the calling one included; 1 where the runtime has no pool
 * to share. */
JAXC_UNUSED static int64_t jaxci_loop_threads(const jaxc_abi_call_frame *frame) {
  const jaxc_abi_api *const api = frame->api;
  jaxc_abi_thread_count_args args = JAXC_ZERO;
  jaxc_abi_error *error;
  int64_t count = 1;
  if (!jaxci_loop_has_pool(frame)) return 1;
  args.struct_size = JAXC_ABI_SIZE(jaxc_abi_thread_count_args, thread_count);
  args.context = frame->context;
  args.thread_count = &count;
  error = api->thread_count(&args);
  if (error != NULL) {
    jaxci_error_destroy(api, error);
    return 1;
  }
  return count < 1 ? 1 : count;
}

/* Hands `loop` to up to `tasks` threads of the pool. */
JAXC_UNUSED static void jaxci_loop_schedule(const jaxc_abi_call_frame *frame,
                                            jaxci_loop *loop, int64_t tasks) {
  for (int64_t i = 0; i < tasks; i++) {
    jaxc_abi_schedule_args args = JAXC_ZERO;
    jaxc_abi_error *error;
    args.struct_size = JAXC_ABI_SIZE(jaxc_abi_schedule_args, data);
    args.context = frame->context;
    args.task = jaxci_loop_task;
    args.data = loop;
    (void)JAXCI_ADD(&loop->references, 1);
    error = frame->api->schedule(&args);
    if (error == NULL) continue;
    jaxci_error_destroy(frame->api, error);
    jaxci_loop_release(loop);
    return; /* the calling thread does it all */
  }
}

/* Runs work(loop, data, own) in the calling thread, and with NULL for `own` in up to
 * `threads` - 1 threads of the pool. Each takes pieces of begin to count - 1 by
 * jaxci_loop_next until there is none. Returns the least index that jaxci_loop_stop was
 * told, or count. */
JAXC_UNUSED static int64_t jaxci_loop_run(
    const jaxc_abi_call_frame *frame, int64_t begin, int64_t count, int64_t piece,
    int64_t threads, void (*work)(jaxci_loop *loop, void *data, void *own), void *data,
    void *own) {
  jaxci_loop alone;
  jaxci_loop *loop = &alone;
  const int64_t pieces = (count - begin - 1) / piece + 1;
  const int64_t tasks = (threads < pieces ? threads : pieces) - 1;
  int64_t limit;
  if (tasks > 0) loop = (jaxci_loop *)malloc(sizeof *loop);
  if (loop == NULL) loop = &alone; /* slower, but done */
  loop->next = begin;
  loop->count = loop->limit = count;
  loop->piece = piece;
  loop->running = 0;
  loop->references = 1;
  loop->work = work;
  loop->data = data;
  if (loop != &alone) jaxci_loop_schedule(frame, loop, tasks);
  work(loop, data, own);
  JAXCI_STORE(&loop->next, count); /* where something has failed, some were left */
  jaxci_loop_wait(loop);
  limit = JAXCI_LOAD(&loop->limit);
  if (loop != &alone) jaxci_loop_release(loop);
  return limit;
}

/* ---- for handlers ---- */

/* The work on indices begin to end - 1. */
typedef void jaxc_parallel_function(void *data, int64_t begin, int64_t end);

typedef struct {
  jaxc_parallel_function *function;
  void *data;
} jaxci_parallel_call;

JAXC_UNUSED static void jaxci_parallel_work(jaxci_loop *loop, void *data, void *own) {
  const jaxci_parallel_call *const call = (const jaxci_parallel_call *)data;
  int64_t begin, end;
  (void)own;
  while (jaxci_loop_next(loop, &begin, &end)) call->function(call->data, begin, end);
}

/* Calls function(data, begin, end) for pieces of 0 to count - 1, each `grain` long but the
 * last, in the calling thread and in the runtime's; returns when all are done. Choose a
 * grain of some 10 microseconds of work. Pieces run in any order and at the same time.
 * Only inside a handler's function; `data` may lie on its stack. */
JAXC_UNUSED static void jaxc_parallel_for(jaxc_context *context, int64_t count,
                                          int64_t grain, jaxc_parallel_function *function,
                                          void *data) {
  jaxci_parallel_call call;
  if (count <= 0) return;
  if (grain < 1) grain = 1;
  if (count <= grain) {
    function(data, 0, count);
    return;
  }
  call.function = function;
  call.data = data;
  (void)jaxci_loop_run(context->frame, 0, count, grain,
                       jaxci_loop_threads(context->frame), jaxci_parallel_work, &call, NULL);
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_PARALLEL_H */
