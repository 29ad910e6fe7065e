// stages.cc: handlers on XLA's C++ header with what it offers beside plain calls: a state
// that instantiate makes, futures, the thread pool, and attributes and operands of every
// kind.
//
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// ---- y = factor * x + calls so far: the factor and the count are the state ----

static std::atomic<int> alive{0};
extern "C" int states_alive() { return alive; }

struct Counter {
  static ffi::TypeId id;
  static XLA_FFI_TypeInfo info;
  explicit Counter(int64_t given) : factor(given) { alive++; }
  ~Counter() { alive--; }
  int64_t factor;
  std::atomic<int> calls{0};
};

ffi::TypeId Counter::id = {};
XLA_FFI_TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();

extern "C" void *counter_type_id() { return &Counter::id; }
extern "C" void *counter_type_info() { return &Counter::info; }

static ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter(int64_t factor) {
  if (factor == 0) {
    return ffi::Unexpected(ffi::Error(ffi::ErrorCode::kOutOfRange, "factor is 0"));
  }
  return std::make_unique<Counter>(factor);
}

static ffi::Error Count(Counter *state, ffi::Buffer<ffi::F64> x,
                        ffi::ResultBuffer<ffi::F64> y, int64_t) {
  const int calls = state->calls++;
  for (size_t i = 0; i < x.element_count(); i++) {
    y->typed_data()[i] = static_cast<double>(state->factor) * x.typed_data()[i] + calls;
  }
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(CountInstantiate, MakeCounter,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("factor"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(CountExecute, Count,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::State<Counter>>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<int64_t>("factor"));

// The same, for a runtime in which nobody has registered the type: the handler does so
// when it is asked for its metadata, which is the first that it hears of the runtime.
extern "C" XLA_FFI_Error *SelfInstantiate(XLA_FFI_CallFrame *frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    if (XLA_FFI_Error *error = ffi::Ffi::RegisterTypeId(
            frame->api, "jaxc_tests.counter", &Counter::id, &Counter::info)) {
      return error;
    }
  }
  return CountInstantiate(frame);
}

// ---- y = 2 x, finished by a thread after the handler has returned ----

static ffi::Future Later(ffi::Buffer<ffi::F64> x, ffi::ResultBuffer<ffi::F64> y,
                         std::string_view fail) {
  ffi::Promise promise;
  ffi::Future future(promise);
  // A Buffer is a view of the frame, which other calls have after the return; the memory
  // that it names stays.
  const double *const in = x.typed_data();
  double *const out = y->typed_data();
  const size_t count = x.element_count();
  std::thread([promise = std::move(promise), fail = std::string(fail), in, out,
               count]() mutable {
    for (size_t i = 0; i < count; i++) out[i] = 2 * in[i];
    if (fail.empty()) {
      promise.SetAvailable();
    } else {
      promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, fail));
    }
  }).detach();
  return future;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(Asynchronous, Later,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Attr<std::string_view>("fail"));

// ---- y = sum of all arguments, each added by a task of the pool ----

static ffi::Future Sum(ffi::ThreadPool pool, ffi::RemainingArgs arguments,
                       ffi::ResultBuffer<ffi::F64> y) {
  struct Work {
    std::atomic<int64_t> sum{0};
    std::atomic<int64_t> left;
    double *out;
  };
  const auto work = std::make_shared<Work>();
  const int64_t count = static_cast<int64_t>(arguments.size());
  ffi::CountDownPromise promise(count + 1);  // the tasks, and this function
  ffi::Future future(promise);
  work->left = count;
  work->out = y->typed_data();
  *work->out = 0;
  for (int64_t i = 0; i < count; i++) {
    auto x = arguments.get<ffi::Buffer<ffi::F64>>(static_cast<size_t>(i));
    if (!x.has_value()) {
      promise.CountDown(x.error());
      continue;
    }
    const auto value = static_cast<int64_t>(x->typed_data()[0]);
    pool.Schedule([work, value, promise]() mutable {
      work->sum += value;
      if (--work->left == 0) *work->out = static_cast<double>(work->sum);
      promise.CountDown();
    });
  }
  promise.CountDown();
  return future;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(PooledSum, Sum,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .Ret<ffi::Buffer<ffi::F64>>());

// ---- what came, of every kind ----

enum class Colour : int64_t { kRed = 0, kGreen = 1 };
struct Range {
  int64_t low;
  double high;
};

XLA_FFI_REGISTER_ENUM_ATTR_DECODING(Colour);
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Range, ffi::StructMember<int64_t>("low"),
                                      ffi::StructMember<double>("high"));

static ffi::Error Kinds(bool flag, int8_t small, ffi::Span<const int32_t> list,
                        std::string_view text, Colour colour, Range range,
                        ffi::Dictionary more, ffi::AnyBuffer any, ffi::Token,
                        ffi::ResultBuffer<ffi::F64> y, ffi::Result<ffi::Token>) {
  auto inner = more.get<float>("inner");
  if (!inner.has_value()) return inner.error();
  int64_t sum = 0;
  for (const int32_t value : list) sum += value;
  const double out[] = {flag ? 1.0 : 0.0,
                        static_cast<double>(small),
                        static_cast<double>(sum),
                        static_cast<double>(text.size()),
                        static_cast<double>(colour),
                        static_cast<double>(range.low),
                        range.high,
                        *inner,
                        static_cast<double>(any.element_type()),
                        static_cast<double>(any.size_bytes())};
  for (size_t i = 0; i < 10; i++) y->typed_data()[i] = out[i];
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(AllKinds, Kinds,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int8_t>("small")
                                  .Attr<ffi::Span<const int32_t>>("list")
                                  .Attr<std::string_view>("text")
                                  .Attr<Colour>("colour")
                                  .Attr<Range>("range")
                                  .Attr<ffi::Dictionary>("more")
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::Token>()
                                  .Ret<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Token>());
