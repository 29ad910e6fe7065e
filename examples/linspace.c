/* linspace.c: evenly spaced numbers. */
/* SPDX-License-Identifier: Apache-2.0 */

/* n numbers from start to stop, both included: y_i = (1 - t) start + t stop with
 * t = i / (n - 1).
 *
 * start: (), stop: () -> y: (n). No argument has the dimension n, so Python gives it by
 * keyword: linspace(0.0, 1.0, n=5). For n = 1 the number is start, as in numpy.linspace.
 * The weighted mean, unlike start + i * step, ends at stop exactly.
 */
void linspace(float start, float stop, int n, float y[n]) {
  const float last = n > 1 ? (float)(n - 1) : 1;
  for (int i = 0; i < n; i++) {
    const float t = (float)i / last;
    y[i] = (1 - t) * start + t * stop;
  }
}
