/* pipeline.c: three steps that prepare a signal for a spectrum, and one that is all three. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* The signal without its least-squares line. (n) -> (n) */
void detrend(int n, const float x[n], float y[n]) {
  double sum = 0, moment = 0, slope;
  const double middle = (n - 1) / 2.0;
  for (int i = 0; i < n; i++) {
    sum += x[i];
    moment += (i - middle) * x[i];
  }
  slope = n > 1 ? moment / (n * ((double)n * n - 1) / 12) : 0;
  for (int i = 0; i < n; i++) y[i] = (float)(x[i] - sum / n - slope * (i - middle));
}

/* The signal under a Hann window. (n) -> (n) */
void taper(int n, const float x[n], float y[n]) {
  const double step = 2 * 3.14159265358979323846 / (n > 1 ? n - 1 : 1);
  for (int i = 0; i < n; i++) y[i] = (float)(x[i] * (0.5 - 0.5 * cos(step * i)));
}

/* The signal with an energy of one; zeros stay zeros. (n) -> (n) */
void normalise(int n, const float x[n], float y[n]) {
  double energy = 0;
  for (int i = 0; i < n; i++) energy += (double)x[i] * x[i];
  const float scale = energy > 0 ? (float)(1 / sqrt(energy)) : 1;
  for (int i = 0; i < n; i++) y[i] = scale * x[i];
}

/* All three in one call: a C function calls the others, and its work arrays are scratch. */
#pragma jaxc scratch(straight, tapered)
void prepare(int n, const float x[n], float straight[n], float tapered[n], float y[n]) {
  detrend(n, x, straight);
  taper(n, straight, tapered);
  normalise(n, tapered, y);
}
