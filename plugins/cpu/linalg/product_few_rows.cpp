// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows of float32 or bfloat16 whose b lies column by column (a linear layer's weight): bound by
// reading b, so it is read as it is, once, and widened in registers. (float16 takes too many instructions for that.)
#include <cstring>

#include "linalg/isa.hpp"
#include "linalg/product.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kLanes = 8, kMostRows = 4;
// One row by a bfloat16 b that fits into the caches even in float32 is faster with b widened once: there widening is
// what takes time.
constexpr int64_t kCached = int64_t{1} << 21;
// dnnl_sgemm reads b as fast for one row, but at a fraction of the speed for two to four of a b this large.
constexpr int64_t kWorthIt = int64_t{1} << 16;
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef uint16_t Shorts __attribute__((vector_size(2 * kLanes)));

PG_INLINE void load_lanes(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }
PG_INLINE void load_lanes(const BFloat16* from, Lanes& to) {
  Shorts bits;
  std::memcpy(&bits, from, sizeof bits);
  Words wide = __builtin_convertvector(bits, Words) << 16;
  std::memcpy(&to, &wide, sizeof to);
}

template <class T, int Rows>
PG_INLINE void columns(const ProductShape& s, const float* a, const T* b, const T* bias, T* c, int64_t begin,
                       int64_t end) {
  constexpr int kParts = Rows == 1 ? 8 : Rows == 2 ? 4 : 2;  // sums that do not wait for each other
  for (int64_t j = begin; j < end; j++) {
    const T* column = b + j * s.b.column;
    Lanes sum[Rows][kParts] = {};
    int64_t p = 0;
    for (; p + kParts * kLanes <= s.k; p += kParts * kLanes) {
#pragma GCC unroll 8
      for (int part = 0; part < kParts; part++) {
        Lanes y;
        load_lanes(column + p + part * kLanes, y);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; r++) {
          Lanes x;
          load_lanes(a + r * s.k + p + part * kLanes, x);
          sum[r][part] += x * y;
        }
      }
    }
    for (int r = 0; r < Rows; r++) {
      Lanes all = sum[r][0];
      for (int part = 1; part < kParts; part++) all += sum[r][part];
      float total = bias != nullptr ? load<T>(bias[j * s.bias_stride]) : 0;
      for (int64_t q = 0; q < kLanes; q++) total += all[q];
      for (int64_t q = p; q < s.k; q++) total += load<T>(column[q]) * a[r * s.k + q];
      c[r * s.c.row + j * s.c.column] = store<T>(total);
    }
  }
}

template <class T>
class FewRowsProduct final : public Product {
 public:
  explicit FewRowsProduct(const ProductShape& shape) : s_(shape) {}
  uint64_t workspace() const override { return static_cast<uint64_t>(s_.m * s_.k) * sizeof(float) + 64; }

  void run(const ProductData& data) override {
    auto* a = static_cast<float*>(Scratch(data.workspace).take(0));
    for (int64_t i = 0; i < s_.m; i++) {
      const T* row = static_cast<const T*>(data.a) + i * s_.a.row;
      for (int64_t p = 0; p < s_.k; p++) a[i * s_.k + p] = load<T>(row[p * s_.a.column]);
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
    auto *b = static_cast<const T*>(data.b), *bias = static_cast<const T*>(data.bias);
    auto* c = static_cast<T*>(data.c);
    vector_for(
        s.n, std::max<int64_t>(1, 65536 / s.k), [&, a ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          columns<T, Rows>(s, a, b, bias, c, begin, end);
        });
  }
  ProductShape s_;
};

}  // namespace

std::unique_ptr<Product> make_few_rows_product(const ProductShape& s) {
  if (!s.batch.empty() || s.m > kMostRows || s.b.row != 1) return nullptr;
  if (s.dtype == PG_F32 && s.m > 1 && s.n * s.k >= kWorthIt) return std::make_unique<FewRowsProduct<float>>(s);
  if (s.dtype != PG_BF16 || (s.m == 1 && s.n * s.k < kCached)) return nullptr;
  return std::make_unique<FewRowsProduct<BFloat16>>(s);
}

}  // namespace pg::cpu
