/* variants.c: further functions for bench.py. rms_norm itself comes by inclusion, so it is
 * not exposed here and is inlined.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rms_norm.c"

/* The same with eps as a part of the program, like an Attr of C++. */
#pragma jaxc static(eps)
void rms_norm_static(int n, const float x[n], float eps, float y[n]) {
  rms_norm(n, x, eps, y);
}

/* The same with a sum in vector lanes. */
void rms_norm_simd(int n, const float x[n], float eps, float y[n]) {
  float s = 0;
#pragma omp simd reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  const float scale = gain / sqrtf(s / n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * scale;
}

/* A row and a table that all rows share: y[i] = x[i] + the mean of the table's ends. */
void add_table(int n, int m, const float x[n], const float table[m], float y[n]) {
  const float shift = (table[0] + table[m - 1]) / 2;
  for (int i = 0; i < n; i++) y[i] = x[i] + shift;
}
