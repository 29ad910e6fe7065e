/* edit_distance.c: the number of edits between two strings of bytes. */
/* SPDX-License-Identifier: Apache-2.0 */

/* Levenshtein distance: the fewest insertions, deletions and replacements of one byte
 * that turn a into b.
 *
 * a: (m), b: (n) -> (). Takes m n steps and memory for one row of the table: before step
 * i, cost[j] is the distance between the first i bytes of a and the first j of b.
 * Recurrence: R. A. Wagner and M. J. Fischer, "The String-to-String Correction Problem",
 * Journal of the ACM 21 (1974).
 */
#pragma jaxc scratch(cost)
int edit_distance(int m, const unsigned char a[m], int n, const unsigned char b[n],
                  int cost[n + 1]) {
  for (int j = 0; j <= n; j++) cost[j] = j;
  for (int i = 0; i < m; i++) {
    int before = cost[0]; /* distance between the first i bytes of a and j of b */
    cost[0] = i + 1;
    for (int j = 0; j < n; j++) {
      const int replaced = before + (a[i] != b[j]);
      const int inserted = cost[j] + 1, deleted = cost[j + 1] + 1;
      int best = replaced;
      if (inserted < best) best = inserted;
      if (deleted < best) best = deleted;
      before = cost[j + 1];
      cost[j + 1] = best;
    }
  }
  return cost[n];
}
