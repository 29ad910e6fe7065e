/* bf16_scale.c: arithmetic on bfloat16, which C has no word for. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <jaxc/types.h>

/* y = a x for bfloat16 x and y, multiplied as floats and then rounded to bfloat16.
 *
 * x: (n), a: () -> y: (n). A bfloat16 is the upper half of a float, so jaxc_bf16_to is
 * exact and jaxc_bf16_from rounds to nearest, ties to even.
 */
void bf16_scale(int n, const jaxc_bf16 x[n], float a, jaxc_bf16 y[n]) {
  for (int i = 0; i < n; i++) y[i] = jaxc_bf16_from(a * jaxc_bf16_to(x[i]));
}
