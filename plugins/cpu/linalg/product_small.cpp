// SPDX-License-Identifier: Apache-2.0
// Products so small that calling anything costs more than computing: loops over the strides, on the calling thread.
#include <cstring>
#include <type_traits>

#include "linalg/isa.hpp"
#include "linalg/product.hpp"

namespace pg::cpu {
namespace {

// Columns of c are computed `kWide` at a time, so that sums stay in registers whichever operand is transposed.
constexpr int64_t kWide = 8, kTall = 4;

template <class T>
class SmallProduct final : public Product {
 public:
  explicit SmallProduct(const ProductShape& shape) : s_(shape) {}

  void run(const ProductData& data) override {
    run_axis(0, static_cast<const T*>(data.a), static_cast<const T*>(data.b), static_cast<const T*>(data.bias),
             static_cast<T*>(data.c));
  }

 private:
  void run_axis(size_t axis, const T* a, const T* b, const T* bias, T* c) const {
    if (axis == s_.batch.size()) {
      auto body = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
        multiply(a, b, bias, c, begin, end);
      };
      return isa() == Isa::kBaseline ? body(0, s_.m) : call_avx2(body, 0, s_.m);
    }
    const BatchAxis& step = s_.batch[axis];
    for (int64_t i = 0; i < step.size; i++) run_axis(axis + 1, a + i * step.a, b + i * step.b, bias, c + i * step.c);
  }

  // Rows begin to end of c. Several rows at a time, or each sum would wait for the one before it.
  PG_INLINE void multiply(const T* a, const T* b, const T* bias, T* c, int64_t begin, int64_t end) const {
    int64_t i = begin;
    for (; i + kTall <= end; i += kTall) rows<kTall>(a + i * s_.a.row, b, bias, c + i * s_.c.row);
    for (; i < end; i++) rows<1>(a + i * s_.a.row, b, bias, c + i * s_.c.row);
  }

  template <int64_t Rows>
  PG_INLINE void rows(const T* a, const T* b, const T* bias, T* c) const {
    int64_t j = 0;
    for (; j + kWide <= s_.n; j += kWide) block<Rows, kWide>(a, b, bias, c, j);
    for (; j + 2 <= s_.n; j += 2) block<Rows, 2>(a, b, bias, c, j);
    for (; j < s_.n; j++) block<Rows, 1>(a, b, bias, c, j);
  }

  template <int64_t Rows, int64_t Count>
  PG_INLINE void block(const T* a, const T* b, const T* bias, T* c, int64_t j) const {
    using Sum = Accumulator<T>;
    typedef Sum Lanes __attribute__((vector_size(Count * sizeof(Sum))));
    const int64_t row = s_.b.row, column = s_.b.column, along = s_.a.column, down = s_.a.row;
    Lanes first{}, sum[Rows];
    for (int64_t q = 0; q < Count && bias != nullptr; q++) first[q] = load<T>(bias[(j + q) * s_.bias_stride]);
    for (int64_t r = 0; r < Rows; r++) sum[r] = first;
    b += j * column;
    for (int64_t p = 0; p < s_.k; p++) {
      Lanes y;
      if (std::is_same_v<T, Sum> && column == 1) {
        std::memcpy(&y, b + p * row, sizeof y);
      } else {
        for (int64_t q = 0; q < Count; q++) y[q] = load<T>(b[p * row + q * column]);
      }
      for (int64_t r = 0; r < Rows; r++) sum[r] += load<T>(a[r * down + p * along]) * y;
    }
    for (int64_t r = 0; r < Rows; r++) {
      for (int64_t q = 0; q < Count; q++) c[r * s_.c.row + (j + q) * s_.c.column] = store<T>(sum[r][q]);
    }
  }

  ProductShape s_;
};

}  // namespace

std::unique_ptr<Product> make_small_product(const ProductShape& shape) {
  return with_number(shape.dtype, [&](auto type) -> std::unique_ptr<Product> {
    return std::make_unique<SmallProduct<typename decltype(type)::type>>(shape);
  });
}

}  // namespace pg::cpu
