/* pairwise.c: distances between points in space, for bench.py, which gives REAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <tgmath.h>

/* From one point to n others. */
void pairwise(const REAL x[3], int n, const REAL y[n][3], REAL d[n]) {
  for (int j = 0; j < n; j++) {
    const REAL a = x[0] - y[j][0], b = x[1] - y[j][1], c = x[2] - y[j][2];
    d[j] = sqrt(a * a + b * b + c * c);
  }
}
