// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows of bfloat16 whose b lies column by column (a linear layer's weight): bound by reading b,
// so it is read as it is, once, and widened in registers. (float16 takes too many instructions for that.)
#include <cstring>

#include "linalg/isa.hpp"
#include "linalg/product.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kLanes = 8, kMostRows = 4;
// One row by a b that fits into the caches even in float32 is faster with b widened once: there widening is what takes
// time.
constexpr int64_t kCached = int64_t{1} << 21;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));

PG_INLINE void widen_lanes(const BFloat16* from, Lanes& to) {
  Shorts bits;
  std::memcpy(&bits, from, sizeof bits);
  Words wide = __builtin_convertvector(bits, Words) << 16;
  std::memcpy(&to, &wide, sizeof to);
}

template <int Rows>
PG_INLINE void columns(const ProductShape& s, const float* a, const BFloat16* b, const BFloat16* bias, BFloat16* c,
                       int64_t begin, int64_t end) {
  constexpr int kParts = Rows == 1 ? 8 : Rows == 2 ? 4 : 2;  // sums that do not wait for each other
  for (int64_t j = begin; j < end; j++) {
    const BFloat16* column = b + j * s.b.column;
    Lanes sum[Rows][kParts] = {};
    int64_t p = 0;
    for (; p + kParts * kLanes <= s.k; p += kParts * kLanes) {
#pragma GCC unroll 8
      for (int part = 0; part < kParts; part++) {
        Lanes y;
        widen_lanes(column + p + part * kLanes, y);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; r++) {
          Lanes x;
          std::memcpy(&x, a + r * s.k + p + part * kLanes, sizeof x);
          sum[r][part] += x * y;
        }
      }
    }
    for (int r = 0; r < Rows; r++) {
      Lanes all = sum[r][0];
      for (int part = 1; part < kParts; part++) all += sum[r][part];
      float total = bias != nullptr ? load<BFloat16>(bias[j * s.bias_stride]) : 0;
      for (int64_t q = 0; q < kLanes; q++) total += all[q];
      for (int64_t q = p; q < s.k; q++) total += load<BFloat16>(column[q]) * a[r * s.k + q];
      c[r * s.c.row + j * s.c.column] = store<BFloat16>(total);
    }
  }
}

class FewRowsProduct final : public Product {
 public:
  explicit FewRowsProduct(const ProductShape& shape) : s_(shape) {}
  uint64_t workspace() const override { return static_cast<uint64_t>(s_.m * s_.k) * sizeof(float) + 64; }

  void run(const ProductData& data) override {
    auto* a = static_cast<float*>(Scratch(data.workspace).take(0));
    for (int64_t i = 0; i < s_.m; i++) {
      const BFloat16* row = static_cast<const BFloat16*>(data.a) + i * s_.a.row;
      for (int64_t p = 0; p < s_.k; p++) a[i * s_.k + p] = load<BFloat16>(row[p * s_.a.column]);
    }
    switch (s_.m) {
      case 1: return multiply<1>(data, a);
      case 2: return multiply<2>(data, a);
      case 3: return multiply<3>(data, a);
      default: return multiply<4>(data, a);
    }
  }

 private:
  template <int Rows>
  void multiply(const ProductData& data, const float* a) const {
    const ProductShape& s = s_;
    auto *b = static_cast<const BFloat16*>(data.b), *bias = static_cast<const BFloat16*>(data.bias);
    auto* c = static_cast<BFloat16*>(data.c);
    vector_for(
        s.n, std::max<int64_t>(1, 65536 / s.k), [&, a ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          columns<Rows>(s, a, b, bias, c, begin, end);
        });
  }
  ProductShape s_;
};

}  // namespace

std::unique_ptr<Product> make_few_rows_product(const ProductShape& s) {
  if (s.dtype != PG_BF16 || !s.batch.empty() || s.m > kMostRows || s.b.row != 1) return nullptr;
  if (s.m == 1 && s.n * s.k < kCached) return nullptr;
  return std::make_unique<FewRowsProduct>(s);
}

}  // namespace pg::cpu
