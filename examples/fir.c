/* fir.c: finite impulse response filter of a signal. */
/* SPDX-License-Identifier: Apache-2.0 */

/* Filters a signal where all taps overlap it: y_i = sum over j of w_j x_(i + k - 1 - j).
 *
 * x: (n), w: (k) -> y: (n - k + 1), for 1 <= k <= n + 1.
 * The same as numpy.convolve(x, w, mode="valid"). The loop over taps is outside, so that
 * the inner loop is over neighbours in memory and vectorises without reordering a sum.
 */
void fir(int n, int k, const float x[n], const float w[k], float y[restrict n - k + 1]) {
  const int count = n - k + 1;
  for (int i = 0; i < count; i++) y[i] = 0;
  for (int j = 0; j < k; j++) {
    const float *shifted = x + (k - 1 - j);
    for (int i = 0; i < count; i++) y[i] += w[j] * shifted[i];
  }
}
