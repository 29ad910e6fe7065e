/* sor.c: successive over-relaxation for Poisson's equation in the plane. */
/* SPDX-License-Identifier: Apache-2.0 */

/* One red-black sweep for u_xx + u_yy = f on a grid of spacing h, in place:
 *
 *   u_ij += omega / 4 (u_(i-1)j + u_(i+1)j + u_i(j-1) + u_i(j+1) - 4 u_ij - h^2 f_ij)
 *
 * u: (m, n), f: (m, n), omega: (), h: () -> u: (m, n). The rim of u holds the boundary
 * values and is not changed. Points with even i + j go first, then those with odd i + j;
 * points of one colour do not need each other. omega = 1 is Gauss-Seidel; the best on a
 * square of n x n points is 2 / (1 + sin(pi / (n - 1))).
 * Method: D. M. Young, "Iterative Methods for Solving Partial Difference Equations of
 * Elliptic Type", Transactions of the American Mathematical Society 76 (1954).
 */
#pragma jaxc inout(u)
void sor(int m, int n, double u[m][n], const double f[m][n], double omega, double h) {
  for (int colour = 0; colour < 2; colour++) {
    for (int i = 1; i < m - 1; i++) {
      for (int j = 1 + (i + 1 + colour) % 2; j < n - 1; j += 2) {
        const double around = u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1];
        u[i][j] += omega / 4 * (around - 4 * u[i][j] - h * h * f[i][j]);
      }
    }
  }
}
