// SPDX-License-Identifier: Apache-2.0
#include "linalg/product.hpp"

#include "vendor.hpp"

namespace cuda::linalg {

std::unique_ptr<Product> make_product(const ProductShape& shape, uint32_t result, uint32_t device,
                                      const std::string& what) {
  return asked_for(what, [&] {
    if (auto product = make_blas_product(shape, result, device)) return product;
    bool refused = (pg::dtype_class(shape.dtype) & PG_M_FLOAT) != 0 && shape.m * shape.n * shape.k > 0;
    if (refused) pg::log(PG_LOG_DEBUG, "cuBLASLt has nothing for " + what + ": an own kernel computes it");
    return make_own_product(shape, result);
  });
}

}  // namespace cuda::linalg
