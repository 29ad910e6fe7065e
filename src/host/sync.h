/* sync.h: a lock, a condition and threads, of POSIX or Windows.
 *
 *   jaxci_lock(&mutex);
 *   while (!ready) jaxci_wait(&condition, &mutex);
 *   jaxci_unlock(&mutex);
 *
 * Windows is kept in the code's paths and untested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_HOST_SYNC_H
#define JAXC_HOST_SYNC_H

#include <stdint.h>

#ifdef _WIN32
#include <windows.h>

typedef SRWLOCK jaxci_mutex;
typedef CONDITION_VARIABLE jaxci_condition;
typedef HANDLE jaxci_thread;
#define JAXCI_MUTEX_INIT SRWLOCK_INIT
#define JAXCI_CONDITION_INIT CONDITION_VARIABLE_INIT

static inline void jaxci_lock(jaxci_mutex *mutex) { AcquireSRWLockExclusive(mutex); }
static inline void jaxci_unlock(jaxci_mutex *mutex) { ReleaseSRWLockExclusive(mutex); }
static inline void jaxci_mutex_init(jaxci_mutex *mutex) { InitializeSRWLock(mutex); }
static inline void jaxci_mutex_end(jaxci_mutex *mutex) { (void)mutex; }
static inline void jaxci_condition_init(jaxci_condition *condition) {
  InitializeConditionVariable(condition);
}
static inline void jaxci_condition_end(jaxci_condition *condition) { (void)condition; }
static inline void jaxci_signal(jaxci_condition *condition) {
  WakeAllConditionVariable(condition);
}
static inline void jaxci_wait(jaxci_condition *condition, jaxci_mutex *mutex) {
  SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
static inline void jaxci_wait_ms(jaxci_condition *condition, jaxci_mutex *mutex, int ms) {
  SleepConditionVariableSRW(condition, mutex, (DWORD)ms, 0);
}
static inline int64_t jaxci_now_ms(void) { return (int64_t)GetTickCount64(); }

/* A thread's function is written as JAXCI_THREAD(name, argument) { ...; return 0; } */
#define JAXCI_THREAD(name, argument) DWORD WINAPI name(LPVOID argument)
typedef DWORD(WINAPI *jaxci_thread_function)(LPVOID argument);
static inline int jaxci_thread_start(jaxci_thread *out, jaxci_thread_function function,
                                     void *argument) {
  *out = CreateThread(NULL, 0, function, argument, 0, NULL);
  return *out != NULL;
}
static inline void jaxci_thread_join(jaxci_thread thread) {
  WaitForSingleObject(thread, INFINITE);
  CloseHandle(thread);
}

#else
#include <pthread.h>
#include <time.h>

typedef pthread_mutex_t jaxci_mutex;
typedef pthread_cond_t jaxci_condition;
typedef pthread_t jaxci_thread;
#define JAXCI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define JAXCI_CONDITION_INIT PTHREAD_COND_INITIALIZER

static inline void jaxci_lock(jaxci_mutex *mutex) { pthread_mutex_lock(mutex); }
static inline void jaxci_unlock(jaxci_mutex *mutex) { pthread_mutex_unlock(mutex); }
static inline void jaxci_mutex_init(jaxci_mutex *mutex) {
  pthread_mutex_init(mutex, NULL);
}
static inline void jaxci_mutex_end(jaxci_mutex *mutex) { pthread_mutex_destroy(mutex); }
static inline void jaxci_condition_init(jaxci_condition *condition) {
  pthread_cond_init(condition, NULL);
}
static inline void jaxci_condition_end(jaxci_condition *condition) {
  pthread_cond_destroy(condition);
}
static inline void jaxci_signal(jaxci_condition *condition) {
  pthread_cond_broadcast(condition);
}
static inline void jaxci_wait(jaxci_condition *condition, jaxci_mutex *mutex) {
  pthread_cond_wait(condition, mutex);
}

/* Waits no longer than that, possibly less. A condition that is initialised statically
 * counts by the wall clock, which may jump: wait in short steps and look at
 * jaxci_now_ms. */
static inline void jaxci_wait_ms(jaxci_condition *condition, jaxci_mutex *mutex, int ms) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += (long)(ms % 1000) * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000L;
  }
  pthread_cond_timedwait(condition, mutex, &until);
}
static inline int64_t jaxci_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A thread's function is written as JAXCI_THREAD(name, argument) { ...; return 0; } */
#define JAXCI_THREAD(name, argument) void *name(void *argument)
typedef void *(*jaxci_thread_function)(void *argument);
static inline int jaxci_thread_start(jaxci_thread *out, jaxci_thread_function function,
                                     void *argument) {
  return pthread_create(out, NULL, function, argument) == 0;
}
static inline void jaxci_thread_join(jaxci_thread thread) { pthread_join(thread, NULL); }
#endif

#endif /* JAXC_HOST_SYNC_H */
