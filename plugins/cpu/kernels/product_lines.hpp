// SPDX-License-Identifier: Apache-2.0
// Products whose rows a region has strip by strip (lines.hpp): what is behind them reads a strip while it is in the
// caches.
#pragma once

#include "linalg/product_strips.hpp"
#include "lines.hpp"

namespace pg::cpu {

class ProductLines final : public ::cpu::Lines {
 public:
  // Refuses products that are not computed in strips.
  ProductLines(ProductShape shape, bool bias) : Lines(1, false, true), shape_(std::move(shape)), bias_(bias) {
    simplify(shape_);
    rows_ = strip_rows(shape_);
    if (rows_ == 0) fail_support("it is not computed in strips");
  }
  int64_t together() const override { return rows_; }
  // Made here, not where a claim only asks what it would be.
  uint64_t shared_bytes() const override {
    if (product_ == nullptr) product_ = std::make_unique<StripProduct>(shape_);
    return product_->room_of_b();
  }
  void share(const pg_launch& launch, char* room) const override { product_->prepare(input(launch, 1), room); }
  uint64_t room_bytes() const override { return product_->room_of_strip(); }
  void run(const pg_launch& launch, const char* shared, const char* const* in, char* const* out, int64_t first,
           int64_t last) const override {
    for (int64_t next; first < last; first = next) {
      next = std::min(first + rows_, last);
      const void* bias = bias_ ? in[2] : nullptr;
      product_->run_rows({in[0], in[1], bias, out[0], host_pointer(launch.workspace), shared}, first, next);
    }
  }
  int cost() const override { return static_cast<int>(shape_.k); }

 private:
  ProductShape shape_;
  bool bias_;
  int64_t rows_ = 0;
  mutable std::unique_ptr<StripProduct> product_;
};

}  // namespace pg::cpu
