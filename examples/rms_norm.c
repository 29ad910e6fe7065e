/* rms_norm.c: root-mean-square normalisation of a row. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* Root-mean-square normalisation: y = x / sqrt(mean(x^2) + eps).
 *
 * x: (n), eps: () -> y: (n). A positive eps keeps a row of zeros at zero.
 * Formula: B. Zhang and R. Sennrich, "Root Mean Square Layer Normalization", NeurIPS
 * 2019.
 */
void rms_norm(int n, const float x[n], float eps, float y[n]) {
  float s = 0;
#pragma omp simd reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  const float scale = 1 / sqrtf(s / (float)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * scale;
}
