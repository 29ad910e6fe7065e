/* rms_norm.cc: the handler of plain_cc/rms_norm.c in C++20, inside a namespace.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <jaxc/jaxc.h>

#include <cmath>

namespace consumer {

struct rms_norm_call {
  JAXC_VIEW(const float) x;
  JAXC_VIEW(float) y;
  float eps;
};

constexpr jaxc_field rms_norm_fields[] = {
    JAXC_ARGUMENT(rms_norm_call, x, 1),
    JAXC_RESULT(rms_norm_call, y, 1),
    JAXC_ATTRIBUTE(rms_norm_call, eps),
};
static_assert(rms_norm_fields[0].dtype == JAXC_F32, "read from the member's type");

static jaxc_status rms_norm(jaxc_context *context, const void *data) {
  const auto &call = *static_cast<const rms_norm_call *>(data);
  float sum = 0;
  if (call.x.count != call.y.count) {
    return jaxc_fail(context, JAXC_INVALID_ARGUMENT, "x and y differ in size");
  }
  for (int64_t i = 0; i < call.x.count; i++) sum += call.x.data[i] * call.x.data[i];
  sum = std::sqrt(sum / static_cast<float>(call.x.count) + call.eps);
  for (int64_t i = 0; i < call.x.count; i++) call.y.data[i] = call.x.data[i] / sum;
  return JAXC_OK;
}

JAXC_HANDLER(RmsNorm, rms_norm_call, rms_norm_fields, .execute = rms_norm);

}  // namespace consumer
