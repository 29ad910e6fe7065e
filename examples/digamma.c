/* digamma.c: the logarithmic derivative of the gamma function. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

/* Digamma function psi(x) = gamma'(x) / gamma(x).
 *
 * x: () -> (). NaN at the poles 0, -1, -2, ...; elsewhere the error is a few units of
 * 1e-16 times the largest term that is added, so near a root it is absolute.
 * Formulas, of the NIST Digital Library of Mathematical Functions, https://dlmf.nist.gov:
 *   5.5.4   psi(x) = psi(1 - x) - pi / tan(pi x), for x <= 0
 *   5.5.2   psi(x) = psi(x + 1) - 1 / x, until x >= 10
 *   5.11.2  psi(x) ~ log(x) - 1 / (2 x) - sum over k of B_2k / (2 k x^2k)
 * Seven terms are kept. The first that is left out, 3617 / (8160 x^16), bounds the error
 * for x > 0 and is below 5e-17 for x >= 10.
 */
double digamma(double x) {
  const double pi = 3.14159265358979323846;
  double sum = 0;
  if (x <= 0) {
    const double r = x - round(x); /* exact, and tan has the period pi */
    if (r == 0 || isinf(x)) return NAN;
    sum = -pi / tan(pi * r);
    x = 1 - x;
  }
  for (; x < 10; x++) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double series =
      z * (1. / 12 -
           z * (1. / 120 -
                z * (1. / 252 -
                     z * (1. / 240 - z * (1. / 132 - z * (691. / 32760 - z / 12))))));
  return sum + log(x) - 1 / (2 * x) - series;
}
