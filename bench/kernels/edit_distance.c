/* edit_distance.c: Levenshtein distance of two byte strings, for bench.py.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

/* Row by row of the table: each cell waits for the one before it. */
#pragma jaxc scratch(cost)
int edit_distance(int m, const unsigned char a[m], int n, const unsigned char b[n],
                  int cost[n + 1], int *distance) {
  for (int j = 0; j <= n; j++) cost[j] = j;
  for (int i = 0; i < m; i++) {
    int before = cost[0]; /* distance between the first i bytes of a and j of b */
    int left = cost[0] = i + 1;
    for (int j = 0; j < n; j++) {
      const int replaced = before + (a[i] != b[j]);
      const int deleted = cost[j + 1] + 1;
      before = cost[j + 1];
      const int best = replaced < deleted ? replaced : deleted; /* known before `left` is */
      left = best < left + 1 ? best : left + 1;
      cost[j + 1] = left;
    }
  }
  *distance = cost[n];
  return 0;
}

/* 32 pairs side by side, in vector lanes. ta and tb are a and b with the pairs last. */
#pragma jaxc scratch(cost, ta, tb)
int edit_distance_lanes(int m, const unsigned char a[32][m], int n,
                        const unsigned char b[32][n], unsigned short cost[n + 1][32],
                        unsigned char ta[m][32], unsigned char tb[n][32],
                        int distance[32]) {
  if (m > 30000 || n > 30000) return 1; /* a distance would not fit */
  for (int i = 0; i < m; i++) {
    for (int p = 0; p < 32; p++) ta[i][p] = a[p][i];
  }
  for (int j = 0; j < n; j++) {
    for (int p = 0; p < 32; p++) tb[j][p] = b[p][j];
  }
  for (int j = 0; j <= n; j++) {
    for (int p = 0; p < 32; p++) cost[j][p] = (unsigned short)j;
  }
  for (int i = 0; i < m; i++) {
    unsigned short before[32], left[32];
    for (int p = 0; p < 32; p++) {
      before[p] = cost[0][p];
      left[p] = cost[0][p] = (unsigned short)(i + 1);
    }
    for (int j = 0; j < n; j++) {
#pragma omp simd
      for (int p = 0; p < 32; p++) {
        const unsigned short above = cost[j + 1][p];
        const unsigned short replaced =
            (unsigned short)(before[p] + (ta[i][p] != tb[j][p]));
        const unsigned short near = above < left[p] ? above : left[p];
        const unsigned short step = (unsigned short)(near + 1);
        before[p] = above;
        cost[j + 1][p] = left[p] = step < replaced ? step : replaced;
      }
    }
  }
  for (int p = 0; p < 32; p++) distance[p] = cost[n][p];
  return 0;
}
