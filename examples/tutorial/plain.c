/* plain.c: the same root-mean-square normalisation for jaxc.load: C and nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

void rms_norm_fwd(int n, const float x[n], float eps, float y[n], float *r) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  *r = 1 / sqrtf(sum / (float)n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * *r;
}

void rms_norm(int n, const float x[n], float eps, float y[n]) {
  float r;
  rms_norm_fwd(n, x, eps, y, &r);
}

/* ct_x = r ct_y - r^3 (x . ct_y) x / n and ct_eps = -r^3 (x . ct_y) / 2. */
void rms_norm_bwd(int n, const float x[n], float r, const float ct_y[n], float ct_x[n],
                  float *ct_eps) {
  float dot = 0;
  for (int i = 0; i < n; i++) dot += x[i] * ct_y[i];
  const float along = r * r * r * dot;
  for (int i = 0; i < n; i++) ct_x[i] = r * ct_y[i] - along / (float)n * x[i];
  *ct_eps = -along / 2;
}

void rms_norm_jvp(int n, const float x[n], float eps, const float d_x[n], float d_eps,
                  float d_y[n]) {
  float dot = 0, r;
  rms_norm_fwd(n, x, eps, d_y, &r);
  for (int i = 0; i < n; i++) dot += x[i] * d_x[i];
  const float along = r * r * r * (dot / (float)n + d_eps / 2);
  for (int i = 0; i < n; i++) d_y[i] = r * d_x[i] - along * x[i];
}
