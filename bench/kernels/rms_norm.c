/* rms_norm.c: normalisation of rows with its derivative, for bench.py. REAL is given there.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <tgmath.h>

static REAL dot(int n, const REAL a[], const REAL b[]) {
  REAL s = 0;
#pragma omp simd reduction(+ : s)
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

/* y = x r with r = 1 / sqrt(mean(x^2) + eps). */
void rms_norm(int n, const REAL x[n], REAL eps, REAL y[n]) {
  const REAL r = 1 / sqrt(dot(n, x, x) / (REAL)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * r;
}

/* The same, keeping r. */
void rms_norm_fwd(int n, const REAL x[n], REAL eps, REAL y[n], REAL *r) {
  *r = 1 / sqrt(dot(n, x, x) / (REAL)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * *r;
}

void rms_norm_bwd(int n, const REAL x[n], REAL r, const REAL ct_y[n], REAL ct_x[n],
                  REAL *ct_eps) {
  const REAL along = r * r * r * dot(n, ct_y, x);
  for (int i = 0; i < n; i++) ct_x[i] = r * ct_y[i] - along / (REAL)n * x[i];
  *ct_eps = -along / 2;
}

/* The sum in order, as C without a pragma says it; that does not vectorise. */
void rms_norm_plain(int n, const REAL x[n], REAL eps, REAL y[n]) {
  REAL s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  const REAL r = 1 / sqrt(s / (REAL)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * r;
}
