/* mandelbrot.c: escape time of points of the complex plane. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <complex.h>

/* Escape time: the first k for which z_k leaves the disc |z| <= 2, where z_0 = 0 and
 * z_(k + 1) = z_k^2 + c; `limit` when none of z_0 .. z_(limit - 1) does.
 *
 * c: (), limit: static -> (). A point of the Mandelbrot set never leaves the disc, and an
 * orbit that has left it never returns. The arithmetic is on real and imaginary parts,
 * because a product of two C complex numbers also mends infinities, which costs a call.
 * Source: B. B. Mandelbrot, "The Fractal Geometry of Nature", Freeman, 1982.
 */
#pragma jaxc static(limit)
int mandelbrot(double complex c, int limit) {
  const double a = creal(c), b = cimag(c);
  double x = 0, y = 0;
  for (int k = 0; k < limit; k++) {
    const double xx = x * x, yy = y * y;
    if (xx + yy > 4) return k;
    y = 2 * x * y + b;
    x = xx - yy + a;
  }
  return limit;
}
