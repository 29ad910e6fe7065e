/* tridiagonal.c: tridiagonal systems of linear equations, by the Thomas algorithm. */
/* SPDX-License-Identifier: Apache-2.0 */

/* Solves A x = b for a tridiagonal A, in 8 n operations.
 *
 * lower: (n - 1), diagonal: (n), upper: (n - 1), b: (n) -> x: (n), for n >= 1. The layout
 * is LAPACK's: lower[i] is A[i + 1][i] and upper[i] is A[i][i + 1].
 * Returns 0, or 1 + i when the pivot of row i is zero. Rows are not exchanged: the
 * elimination is stable when A is diagonally dominant or symmetric positive definite.
 * Method: L. H. Thomas, "Elliptic Problems in Linear Difference Equations over a
 * Network", Watson Scientific Computing Laboratory, Columbia University, 1949.
 */
#pragma jaxc scratch(w)
int tridiagonal(int n, const double lower[n - 1], const double diagonal[n],
                const double upper[n - 1], const double b[n], double w[n], double x[n]) {
  for (int i = 0; i < n; i++) {
    /* Row i becomes x_i + w_i x_(i + 1) = (right side kept in x_i). */
    double pivot = diagonal[i], right = b[i];
    if (i > 0) {
      pivot -= lower[i - 1] * w[i - 1];
      right -= lower[i - 1] * x[i - 1];
    }
    if (pivot == 0) return 1 + i;
    if (i < n - 1) w[i] = upper[i] / pivot;
    x[i] = right / pivot;
  }
  for (int i = n - 2; i >= 0; i--) x[i] -= w[i] * x[i + 1];
  return 0;
}
