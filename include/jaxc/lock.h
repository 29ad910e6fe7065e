/* lock.h: the lock of a library that has `#pragma jaxc serial` functions.
 *
 * A kernel that is not re-entrant shares its state with the other kernels of its file, so
 * there is one lock for the whole library. It is not recursive.
 *
 *   jaxc_lock_acquire();
 *   error = jaxc_batch_handle(frame, &next_function);
 *   jaxc_lock_release();
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_LOCK_H
#define JAXC_LOCK_H

#ifdef _WIN32
#include <windows.h>
static SRWLOCK jaxci_lock = SRWLOCK_INIT;
static inline void jaxc_lock_acquire(void) { AcquireSRWLockExclusive(&jaxci_lock); }
static inline void jaxc_lock_release(void) { ReleaseSRWLockExclusive(&jaxci_lock); }
#else
#include <pthread.h>
static pthread_mutex_t jaxci_lock = PTHREAD_MUTEX_INITIALIZER;
static inline void jaxc_lock_acquire(void) { pthread_mutex_lock(&jaxci_lock); }
static inline void jaxc_lock_release(void) { pthread_mutex_unlock(&jaxci_lock); }
#endif

#endif /* JAXC_LOCK_H */
