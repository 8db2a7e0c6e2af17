// SPDX-License-Identifier: Apache-2.0
#include "dense_unary.hpp"

#include <algorithm>

namespace cpu {

DenseUnary::DenseUnary(Primitive op, uint32_t dtype)
    : storage_(storage_of(dtype)),
      wide_(kStorageOf[kComputeOf[storage_]]),
      function_(simd->unary[op][kComputeOf[storage_]]) {
  if (storage_ == sBF16 && simd->unary_bf16[op] != nullptr) wide_ = storage_, function_ = simd->unary_bf16[op];
}

void DenseUnary::run(void* data, int64_t count) const {
  auto* x = static_cast<char*>(data);
  const int64_t bytes = kStorageBytes[storage_];
  pg::parallel_for(count, storage_ == sBF16 ? kGrainBF16 : kGrain, [&](int64_t begin, int64_t end) {
    if (storage_ == wide_) return function_(x + begin * bytes, x + begin * bytes, end - begin, nullptr);
    float block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      int64_t n = std::min(kBlock, end - i);
      convert(storage_, wide_, x + i * bytes, block, n);
      function_(block, block, n, nullptr);
      convert(wide_, storage_, block, x + i * bytes, n);
    }
  });
}

}  // namespace cpu
