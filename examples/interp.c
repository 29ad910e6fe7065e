/* interp.c: linear interpolation in a table. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* The piecewise linear function through (xp_i, fp_i), at x.
 *
 * x: (), xp: (n), fp: (n) -> (). xp must increase; left of xp_0 the value is fp_0, right
 * of xp_(n - 1) it is fp_(n - 1), as in numpy.interp. NaN for an empty table or an x of
 * NaN. Many queries of one table are x (q), xp (n), fp (n) -> (q); nothing is copied.
 */
double interp(double x, int n, const double xp[n], const double fp[n]) {
  if (n == 0 || isnan(x)) return NAN;
  if (x <= xp[0]) return fp[0];
  if (x >= xp[n - 1]) return fp[n - 1];
  int low = 0, high = n - 1; /* xp[low] <= x < xp[high] */
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (xp[middle] <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const double t = (x - xp[low]) / (xp[high] - xp[low]);
  return fp[low] + t * (fp[high] - fp[low]);
}
