/* fftw.c: FFTW's transform, with its plans kept for all threads and calls. */
/* SPDX-License-Identifier: Apache-2.0
 *
 *   lib = jaxc.load("fftw.c", libraries=["fftw3"])
 *   y = lib.fft(x)
 *
 * A plan costs much more than a transform and is the same for all rows of a length. FFTW
 * makes plans one at a time, so there is a lock; one that is there is found without it,
 * and any number of threads may execute it on arrays of their own.
 */
#include <complex.h>
#include <fftw3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct plan {
  struct plan *next;
  int n;
  fftw_plan made;
} plan;

static _Atomic(plan *) plans; /* newest first; they stay as long as the process */
static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

static const plan *find(int n) {
  const plan *p = atomic_load_explicit(&plans, memory_order_acquire);
  while (p != 0 && p->n != n) p = p->next;
  return p;
}

/* A plan for arrays of any alignment; FFTW_ESTIMATE writes into none. */
static plan *make(int n) {
  plan *const p = (plan *)malloc(sizeof *p);
  fftw_complex *const x = fftw_alloc_complex((size_t)n);
  fftw_complex *const y = fftw_alloc_complex((size_t)n);
  const unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  if (p != 0) {
    p->n = n;
    p->made = 0;
    if (x != 0 && y != 0) p->made = fftw_plan_dft_1d(n, x, y, FFTW_FORWARD, flags);
    p->next = atomic_load_explicit(&plans, memory_order_relaxed);
  }
  fftw_free(x);
  fftw_free(y);
  if (p != 0 && p->made == 0) {
    free(p);
    return 0;
  }
  return p;
}

static const plan *find_or_make(int n) {
  const plan *found = find(n);
  if (found != 0) return found;
  pthread_mutex_lock(&planner);
  found = find(n); /* another thread may have been first */
  if (found == 0) {
    plan *const made = make(n);
    if (made != 0) atomic_store_explicit(&plans, made, memory_order_release);
    found = made;
  }
  pthread_mutex_unlock(&planner);
  return found;
}

/* The discrete Fourier transform of a row. It is linear: its own derivative. */
#pragma jaxc linear(x)
const char *fft(int n, const double complex x[n], double complex y[n]) {
  const plan *p;
  if (n == 0) return 0;
  p = find_or_make(n);
  if (p == 0) return "FFTW has no memory for a plan";
  fftw_execute_dft(p->made, (fftw_complex *)x, y); /* which does not write to x */
  return 0;
}

/* The matrix of the transform is symmetric. */
const char *fft_transpose(int n, const double complex ct_y[n], double complex ct_x[n]) {
  return fft(n, ct_y, ct_x);
}
