// SPDX-License-Identifier: Apache-2.0
// A batch of matrix products: what matmul and linear both are once their shapes have been read.
#pragma once

#include <memory>

#include "kernel.hpp"
#include "linalg/layout.hpp"

namespace cuda::linalg {

struct ProductData {
  const void *a, *b, *bias;
  void* c;
  void* workspace;
};

// One way to compute it, chosen when the shape is known. May run on several streams at a time.
class Product {
 public:
  virtual ~Product() = default;
  virtual void run(cudaStream_t stream, const ProductData& data) const = 0;
  virtual uint64_t workspace() const { return 0; }
};

// `result` is the dtype of c: that of the operands or, where these are 16-bit floats, also float32, in which they are
// summed anyway.
// NULL: cuBLASLt has nothing for the shape, the dtypes or this device.
std::unique_ptr<Product> make_blas_product(const ProductShape& shape, uint32_t result, uint32_t device);
// Every dtype, every stride; also where k is 0. Integers wrap around.
std::unique_ptr<Product> make_own_product(const ProductShape& shape, uint32_t result);

// `what` was asked for, in messages.
std::unique_ptr<Product> make_product(const ProductShape& shape, uint32_t result, uint32_t device,
                                      const std::string& what);
inline std::unique_ptr<Product> make_product(const ProductShape& shape, uint32_t device, const std::string& what) {
  return make_product(shape, shape.dtype, device, what);
}

}  // namespace cuda::linalg
