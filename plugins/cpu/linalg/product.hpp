// SPDX-License-Identifier: Apache-2.0
// A batch of matrix products, c = f(a b (+ bias)): what matmul and linear both are once their shapes have been read.
#pragma once

#include <memory>

#include "linalg/dense.hpp"
#include "perigee/kernels/product.hpp"

namespace pg::cpu {

using Strides = MatrixStrides;

struct ProductData {
  const void *a, *b, *bias;
  void* c;
  void* workspace;
  const void* packed_b;  // b as pack() wrote it, or NULL
  // Whether to walk b from its end, where that is no other sum: one product after another finds what it read last.
  bool backwards = false;
};

// One way to compute it, chosen when the shape is known.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run(const ProductData& data) = 0;
  virtual uint64_t workspace() const { return 0; }
  virtual uint64_t packed_bytes() const { return 0; }  // 0: takes b as it is
  virtual void pack(const void* b, void* target) { (void)b, (void)target; }
  virtual bool activates() const { return false; }  // applies the activation; otherwise make_product adds a pass
};

// Throws PG_E_NOT_SUPPORTED for dtypes that have no product.
void check_product_dtype(uint32_t dtype);

// `constant_b`: b may be worth a private layout. An activation wants all of c dense. `strip`: it is one of many
// by one b (product_strips.hpp), each on one thread.
std::unique_ptr<Product> make_product(ProductShape shape, bool constant_b, bool strip = false);

// The ways, in product_*.cpp.
std::unique_ptr<Product> make_small_product(const ProductShape& shape);  // loops, one thread
std::unique_ptr<Product> make_own_product(const ProductShape& shape, bool constant_b, int64_t threads);  // gemm.hpp
std::unique_ptr<Product> make_sgemm_product(const ProductShape& shape);                                  // float32
std::unique_ptr<Product> make_few_rows_product(const ProductShape& shape);                    // NULL: another shape
std::unique_ptr<Product> make_primitive_product(const ProductShape& shape, bool constant_b);  // NULL: oneDNN has none
// A pass over what `product` has computed.
std::unique_ptr<Product> make_activated_product(const ProductShape& shape, std::unique_ptr<Product> product);

}  // namespace pg::cpu
