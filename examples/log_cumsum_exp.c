/* log_cumsum_exp.c: running sum of numbers that are known by their logarithms. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* Running log-sum-exp: y_i = log(exp(x_0) + ... + exp(x_i)).
 *
 * x: (n) -> y: (n). The sum is kept as s exp(m) with m the largest x so far, so nothing
 * overflows and s is at least 1; a new maximum rescales s. Infinities are handled, and
 * from a NaN on all results are NaN.
 * Method: M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax",
 * arXiv:1805.02867, 2018.
 */
void log_cumsum_exp(int n, const float x[n], float y[n]) {
  float m = -INFINITY, s = 0;
  for (int i = 0; i < n; i++) {
    if (x[i] > m) {
      s = s * expf(m - x[i]) + 1;
      m = x[i];
    } else {
      s += x[i] == m ? 1 : expf(x[i] - m); /* m - m is NaN for an infinite m */
    }
    y[i] = m + logf(s);
  }
}
