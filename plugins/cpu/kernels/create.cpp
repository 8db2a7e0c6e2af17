// SPDX-License-Identifier: Apache-2.0
// Tensors of nothing, or of another's shape: zeros_like ones_like filled arange spaced; and all_finite.
#include "block_loop.hpp"
#include "copy.hpp"

namespace cpu {
namespace {

template <int kValue>
struct FillLike final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_dense(call, call.out(0)); }
  FillLike(const pg::KernelCall&, pg::Plan&) {}
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer != 0)
      fill_tensor(at_address(*launch.outputs[0], launch.output[0]), pg::make_number(int64_t{kValue}));
  }
};
using Zeros = FillLike<0>;
using Ones = FillLike<1>;
PG_KERNEL("zeros_like", Zeros, PG_KERNEL_ANY_ORDER);
PG_KERNEL("ones_like", Ones, PG_KERNEL_ANY_ORDER);

struct Filled final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_dense(call, call.out(0)); }
  Filled(const pg::KernelCall& call, pg::Plan&) : value_(call.runtime<pg_number>("value")) {}
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer != 0) fill_tensor(at_address(*launch.outputs[0], launch.output[0]), value_(launch));
  }

 private:
  pg::Runtime<pg_number> value_;
};
PG_KERNEL("filled", Filled);

// start + i * step, in float64 (int64 where both are whole and the dtype is an integer); of spaced the last number is
// the one that was asked for.
struct Arange final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_dense(call, call.out(0)); }
  Arange(const pg::KernelCall& call, pg::Plan&)
      : ends_(call.is("spaced")),
        start_(call.runtime<double>(ends_ ? "first" : "start")),
        step_(call.runtime<double>(ends_ ? "last" : "step")),
        to_(storage_of(call.out(0))) {
    const pg_tensor& out = call.out(0);
    count_ = pg::element_count(out);
    stride_ = out.rank == 0 ? 1 : out.stride[0];
  }
  void launch(const pg_launch& launch) override {
    double start = start_(launch), step = step_(launch), last = step;
    if (ends_) step = count_ > 1 ? (last - start) / static_cast<double>(count_ - 1) : 0;
    char* out = pg::output<char>(launch, 0);
    int bytes = kStorageBytes[to_];
    auto piece = [=, this](int64_t begin, int64_t end) {
      alignas(64) double values[kBlock];
      alignas(64) char converted[kBlock * 8];
      for (int64_t p = begin; p < end; p += kBlock) {
        int64_t n = end - p < kBlock ? end - p : kBlock;
        const auto first = static_cast<double>(p);  // a position is first + i exactly, of which vectors can make i
        for (int32_t i = 0; i < n; i++) values[i] = start + (first + static_cast<double>(i)) * step;
        if (ends_ && p + n == count_ && count_ > 1) values[n - 1] = last;
        if (stride_ == 1) {
          convert(sF64, to_, values, out + p * bytes, n);
          continue;
        }
        convert(sF64, to_, values, converted, n);
        scatter(out, bytes, 1, &count_, &stride_, p, n, converted);
      }
    };
    if (count_ <= kGrain) return piece(0, count_);
    pg::parallel_for(count_, kGrain, piece);
  }

 private:
  bool ends_;
  pg::Runtime<double> start_, step_;
  Storage to_;
  int64_t count_, stride_;
};
PG_KERNEL("arange", Arange);
PG_KERNEL("spaced", Arange);

// Whether no element of any tensor is infinite or NaN. Shapes are read at launch.
struct AllFinite final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.out(0)) != sBool) refuse(call);
  }
  AllFinite(const pg::KernelCall&, pg::Plan&) {}
  void launch(const pg_launch& launch) override {
    bool finite = true;
    for (uint32_t i = 0; i < launch.input_count && finite; i++) {
      finite = tensor_finite(*launch.inputs[i], const_cast<void*>(pg::input(launch, i)));
    }
    *pg::output<uint8_t>(launch, 0) = finite ? 1 : 0;
  }

 private:
  static bool tensor_finite(const pg_tensor& t, void* data) {
    Storage s = storage_of(t);
    if (!is_float(s)) return true;
    Compute compute = kComputeOf[s];
    UnaryFn test = simd->unary[pIsFinite][compute];
    int bad = 0;
    int* found = &bad;
    BlockLoop<2> loop({{&t, kStorageOf[compute]}, {&t, kStorageOf[compute]}});
    loop.read(data, [=](const void* block, int64_t n) {
      alignas(64) uint8_t finite[kBlock];
      for (int64_t i = 0; i < n; i += kBlock) {
        int64_t m = n - i < kBlock ? n - i : kBlock;
        test(static_cast<const char*>(block) + i * kStorageBytes[kStorageOf[compute]], finite, m, nullptr);
        if (std::memchr(finite, 0, static_cast<size_t>(m)) != nullptr) __atomic_store_n(found, 1, __ATOMIC_RELAXED);
      }
    });
    return bad == 0;
  }
};
PG_KERNEL("all_finite", AllFinite);

}  // namespace
}  // namespace cpu
