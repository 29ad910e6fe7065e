/* rectify.c: a leaky sum that never is below zero, for bench.py, which gives REAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* y_i = max(y_(i - 1) / 2 + x_i, 0): each value needs the one before. */
void rectify(int n, const REAL x[n], REAL y[n]) {
  REAL carry = 0;
  for (int i = 0; i < n; i++) {
    carry = carry / 2 + x[i];
    carry = carry > 0 ? carry : 0;
    y[i] = carry;
  }
}

/* 8 rows side by side: each waits for its own sum, so others fill the time. */
void rectify_lanes(int n, const REAL x[restrict 8][n], REAL y[restrict 8][n]) {
  REAL carry[8] = {0};
  for (int i = 0; i < n; i++) {
    for (int s = 0; s < 8; s++) {
      const REAL sum = carry[s] / 2 + x[s][i];
      y[s][i] = carry[s] = sum > 0 ? sum : 0;
    }
  }
}
