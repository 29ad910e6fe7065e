/* pool.c: the threads that tasks of handlers run in.
 *
 *   JAXC_TRY(jaxci_pool_start(host, message));       as many as the options say
 *   error = jaxci_pool_schedule(execution, task, data);
 *   jaxci_pool_run_late(execution);                  without threads, those that waited
 *   jaxci_pool_end(host);                            after all tasks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "parts.h"

static JAXCI_THREAD(work, argument) {
  jaxc_host *const host = (jaxc_host *)argument;
  jaxci_pool *const pool = &host->pool;
  (void)jaxci_enter(host);
  /* The thread runs nothing but tasks of this host's executions. */
  if (host->options.flush_denormals) (void)jaxci_flush_begin();
  jaxci_lock(&pool->lock);
  for (;;) {
    jaxci_task *const task = pool->first;
    if (task == NULL) {
      if (pool->is_ending) break;
      jaxci_wait(&pool->changed, &pool->lock);
      continue;
    }
    pool->first = task->next;
    if (pool->first == NULL) pool->last = NULL;
    jaxci_unlock(&pool->lock);
    task->function(task->data);
    free(task);
    jaxci_lock(&pool->lock);
  }
  jaxci_unlock(&pool->lock);
  return 0;
}

void jaxci_pool_init(jaxc_host *host) {
  jaxci_mutex_init(&host->pool.lock);
  jaxci_condition_init(&host->pool.changed);
}

jaxc_status jaxci_pool_start(jaxc_host *host, jaxc_message *message) {
  jaxci_pool *const pool = &host->pool;
  const int32_t wanted = host->options.thread_count;
  if (wanted <= 0 || host->options.profile != JAXC_HOST_CPU) return JAXC_OK;
  pool->threads =
      (jaxci_thread *)jaxci_allocate(host, (size_t)wanted * sizeof *pool->threads);
  if (pool->threads == NULL) {
    return jaxci_no_memory(message, (size_t)wanted * sizeof *pool->threads);
  }
  while (pool->thread_count < wanted) {
    if (!jaxci_thread_start(&pool->threads[pool->thread_count], work, host)) {
      return JAXC_FAIL(message, JAXC_RESOURCE_EXHAUSTED,
                       "thread %d of the %d of the pool cannot be started",
                       (int)pool->thread_count + 1, (int)wanted);
    }
    pool->thread_count++;
  }
  return JAXC_OK;
}

void jaxci_pool_end(jaxc_host *host) {
  jaxci_pool *const pool = &host->pool;
  jaxci_lock(&pool->lock);
  pool->is_ending = 1;
  jaxci_signal(&pool->changed);
  jaxci_unlock(&pool->lock);
  for (int32_t i = 0; i < pool->thread_count; i++) jaxci_thread_join(pool->threads[i]);
  free(pool->threads);
  jaxci_condition_end(&pool->changed);
  jaxci_mutex_end(&pool->lock);
}

static void append(jaxci_task **first, jaxci_task **last, jaxci_task *node) {
  if (*last != NULL) {
    (*last)->next = node;
  } else {
    *first = node;
  }
  *last = node;
}

jaxc_abi_error *jaxci_pool_schedule(jaxci_execution *execution, jaxc_abi_task *task,
                                    void *data) {
  static const char no_memory[] = "no memory for a task of the pool";
  jaxc_host *const host = execution->call->host;
  jaxci_pool *const pool = &host->pool;
  const int is_late = host->options.thread_count == JAXC_HOST_LATE;
  jaxci_task *node;
  if (jaxci_request_fails(host)) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, no_memory);
  }
  if (host->options.thread_count <= 0 && !is_late) {
    jaxc_host *const before = jaxci_enter(host);
    task(data);
    (void)jaxci_enter(before);
    return NULL;
  }
  node = (jaxci_task *)jaxci_allocate(host, sizeof *node);
  if (node == NULL) return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, no_memory);
  node->function = task;
  node->data = data;
  jaxci_lock(&pool->lock);
  if (is_late) {
    append(&execution->first_late, &execution->last_late, node);
  } else {
    append(&pool->first, &pool->last, node);
    jaxci_signal(&pool->changed);
  }
  jaxci_unlock(&pool->lock);
  return NULL;
}

void jaxci_pool_run_late(jaxci_execution *execution) {
  jaxc_host *const host = execution->call->host;
  jaxc_host *before;
  jaxci_task *task;
  uint64_t mode = 0;
  if (host->options.thread_count != JAXC_HOST_LATE) return;
  before = jaxci_enter(host);
  if (host->options.flush_denormals) mode = jaxci_flush_begin();
  /* None is added any more: the handler's context has ended. */
  jaxci_lock(&host->pool.lock);
  task = execution->first_late;
  execution->first_late = execution->last_late = NULL;
  jaxci_unlock(&host->pool.lock);
  while (task != NULL) {
    jaxci_task *const next = task->next;
    task->function(task->data);
    free(task);
    task = next;
  }
  if (host->options.flush_denormals) jaxci_flush_end(mode);
  (void)jaxci_enter(before);
}
