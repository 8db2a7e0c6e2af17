// SPDX-License-Identifier: Apache-2.0
// Products by gemm.hpp. Of a small product the threads share out the batch.
#include "linalg/batch.hpp"
#include "linalg/gemm.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

template <class T>
class OwnProduct final : public Product {
 public:
  OwnProduct(const ProductShape& s, bool constant_b, int64_t threads)
      : s_(s),
        slices_(split_by_batch(s, threads) ? std::min<int64_t>(threads, s.batch_count()) : 1),
        gemm_(s.m, s.n, s.k, slices_ > 1 ? 1 : threads),
        packs_(constant_b && s.batch.empty() && std::is_same_v<Accumulator<T>, float>) {
    if constexpr (!std::is_integral_v<T>) {
      auto* functions = ::cpu::simd->unary[s.activation == Activation::kRelu ? ::cpu::pRelu : ::cpu::pGeluTanh];
      if (s.activation != Activation::kNone)
        activation_ = functions[std::is_same_v<T, double> ? ::cpu::kF64 : ::cpu::kF32];
    }
  }
  bool activates() const override { return true; }
  uint64_t workspace() const override { return scratch_bytes(gemm_.workspace()) * static_cast<uint64_t>(slices_); }
  uint64_t packed_bytes() const override { return packs_ ? gemm_.packed_bytes() : 0; }
  void pack(const void* b, void* target) override { gemm_.pack(of(b, 0, s_.b), target); }

  void run(const ProductData& data) override {
    const Finish<T> finish{s_.bias ? static_cast<const T*>(data.bias) : nullptr, s_.bias_stride, false, activation_,
                           data.backwards};
    for_batch(s_, slices_, [&](int64_t slice, BatchOffset at) {
      Matrix<T> c{static_cast<T*>(data.c) + at.c, s_.c.row, s_.c.column};
      auto* scratch =
          static_cast<char*>(data.workspace) + static_cast<uint64_t>(slice) * scratch_bytes(gemm_.workspace());
      gemm_.run(of(data.a, at.a, s_.a), of(data.b, at.b, s_.b), data.packed_b, c, finish, scratch);
    });
  }

 private:
  static Matrix<const T> of(const void* data, int64_t at, Strides strides) {
    return {static_cast<const T*>(data) + at, strides.row, strides.column};
  }

  ProductShape s_;
  int64_t slices_;
  Gemm<T> gemm_;
  bool packs_;
  void (*activation_)(const void*, void*, int64_t, const void*) = nullptr;
};

}  // namespace

std::unique_ptr<Product> make_own_product(const ProductShape& shape, bool constant_b, int64_t threads) {
  return with_number(shape.dtype, [&](auto type) -> std::unique_ptr<Product> {
    return std::make_unique<OwnProduct<typename decltype(type)::type>>(shape, constant_b, threads);
  });
}

}  // namespace pg::cpu
