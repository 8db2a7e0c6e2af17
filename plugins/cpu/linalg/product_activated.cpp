// SPDX-License-Identifier: Apache-2.0
// A product and, behind it, a pass that applies the activation to the dense result: for the ways that do not apply it
// themselves.
#include <algorithm>

#include "linalg/batch.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

class ActivatedProduct final : public Product {
 public:
  ActivatedProduct(const ProductShape& s, std::unique_ptr<Product> product)
      : count_(s.m * s.n * s.batch_count()),
        storage_(::cpu::storage_of(s.dtype)),
        compute_(::cpu::kComputeOf[storage_]),
        function_(::cpu::simd->unary[s.activation == Activation::kRelu ? ::cpu::uRelu : ::cpu::uGeluTanh][compute_]),
        product_(std::move(product)) {}
  uint64_t workspace() const override { return product_->workspace(); }
  uint64_t packed_bytes() const override { return product_->packed_bytes(); }
  void pack(const void* b, void* target) override { product_->pack(b, target); }
  bool activates() const override { return true; }

  void run(const ProductData& data) override {
    product_->run(data);
    auto* c = static_cast<char*>(data.c);
    int bytes = ::cpu::kStorageBytes[storage_];
    ::cpu::Storage wide = ::cpu::kStorageOf[compute_];
    parallel_for(count_, ::cpu::kGrain, [&](int64_t begin, int64_t end) {
      if (storage_ == wide) return function_(c + begin * bytes, c + begin * bytes, end - begin, nullptr);
      float block[::cpu::kBlock];
      for (int64_t i = begin; i < end; i += ::cpu::kBlock) {
        int64_t n = std::min(::cpu::kBlock, end - i);
        ::cpu::convert(storage_, wide, c + i * bytes, block, n);
        function_(block, block, n, nullptr);
        ::cpu::convert(wide, storage_, block, c + i * bytes, n);
      }
    });
  }

 private:
  int64_t count_;
  ::cpu::Storage storage_;
  ::cpu::Compute compute_;
  ::cpu::UnaryFn function_;
  std::unique_ptr<Product> product_;
};

}  // namespace

std::unique_ptr<Product> make_activated_product(const ProductShape& shape, std::unique_ptr<Product> product) {
  return std::make_unique<ActivatedProduct>(shape, std::move(product));
}

}  // namespace pg::cpu
