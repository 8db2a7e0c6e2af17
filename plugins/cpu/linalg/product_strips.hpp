// SPDX-License-Identifier: Apache-2.0
// Products of many rows by a narrow b, in strips of rows that stay in the caches. What a strip's rows come to depends
// on the whole's shape and their place in it, not on threads: so a region (fused/) that does more with a strip while it
// is there computes the same bits.
#pragma once

#include "linalg/product.hpp"

namespace pg::cpu {

// Rows of a strip, a power of two; 0: a product of that shape is no matter of strips.
int64_t strip_rows(const ProductShape& shape);

class StripProduct final : public Product {
 public:
  explicit StripProduct(const ProductShape& shape);  // of which there are strips
  bool activates() const override { return true; }
  uint64_t workspace() const override;
  void run(const ProductData& data) override;

  // ---- strip by strip ----

  uint64_t room_of_b() const { return whole_->packed_bytes(); }
  void prepare(const void* b, void* room) {
    if (room_of_b() > 0) whole_->pack(b, room);
  }
  uint64_t room_of_strip() const;
  // Rows [first, last), from a multiple of strip_rows() on to the next or the end. data: where whole operands begin, or
  // would begin; workspace: room for a strip; packed_b: that of b.
  void run_rows(const ProductData& data, int64_t first, int64_t last);

 private:
  ProductShape s_;
  int64_t rows_, bytes_, rooms_;  // of a strip; of an element; threads that have room for a strip
  std::unique_ptr<Product> whole_, rest_;
};

}  // namespace pg::cpu
