/* pool.c: the threads that tasks of handlers run in.
 *
 *   JAXC_TRY(jaxci_pool_start(host, message));       as many as the options say
 *   error = jaxci_pool_schedule(host, task, data);
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

jaxc_abi_error *jaxci_pool_schedule(jaxc_host *host, jaxc_abi_task *task, void *data) {
  jaxci_pool *const pool = &host->pool;
  jaxci_task *node;
  if (host->options.thread_count <= 0) {
    jaxc_host *const before = jaxci_enter(host);
    task(data);
    (void)jaxci_enter(before);
    return NULL;
  }
  node = (jaxci_task *)jaxci_allocate(host, sizeof *node);
  if (node == NULL) {
    return jaxci_error_make(JAXC_RESOURCE_EXHAUSTED, "no memory for a task of the pool");
  }
  node->function = task;
  node->data = data;
  jaxci_lock(&pool->lock);
  if (pool->last != NULL) {
    pool->last->next = node;
  } else {
    pool->first = node;
  }
  pool->last = node;
  jaxci_signal(&pool->changed);
  jaxci_unlock(&pool->lock);
  return NULL;
}
