/* rms_norm.c: the C that bench.py loads, and edits: it writes the gain anew in each round.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <math.h>

static const float gain = 1.0f;

/* Root-mean-square normalisation of a row. */
void rms_norm(int n, const float x[n], float eps, float y[n]) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  const float scale = gain / sqrtf(s / n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * scale;
}
