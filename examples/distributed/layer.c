/* layer.c: tanh of a scaled and shifted RMS norm, with its gradient; train.py trains it. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

static const float eps = 1e-5f;

/* 1 / sqrt(mean(x^2) + eps). */
static float inverse_rms(int n, const float x[]) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  return 1 / sqrtf(sum / (float)n + eps);
}

/* y = tanh(w x r + b) with r = 1 / sqrt(mean(x^2) + eps). x, w, b: (n) -> y: (n). */
void layer(int n, const float x[n], const float w[n], const float b[n], float y[n]) {
  const float r = inverse_rms(n, x);
  for (int i = 0; i < n; i++) y[i] = tanhf(w[i] * x[i] * r + b[i]);
}

/* The same, keeping r: the output that layer has not is a residual. */
void layer_fwd(int n, const float x[n], const float w[n], const float b[n], float y[n],
               float *r) {
  *r = inverse_rms(n, x);
  for (int i = 0; i < n; i++) y[i] = tanhf(w[i] * x[i] * *r + b[i]);
}

/* Cotangents of the inputs for one row. JAX sums ct_w and ct_b over the rows, and the
 * compiler over the devices. From dr = -r^3 (x . dx) / n, with z = w x r + b:
 * ct_x = r w ct_z - r^3 (w ct_z . x) x / n.
 */
void layer_bwd(int n, const float x[n], const float w[n], const float y[n], float r,
               const float ct_y[n], float ct_x[n], float ct_w[n], float ct_b[n]) {
  float along = 0;
  for (int i = 0; i < n; i++) {
    const float ct_z = (1 - y[i] * y[i]) * ct_y[i];
    ct_b[i] = ct_z;
    ct_w[i] = ct_z * x[i] * r;
    ct_x[i] = ct_z * w[i];
    along += ct_x[i] * x[i];
  }
  along *= r * r * r / (float)n;
  for (int i = 0; i < n; i++) ct_x[i] = r * ct_x[i] - along * x[i];
}
