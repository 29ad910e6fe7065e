// decode.cc: the handlers of decode.c in C++ over ffi.h, for instructions.py.
//
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "xla/ffi/api/c_api.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using Array = ffi::Buffer<ffi::F32, 2>;  // its comma would split the macro's arguments
using ResultArray = ffi::ResultBuffer<ffi::F32, 2>;

// All that a view of rank 2 says about sizes.
static int64_t sizes(const Array &view) {
  const auto dims = view.dimensions();
  return dims[0] + dims[1] + static_cast<int64_t>(view.element_count());
}

static ffi::Error four(Array a, Array b, Array c, ResultArray y, float eps,
                       int64_t mode) {
  const int64_t all = sizes(a) + sizes(b) + sizes(c) + sizes(*y);
  y->typed_data()[0] = a.typed_data()[0] + b.typed_data()[0] + c.typed_data()[0] + eps +
                       static_cast<float>(mode + all);
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(decode_four, four,
                              ffi::Ffi::Bind()
                                  .Arg<Array>()  // a
                                  .Arg<Array>()  // b
                                  .Arg<Array>()  // c
                                  .Ret<Array>()  // y
                                  .Attr<float>("eps")
                                  .Attr<int64_t>("mode"));

static ffi::Error one(Array a, ResultArray y) {
  y->typed_data()[0] = a.typed_data()[0] + static_cast<float>(sizes(a) + sizes(*y));
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(decode_one, one,
                              ffi::Ffi::Bind()
                                  .Arg<Array>()    // a
                                  .Ret<Array>());  // y
