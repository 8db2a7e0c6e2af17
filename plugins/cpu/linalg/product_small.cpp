// SPDX-License-Identifier: Apache-2.0
// Products so small that calling anything costs more than computing: loops over the strides, on the calling thread.
#include "linalg/product.hpp"

namespace pg::cpu {
namespace {

// Columns of c are computed `kWide` at a time, so that sums stay in registers whichever operand is transposed.
constexpr int64_t kWide = 8;

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
    if (axis == s_.batch.size()) return multiply(a, b, bias, c);
    const BatchAxis& step = s_.batch[axis];
    for (int64_t i = 0; i < step.size; i++) run_axis(axis + 1, a + i * step.a, b + i * step.b, bias, c + i * step.c);
  }

  void multiply(const T* a, const T* b, const T* bias, T* c) const {
    for (int64_t i = 0; i < s_.m; i++) {
      int64_t j = 0;
      for (; j + kWide <= s_.n; j += kWide) columns<kWide>(a + i * s_.a.row, b, bias, c + i * s_.c.row, j);
      for (; j + 2 <= s_.n; j += 2) columns<2>(a + i * s_.a.row, b, bias, c + i * s_.c.row, j);
      for (; j < s_.n; j++) columns<1>(a + i * s_.a.row, b, bias, c + i * s_.c.row, j);
    }
  }

  template <int64_t Count>
  void columns(const T* a, const T* b, const T* bias, T* c, int64_t j) const {
    const int64_t row = s_.b.row, column = s_.b.column, along = s_.a.column, k = s_.k;
    Accumulator<T> sum[Count];
    for (int64_t q = 0; q < Count; q++) sum[q] = bias != nullptr ? load<T>(bias[(j + q) * s_.bias_stride]) : 0;
    b += j * column;
    if (column == 1) {
      for (int64_t p = 0; p < k; p++) {
        Accumulator<T> x = load<T>(a[p * along]);
        for (int64_t q = 0; q < Count; q++) sum[q] += x * load<T>(b[p * row + q]);
      }
    } else {
      for (int64_t p = 0; p < k; p++) {
        Accumulator<T> x = load<T>(a[p * along]);
        for (int64_t q = 0; q < Count; q++) sum[q] += x * load<T>(b[p * row + q * column]);
      }
    }
    for (int64_t q = 0; q < Count; q++) c[(j + q) * s_.c.column] = store<T>(sum[q]);
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
