/* welford.c: mean and variance in one pass. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* Mean and population variance of a row, accurate also where the mean is much larger than
 * the spread.
 *
 * x: (n) -> mean: (), variance: (). Both are NaN for n = 0, as in NumPy.
 * Recurrence: B. P. Welford, "Note on a Method for Calculating Corrected Sums of Squares
 * and Products", Technometrics 4 (1962).
 */
void welford(int n, const double x[n], double *mean, double *variance) {
  double m = 0, squares = 0; /* of the deviations from m */
  for (int i = 0; i < n; i++) {
    const double deviation = x[i] - m;
    m += deviation / (i + 1);
    squares += deviation * (x[i] - m);
  }
  *mean = n > 0 ? m : NAN;
  *variance = n > 0 ? squares / n : NAN;
}
