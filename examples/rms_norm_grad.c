/* rms_norm_grad.c: root-mean-square normalisation with its derivatives by name. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* 1 / sqrt(mean(x^2) + eps), which every function below needs. */
static float inverse_rms(int n, const float x[], float eps) {
  float s = 0;
#pragma omp simd reduction(+ : s)
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  return 1 / sqrtf(s / (float)n + eps);
}

static float dot(int n, const float a[], const float b[]) {
  float s = 0;
#pragma omp simd reduction(+ : s)
  for (int i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

/* y = x r with r = 1 / sqrt(mean(x^2) + eps). x: (n), eps: () -> y: (n). */
void rms_norm(int n, const float x[n], float eps, float y[n]) {
  const float r = inverse_rms(n, x, eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * r;
}

/* The same, keeping r: the output that rms_norm has not is a residual. */
void rms_norm_fwd(int n, const float x[n], float eps, float y[n], float *r) {
  *r = inverse_rms(n, x, eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * *r;
}

/* Cotangents of the inputs. From dr = -r^3 (x . dx / n + deps / 2):
 * ct_x = r ct_y - r^3 (ct_y . x) x / n and ct_eps = -r^3 (ct_y . x) / 2.
 */
void rms_norm_bwd(int n, const float x[n], float r, const float ct_y[n], float ct_x[n],
                  float *ct_eps) {
  const float along = r * r * r * dot(n, ct_y, x);
  for (int i = 0; i < n; i++) ct_x[i] = r * ct_y[i] - along / (float)n * x[i];
  *ct_eps = -along / 2;
}

/* Tangent of the output; the matrix of x -> y is symmetric, so this is bwd again. */
void rms_norm_jvp(int n, const float x[n], float eps, const float d_x[n], float d_eps,
                  float d_y[n]) {
  const float r = inverse_rms(n, x, eps);
  const float along = r * r * r * (dot(n, d_x, x) / (float)n + d_eps / 2);
  for (int i = 0; i < n; i++) d_y[i] = r * d_x[i] - along * x[i];
}
