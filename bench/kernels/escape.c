/* escape.c: escape time of points of the complex plane, for bench.py, which gives REAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Of one point. */
#pragma jaxc static(limit)
int escape(REAL a, REAL b, int limit) {
  REAL x = 0, y = 0;
  for (int k = 0; k < limit; k++) {
    const REAL xx = x * x, yy = y * y;
    if (xx + yy > 4) return k;
    y = 2 * x * y + b;
    x = xx - yy + a;
  }
  return limit;
}

#define LANES 32
#define STEPS 8 /* until it is asked whether a point is left */

/* Of 32 points side by side. One that has left stays outside, until it is infinite or NaN,
 * which compares as outside. */
static void escape_block(const REAL a[LANES], const REAL b[LANES], int limit,
                         int count[LANES]) {
  REAL x[LANES] = {0}, y[LANES] = {0};
  for (int s = 0; s < LANES; s++) count[s] = 0;
  for (int k = 0; k < limit; k += STEPS) {
    const int steps = limit - k < STEPS ? limit - k : STEPS;
    int left = 0;
#pragma omp simd reduction(+ : left)
    for (int s = 0; s < LANES; s++) {
      REAL u = x[s], v = y[s];
      int inside = 0, counted = 0;
      for (int step = 0; step < STEPS; step++) {
        const REAL uu = u * u, vv = v * v;
        inside = uu + vv <= 4 && step < steps;
        counted += inside;
        v = 2 * u * v + b[s];
        u = uu - vv + a[s];
      }
      x[s] = u;
      y[s] = v;
      count[s] += counted;
      left += inside;
    }
    if (left == 0) break;
  }
}

/* Of n points in a row. */
#pragma jaxc static(limit)
void escape_lanes(int n, const REAL a[n], const REAL b[n], int limit, int count[n]) {
  int i = 0;
  for (; i + LANES <= n; i += LANES) escape_block(a + i, b + i, limit, count + i);
  for (; i < n; i++) count[i] = escape(a[i], b[i], limit);
}
