/* rms_norm.c: a handler as a user writes it, built by every consumer of this folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>
#include <math.h>

typedef struct {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
} rms_norm_call;

static const jaxc_field rms_norm_fields[] = {
    JAXC_ARGUMENT(rms_norm_call, x, 1),
    JAXC_RESULT(rms_norm_call, y, 1),
    JAXC_ATTRIBUTE(rms_norm_call, eps),
};

static jaxc_status rms_norm(jaxc_context *context, const void *data) {
  const rms_norm_call *const call = data;
  float sum = 0;
  if (call->x.count != call->y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
  }
  for (int64_t i = 0; i < call->x.count; i++) sum += call->x.data[i] * call->x.data[i];
  sum = sqrtf(sum / (float)call->x.count + call->eps);
  for (int64_t i = 0; i < call->x.count; i++) call->y.data[i] = call->x.data[i] / sum;
  return JAXC_OK;
}

JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);
