/* rotate.c: rotation of points in space by a 3x3 matrix. */
/* SPDX-License-Identifier: Apache-2.0 */

/* Rotates a point: q = R p, that is q_i = sum over j of R_ij p_j.
 *
 * R: (3, 3), p: (3) -> q: (3). The sizes are fixed, so anything else is an error. Leading
 * axes are points and frames: R (3, 3) with p (m, 3) turns m points at once, and
 * R (t, 1, 3, 3) with p (m, 3) gives the m points in t frames, (t, m, 3).
 */
void rotate(const float R[3][3], const float p[3], float q[3]) {
  for (int i = 0; i < 3; i++) {
    q[i] = R[i][0] * p[0] + R[i][1] * p[1] + R[i][2] * p[2];
  }
}
