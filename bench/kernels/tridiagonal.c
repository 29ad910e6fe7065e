/* tridiagonal.c: tridiagonal systems by the Thomas algorithm, for bench.py, which gives REAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* One system. All of length n, as jax.lax.linalg.tridiagonal_solve has them: lower[0] and
 * upper[n - 1] are not used. */
#pragma jaxc scratch(w)
void tridiagonal(int n, const REAL lower[n], const REAL diagonal[n], const REAL upper[n],
                 const REAL b[n], REAL w[n], REAL x[n]) {
  REAL above = 0, right = 0; /* of the row before: x_i + above x_(i + 1) = right */
  for (int i = 0; i < n; i++) {
    const REAL lo = i > 0 ? lower[i] : 0;
    const REAL scale = 1 / (diagonal[i] - lo * above);
    w[i] = above = upper[i] * scale;
    x[i] = right = (b[i] - lo * right) * scale;
  }
  for (int i = n - 2; i >= 0; i--) x[i] = right = x[i] - w[i] * right;
}

/* 8 systems side by side: each waits for its divisions, so others fill the time. */
#pragma jaxc scratch(w)
void tridiagonal_lanes(int n, const REAL lower[restrict 8][n],
                       const REAL diagonal[restrict 8][n],
                       const REAL upper[restrict 8][n], const REAL b[restrict 8][n],
                       REAL w[restrict n][8], REAL x[restrict 8][n]) {
  REAL above[8] = {0}, right[8] = {0};
  for (int i = 0; i < n; i++) {
    for (int s = 0; s < 8; s++) {
      const REAL lo = i > 0 ? lower[s][i] : 0;
      const REAL scale = 1 / (diagonal[s][i] - lo * above[s]);
      w[i][s] = above[s] = upper[s][i] * scale;
      x[s][i] = right[s] = (b[s][i] - lo * right[s]) * scale;
    }
  }
  for (int i = n - 2; i >= 0; i--) {
    for (int s = 0; s < 8; s++) x[s][i] = right[s] = x[s][i] - w[i][s] * right[s];
  }
}
