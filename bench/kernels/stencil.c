/* stencil.c: one explicit step of the heat equation, for bench.py, which gives REAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Row i of the step. Called on all i at once: u is shared by the calls, not copied, and
 * rows are what threads divide. */
void stencil(int m, int n, const REAL u[m][n], int i, REAL v[n - 2]) {
  const REAL rate = (REAL)0.1;
  for (int j = 1; j < n - 1; j++) {
    v[j - 1] = u[i][j] + rate * (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1] -
                                 4 * u[i][j]);
  }
}
