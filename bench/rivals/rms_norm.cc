// rms_norm.cc: the handler of JAX's FFI tutorial for both dtypes, with the sum in lanes that
// kernels/rms_norm.c has. Rows run in the calling thread, as in the tutorial.
//
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

template <typename T>
static void rms_norm(int64_t n, const T *x, T eps, T *y) {
  T s = 0;
#pragma omp simd reduction(+ : s)
  for (int64_t i = 0; i < n; i++) s += x[i] * x[i];
  const T r = 1 / std::sqrt(s / static_cast<T>(n) + eps);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * r;
}

template <ffi::DataType type, typename T>
static ffi::Error run(T eps, ffi::Buffer<type> x, ffi::ResultBuffer<type> y) {
  const auto dims = x.dimensions();
  if (dims.size() == 0 || dims.back() == 0) {
    return ffi::Error::InvalidArgument("rms_norm needs rows");
  }
  const int64_t count = static_cast<int64_t>(x.element_count());
  const int64_t n = dims.back();
  for (int64_t at = 0; at < count; at += n) {
    rms_norm<T>(n, x.typed_data() + at, eps, y->typed_data() + at);
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm_float32, (run<ffi::F32, float>),
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm_float64, (run<ffi::F64, double>),
                              ffi::Ffi::Bind()
                                  .Attr<double>("eps")
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>());
