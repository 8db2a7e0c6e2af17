// SPDX-License-Identifier: Apache-2.0
#include "linalg/batch.hpp"
#include "linalg/gemm.hpp"

namespace pg::cpu {
namespace {

template <class T>
class OwnProduct final : public Product {
 public:
  explicit OwnProduct(const ProductShape& shape) : s_(shape), one_(gemm_workspace<T>(s_.m, s_.n, s_.k)) {
    if (split_by_batch(s_, thread_count())) slices_ = std::min<int64_t>(thread_count(), s_.batch_count());
  }
  uint64_t workspace() const override { return scratch_bytes(one_) * static_cast<uint64_t>(slices_) + 64; }

  void run(const ProductData& data) override {
    char* scratch = static_cast<char*>(Scratch(data.workspace).take(0));
    for_batch(s_, slices_, [&](int64_t slice, BatchOffset at) {
      Matrix<const T> a{static_cast<const T*>(data.a) + at.a, s_.a.row, s_.a.column};
      Matrix<const T> b{static_cast<const T*>(data.b) + at.b, s_.b.row, s_.b.column};
      Matrix<T> c{static_cast<T*>(data.c) + at.c, s_.c.row, s_.c.column};
      Start<T> start{s_.bias ? static_cast<const T*>(data.bias) : nullptr, s_.bias_stride};
      gemm<T>(s_.m, s_.n, s_.k, a, b, c, start, scratch + static_cast<uint64_t>(slice) * scratch_bytes(one_));
    });
  }

 private:
  ProductShape s_;
  uint64_t one_;
  int64_t slices_ = 1;
};

}  // namespace

std::unique_ptr<Product> make_own_product(const ProductShape& shape) {
  return with_number(shape.dtype, [&](auto type) -> std::unique_ptr<Product> {
    return std::make_unique<OwnProduct<typename decltype(type)::type>>(shape);
  });
}

}  // namespace pg::cpu
