/* launch.c: kernels in the style of a launch: one call for each point of a grid. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <jaxc/grid.h>
#include <math.h>

/* Three times x. x: (n) -> y: (n). */
#pragma jaxc grid(i < n)
void triple(int i, int n, const float x[n], float y[n]) {
  y[i] = 3 * x[i];
}

/* Sine and cosine, two results of one call. angle: (n) -> sine: (n), cosine: (n). */
#pragma jaxc grid(i < n)
void sine_cosine(int i, int n, const float angle[n], float sine[n], float cosine[n]) {
  sine[i] = sinf(angle[i]);
  cosine[i] = cosf(angle[i]);
}

/* Vectors of the plane times a number, which may be traced.
 *
 * v: (n, 2), s: () -> w: (n, 2). */
#pragma jaxc grid(i < n)
void scale_vec(int i, int n, const float v[n][2], float s, float w[n][2]) {
  w[i][0] = s * v[i][0];
  w[i][1] = s * v[i][1];
}

/* Product of matrices, an element a point. a: (n, k), b: (k, m) -> c: (n, m).
 *
 * The shapes of the arguments give the grid and the result's shape. */
#pragma jaxc grid(i < n, j < m)
void matmul(int i, int j, int n, int k, int m, const float a[n][k], const float b[k][m],
            float c[n][m]) {
  float sum = 0;
  for (int l = 0; l < k; l++) sum += a[i][l] * b[l][j];
  c[i][j] = sum;
}

/* Adds the mass of particles to the cells that they are in, in place.
 *
 * cell: (n), mass: (n), density: (m) -> density: (m). Cells outside are left out.
 * Particles share cells, so the sum is atomic; its last digits depend on the order. */
#pragma jaxc grid(p < n) inout(density)
void deposit(int p, int n, const int cell[n], const float mass[n], int m,
             float density[m]) {
  if (cell[p] >= 0 && cell[p] < m) jaxc_atomic_add(&density[cell[p]], mass[p]);
}
