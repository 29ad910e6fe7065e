/* kernels.c: plain C functions for the tests of jaxc-run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

void rms_norm(int n, const float x[n], float eps, float y[n]) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  for (int i = 0; i < n; i++) y[i] = x[i] / sqrtf(sum / n + eps);
}

void smooth(int n, int k, const double x[n], const double w[k], double y[n - k + 1]) {
  for (int i = 0; i < n - k + 1; i++) {
    y[i] = 0;
    for (int j = 0; j < k; j++) y[i] += x[i + j] * w[j];
  }
}

void pairs(int n, const float w[2 * n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = w[2 * i] + w[2 * i + 1];
}

void ramp(int n, float from, float y[n]) {
  for (int i = 0; i < n; i++) y[i] = from + i;
}

void tiny(int8_t n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
}

double twice(double x) {
  return 2 * x;
}

#pragma jaxc static(k, scale, bits, exact, name)
void statics(int n, int k, double scale, uint64_t bits, _Bool exact, const char *name,
             const float x[n], double y[n]) {
  for (int i = 0; i < n; i++) {
    y[i] = (double)x[i] * k + scale + (double)(bits >> 60) * 100 + exact * 1000 +
           (double)strlen(name) * 10000;
  }
}

#pragma jaxc inout(x)
void bump(int n, float x[n]) {
  for (int i = 0; i < n; i++) x[i] += 1;
}

#pragma jaxc effect
void noted(int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = -x[i];
}

int checked(int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i];
  return n > 0 && x[0] < 0 ? 7 : 0;
}

#pragma jaxc grid(i < n - 1, k < 2) zero(y)
void steps(int k, int i, int n, const float x[n], float y[n][2]) {
  y[i][k] = x[i + k] - x[i + 1 - k];
}

int in_context(jaxc_context *context, int n, const float x[n], float y[n]) {
  for (int i = 0; i < n; i++) y[i] = x[i] + 1;
  return context == NULL;
}

void refused(float *p, int n) {
  p[0] = (float)n;
}
