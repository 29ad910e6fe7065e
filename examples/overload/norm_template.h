/* norm_template.h: the length of a vector, for a type T under a NAME. */
/* SPDX-License-Identifier: Apache-2.0 */
T NAME(int n, const T x[n]);
T NAME(int n, const T x[n]) {
  T sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * x[i];
  return SQRT(sum);
}
#undef T
#undef NAME
#undef SQRT
