/* decode.c: handlers that do little but decode their call, for instructions.py.
 *
 * Each adds all that it was given into its result's first element, so that no part of the
 * decoding can be left out. decode.cc does the same in C++. With DECODE_DESCRIBED this
 * file has the plain functions from which jaxc makes handlers of the same calls.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifdef DECODE_DESCRIBED
#include <stdint.h>

/* Three arrays, two parts of the program. */
#pragma jaxc static(eps, mode)
void decode_four(int64_t m, int64_t n, const float a[m][n], const float b[m][n],
                 const float c[m][n], float eps, int64_t mode, float y[m][n]) {
  y[0][0] = a[0][0] + b[0][0] + c[0][0] + eps + (float)(mode + 4 * (m + n + m * n));
}

/* One array. */
void decode_one(int64_t m, int64_t n, const float a[m][n], float y[m][n]) {
  y[0][0] = a[0][0] + (float)(2 * (m + n + m * n));
}

#else
#include <jaxc/jaxc.h>

/* All that a view of rank 2 says about sizes. */
#define SIZES(view) ((view).dims[0] + (view).dims[1] + (view).count)

typedef struct {
  JAXC_VIEW(const float) a;
  JAXC_VIEW(const float) b;
  JAXC_VIEW(const float) c;
  JAXC_VIEW(float) y;
  float eps;
  int64_t mode;
} four_call;

static const jaxc_field four_fields[] = {
    JAXC_ARGUMENT(four_call, a, 2), JAXC_ARGUMENT(four_call, b, 2),
    JAXC_ARGUMENT(four_call, c, 2), JAXC_RESULT(four_call, y, 2),
    JAXC_ATTRIBUTE(four_call, eps), JAXC_ATTRIBUTE(four_call, mode),
};

static jaxc_status four(jaxc_context *context, const void *data) {
  const four_call *const call = data;
  const int64_t sizes = SIZES(call->a) + SIZES(call->b) + SIZES(call->c) + SIZES(call->y);
  (void)context;
  call->y.data[0] = call->a.data[0] + call->b.data[0] + call->c.data[0] + call->eps +
                    (float)(call->mode + sizes);
  return JAXC_OK;
}

JAXC_HANDLER(decode_four, four_call, four_fields, .execute = four);

typedef struct {
  JAXC_VIEW(const float) a;
  JAXC_VIEW(float) y;
} one_call;

static const jaxc_field one_fields[] = {
    JAXC_ARGUMENT(one_call, a, 2),
    JAXC_RESULT(one_call, y, 2),
};

static jaxc_status one(jaxc_context *context, const void *data) {
  const one_call *const call = data;
  (void)context;
  call->y.data[0] = call->a.data[0] + (float)(SIZES(call->a) + SIZES(call->y));
  return JAXC_OK;
}

JAXC_HANDLER(decode_one, one_call, one_fields, .execute = one);
#endif
