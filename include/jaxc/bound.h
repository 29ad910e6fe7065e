/* bound.h: the size of an axis, from a bound's program and the dimensions of a call.
 *
 *   int64_t size;
 *   if (!jaxc_bound_value(&parameter->bounds[0], dims, &size)) ...
 *
 * Sizes come from outside: every step is checked for overflow. Pure; any thread.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef JAXC_BOUND_H
#define JAXC_BOUND_H

#include <jaxc/call.h>
#include <jaxc/library.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a bound. Returns 0 on overflow, division by zero or a broken program. */
JAXC_UNUSED static int jaxc_bound_value(const jaxc_bound *bound, const long long *dims,
                             int64_t *out) {
  int64_t stack[JAXC_MAX_BOUND_DEPTH];
  int32_t depth = 0;
  for (int32_t i = 0; i < bound->step_count; i++) {
    const jaxc_bound_step step = bound->steps[i];
    int64_t a, b;
    if (step.code == JAXC_BOUND_CONSTANT || step.code == JAXC_BOUND_DIM) {
      if (depth == JAXC_MAX_BOUND_DEPTH) return 0;
      stack[depth++] = step.code == JAXC_BOUND_CONSTANT ? step.argument
                                                        : (int64_t)dims[step.argument];
      continue;
    }
    if (depth < 2) return 0;
    b = stack[--depth];
    a = stack[depth - 1];
    switch (step.code) {
      case JAXC_BOUND_ADD:
        if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) return 0;
        a += b;
        break;
      case JAXC_BOUND_SUBTRACT:
        if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) return 0;
        a -= b;
        break;
      case JAXC_BOUND_MULTIPLY: {
        const int negative = (a < 0) != (b < 0);
        int64_t product;
        if (a == INT64_MIN || b == INT64_MIN) return 0;
        if (!jaxc_multiply(a < 0 ? -a : a, b < 0 ? -b : b, &product)) return 0;
        a = negative ? -product : product;
        break;
      }
      case JAXC_BOUND_DIVIDE:
        if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
        a /= b;
        break;
      default:
        return 0;
    }
    stack[depth - 1] = a;
  }
  if (depth != 1) return 0;
  *out = stack[0];
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif /* JAXC_BOUND_H */
