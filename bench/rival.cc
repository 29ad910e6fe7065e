// rival.cc: rms_norm for JAX the way its FFI tutorial shows it, in C++ over ffi.h.
//
// The arithmetic is that of rms_norm.c. rival.py compiles this file; RIVAL_VARIANT adds the
// handler that takes eps as an operand, and is off when compile time is measured.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static const float gain = 1.0f;

static void rms_norm(int n, const float *x, float eps, float *y) {
  float s = 0;
  for (int i = 0; i < n; i++) s += x[i] * x[i];
  const float scale = gain / std::sqrt(s / n + eps);
  for (int i = 0; i < n; i++) y[i] = x[i] * scale;
}

static ffi::Error run_rows(float eps, ffi::Buffer<ffi::F32> x,
                           ffi::ResultBuffer<ffi::F32> y) {
  const auto dims = x.dimensions();
  if (dims.size() == 0 || dims.back() == 0) {
    return ffi::Error::InvalidArgument("rms_norm needs rows");
  }
  const int64_t count = static_cast<int64_t>(x.element_count());
  const int64_t n = dims.back();
  for (int64_t at = 0; at < count; at += n) {
    rms_norm(static_cast<int>(n), x.typed_data() + at, eps, y->typed_data() + at);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(rival_attribute, run_rows,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()    // x
                                  .Ret<ffi::Buffer<ffi::F32>>());  // y

#ifdef RIVAL_VARIANT
using Scalar = ffi::Buffer<ffi::F32, 0>;  // its comma would split the macro's arguments

static ffi::Error run_rows_operand(ffi::Buffer<ffi::F32> x, Scalar eps,
                                   ffi::ResultBuffer<ffi::F32> y) {
  return run_rows(*eps.typed_data(), x, y);
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(rival_operand, run_rows_operand,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()    // x
                                  .Arg<Scalar>()                   // eps
                                  .Ret<ffi::Buffer<ffi::F32>>());  // y
#endif
