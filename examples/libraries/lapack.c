/* lapack.c: solvers of LAPACK, with arguments that an array function would have. */
/* SPDX-License-Identifier: Apache-2.0
 *
 *   lib = jaxc.load("lapack.c", libraries=["lapacke"])
 *   x = lib.solve(a, b)
 *
 * What LAPACK overwrites is a copy in scratch memory, of which each thread has its own;
 * its info, where it is not 0, is the status that becomes an error.
 */
#include <lapacke.h>
#include <string.h>

/* Solves a x = b by LU decomposition. */
#pragma jaxc scratch(lu, pivots)
int solve(int n, const double a[n][n], const double b[n], double x[n], double lu[n][n],
          int pivots[n]) {
  for (int i = 0; i < n; i++) { /* LAPACK has columns where C has rows */
    for (int j = 0; j < n; j++) lu[j][i] = a[i][j];
  }
  memcpy(x, b, (size_t)n * sizeof *x);
  return LAPACKE_dgesv(LAPACK_COL_MAJOR, n, 1, &lu[0][0], n, pivots, x, n);
}

/* Solves transposed(a) y = ct_x; then d(x . ct_x) = y . (db - da x). */
#pragma jaxc scratch(lu, pivots)
int solve_bwd(int n, const double a[n][n], const double x[n], const double ct_x[n],
              double ct_a[n][n], double ct_b[n], double lu[n][n], int pivots[n]) {
  int info;
  memcpy(lu, a, (size_t)n * (size_t)n * sizeof **a);
  memcpy(ct_b, ct_x, (size_t)n * sizeof *ct_x);
  info = LAPACKE_dgesv(LAPACK_COL_MAJOR, n, 1, &lu[0][0], n, pivots, ct_b, n);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) ct_a[i][j] = -ct_b[i] * x[j];
  }
  return info;
}

/* Solves a system with three diagonals. */
#pragma jaxc scratch(l, d, u)
int solve_tridiagonal(int n, const double lower[n - 1], const double diagonal[n],
                      const double upper[n - 1], const double b[n], double x[n],
                      double l[n - 1], double d[n], double u[n - 1]) {
  memcpy(l, lower, (size_t)(n - 1) * sizeof *l);
  memcpy(d, diagonal, (size_t)n * sizeof *d);
  memcpy(u, upper, (size_t)(n - 1) * sizeof *u);
  memcpy(x, b, (size_t)n * sizeof *x);
  return LAPACKE_dgtsv(LAPACK_COL_MAJOR, n, 1, l, d, u, x, n);
}
