// SPDX-License-Identifier: Apache-2.0
// A product and, behind it, a pass that applies the activation to the dense result: for the ways that do not apply it
// themselves.
#include "dense_unary.hpp"
#include "linalg/batch.hpp"

namespace pg::cpu {
namespace {

class ActivatedProduct final : public Product {
 public:
  ActivatedProduct(const ProductShape& s, std::unique_ptr<Product> product)
      : count_(s.m * s.n * s.batch_count()),
        activation_(s.activation == Activation::kRelu ? ::cpu::pRelu : ::cpu::pGeluTanh, s.dtype),
        product_(std::move(product)) {}
  uint64_t workspace() const override { return product_->workspace(); }
  uint64_t packed_bytes() const override { return product_->packed_bytes(); }
  void pack(const void* b, void* target) override { product_->pack(b, target); }
  bool activates() const override { return true; }

  void run(const ProductData& data) override {
    product_->run(data);
    activation_.run(data.c, count_);
  }

 private:
  int64_t count_;
  ::cpu::DenseUnary activation_;
  std::unique_ptr<Product> product_;
};

}  // namespace

std::unique_ptr<Product> make_activated_product(const ProductShape& shape, std::unique_ptr<Product> product) {
  return std::make_unique<ActivatedProduct>(shape, std::move(product));
}

}  // namespace pg::cpu
