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
// Of b this large dnnl_sgemm reads 0.8 as fast for one row, and at a fraction of the speed for two to four.
constexpr int64_t kWorthIt = int64_t{1} << 16;
constexpr int64_t kGrain = int64_t{1} << 18;  // elements of b that are worth a thread
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

// Rows of c in columns j to j + Columns. Several columns of b are read side by side where sums of several rows do not
// already keep the processor busy: that is more of b under way from the last cache at a time.
template <class T, int Rows, int Columns>
PG_INLINE void columns(const ProductShape& s, const float* a, const T* b, const T* bias, T* c, int64_t j) {
  // Sums that do not wait for each other.
  constexpr int kParts = Rows * Columns == 1 ? 8 : Rows * Columns == 2 ? 4 : Rows * Columns < 8 ? 2 : 1;
  const T* column = b + j * s.b.column;
  Lanes sum[Rows][Columns][kParts] = {};
  int64_t p = 0;
  for (; p + kParts * kLanes <= s.k; p += kParts * kLanes) {
#pragma GCC unroll 8
    for (int part = 0; part < kParts; part++) {
      Lanes x[Rows], y[Columns];
#pragma GCC unroll 4
      for (int r = 0; r < Rows; r++) load_lanes(a + r * s.k + p + part * kLanes, x[r]);
#pragma GCC unroll 8
      for (int q = 0; q < Columns; q++) {
        load_lanes(column + q * s.b.column + p + part * kLanes, y[q]);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; r++) sum[r][q][part] += x[r] * y[q];
      }
    }
  }
  for (int r = 0; r < Rows; r++) {
    for (int q = 0; q < Columns; q++) {
      Lanes all = sum[r][q][0];
      for (int part = 1; part < kParts; part++) all += sum[r][q][part];
      float total = bias != nullptr ? load<T>(bias[(j + q) * s.bias_stride]) : 0;
      for (int64_t i = 0; i < kLanes; i++) total += all[i];
      for (int64_t i = p; i < s.k; i++) total += load<T>(column[q * s.b.column + i]) * a[r * s.k + i];
      c[r * s.c.row + (j + q) * s.c.column] = store<T>(total);
    }
  }
}

template <class T>
class FewRowsProduct final : public Product {
 public:
  explicit FewRowsProduct(const ProductShape& shape) : s_(shape) {}
  uint64_t workspace() const override { return static_cast<uint64_t>(s_.m * s_.k) * sizeof(float) + 64; }

  void run(const ProductData& data) override {
    const float* a = dense_rows(static_cast<const T*>(data.a), static_cast<float*>(Scratch(data.workspace).take(0)));
    switch (s_.m) {
      case 1: return multiply<1>(data, a);
      case 2: return multiply<2>(data, a);
      case 3: return multiply<3>(data, a);
      default: return multiply<4>(data, a);
    }
  }

 private:
  // a in float32, row by row: where it lies so already, as it is.
  const float* dense_rows(const T* a, float* room) const {
    if constexpr (std::is_same_v<T, float>) {
      if (s_.a.column == 1 && (s_.m == 1 || s_.a.row == s_.k)) return a;
    }
    for (int64_t i = 0; i < s_.m; i++) {
      const T* row = a + i * s_.a.row;
      for (int64_t p = 0; p < s_.k; p++) room[i * s_.k + p] = load<T>(row[p * s_.a.column]);
    }
    return room;
  }

  template <int Rows>
  void multiply(const ProductData& data, const float* a) const {
    // Of float32 a row's sums leave room for more columns; 16-bit floats keep the processor busy with widening.
    constexpr int kColumns = Rows == 1 && std::is_same_v<T, float> ? 8 : 1;
    const ProductShape& s = s_;
    auto *b = static_cast<const T*>(data.b), *bias = static_cast<const T*>(data.bias);
    auto* c = static_cast<T*>(data.c);
    // A task is a group of columns wherever threads meet: how a column is summed does not depend on their number.
    vector_for((s.n + kColumns - 1) / kColumns, std::max<int64_t>(1, kGrain / (s.k * kColumns)),
               [&, a ](int64_t begin, int64_t end) __attribute__((always_inline)) {
                 for (int64_t group = begin; group < end; group++) {
                   int64_t j = group * kColumns;
                   if (j + kColumns <= s.n) {
                     columns<T, Rows, kColumns>(s, a, b, bias, c, j);
                   } else {
                     for (; j < s.n; j++) columns<T, Rows, 1>(s, a, b, bias, c, j);
                   }
                 }
               });
  }
  ProductShape s_;
};

}  // namespace

std::unique_ptr<Product> make_few_rows_product(const ProductShape& s) {
  if (!s.batch.empty() || s.m > kMostRows || s.b.row != 1) return nullptr;
  if (s.dtype == PG_F32 && s.n * s.k >= kWorthIt) return std::make_unique<FewRowsProduct<float>>(s);
  if (s.dtype != PG_BF16 || (s.m == 1 && s.n * s.k < kCached)) return nullptr;
  return std::make_unique<FewRowsProduct<BFloat16>>(s);
}

}  // namespace pg::cpu
