// rms_norm.cc: JAX's tutorial example of a handler, on XLA's C++ header.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Normalize(float eps, ffi::Buffer<ffi::F32> x,
                            ffi::ResultBuffer<ffi::F32> y) {
  const auto dims = x.dimensions();
  if (dims.size() == 0) {
    return ffi::Error::InvalidArgument("RmsNorm input must be an array");
  }
  const int64_t n = dims.back();
  const int64_t rows = n == 0 ? 0 : static_cast<int64_t>(x.element_count()) / n;
  for (int64_t row = 0; row < rows; row++) {
    const float *in = x.typed_data() + row * n;
    float *out = y->typed_data() + row * n;
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += in[i] * in[i];
    const float scale = 1 / std::sqrt(sum / static_cast<float>(n) + eps);
    for (int64_t i = 0; i < n; i++) out[i] = in[i] * scale;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, Normalize,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
