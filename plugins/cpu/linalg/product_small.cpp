// SPDX-License-Identifier: Apache-2.0
// Products so small that calling anything costs more than computing: loops over the strides, a matrix on one thread.
#include <cstring>
#include <type_traits>

#include "linalg/isa.hpp"
#include "linalg/product.hpp"
#include "linalg/work.hpp"

namespace pg::cpu {
namespace {

// Columns of c are computed `kWide` at a time, so that sums stay in registers whichever operand is transposed. Where a
// row of b can be loaded as it is, two vectors of kBytes side by side.
constexpr int64_t kWide = 8, kTall = 4, kBytes = 32;
// A b of columns is copied to rows if it has no more elements than this; multiplications of a task, in batches.
constexpr int64_t kRowMajor = 2048, kGrain = 32768;

template <class T>
class SmallProduct final : public Product {
 public:
  explicit SmallProduct(const ProductShape& shape) : s_(shape) {}

  void run(const ProductData& data) override {
    auto *a = static_cast<const T*>(data.a), *b = static_cast<const T*>(data.b),
         *bias = static_cast<const T*>(data.bias);
    auto* c = static_cast<T*>(data.c);
    if (s_.batch.empty()) return one(a, b, bias, c);
    int64_t count = 1, work = work_of({s_.m, s_.n, s_.k});
    for (const BatchAxis& axis : s_.batch) count *= axis.size;
    parallel_for(count, kGrain / work + 1, [=, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        int64_t at[3] = {}, rest = i;
        for (size_t axis = s_.batch.size(); axis-- > 0;) {
          const BatchAxis& step = s_.batch[axis];
          int64_t position = rest % step.size;
          rest /= step.size, at[0] += position * step.a, at[1] += position * step.b, at[2] += position * step.c;
        }
        one(a + at[0], b + at[1], bias, c + at[2]);
      }
    });
  }

 private:
  void one(const T* a, const T* b, const T* bias, T* c) const {
    Strides stride = s_.b;
    T rows[kRowMajor];
    if (std::is_floating_point_v<T> && stride.column != 1 && s_.m >= kTall && s_.n * s_.k <= kRowMajor) {
      copy_rows(b, rows);
      b = rows, stride = {s_.n, 1};
    }
    auto body = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
      multiply(a, b, stride, bias, c, begin, end);
    };
    call_avx2(body, 0, s_.m);
  }

  // b by rows: four by four elements at a time where its columns are dense.
  void copy_rows(const T* b, T* rows) const {
    const int64_t n = s_.n, k = s_.k, row = s_.b.row, column = s_.b.column;
    int64_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      typedef T Four __attribute__((vector_size(4 * sizeof(T))));
      for (; row == 1 && k % 4 == 0 && j + 4 <= n; j += 4) {
        for (int64_t p = 0; p < k; p += 4) {
          Four x[4], low[2], high[2];
          for (int64_t i = 0; i < 4; i++) std::memcpy(&x[i], b + (j + i) * column + p, sizeof x[i]);
          for (int64_t i = 0; i < 2; i++) {
            low[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 0, 4, 1, 5);
            high[i] = __builtin_shufflevector(x[2 * i], x[2 * i + 1], 2, 6, 3, 7);
          }
          x[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
          x[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
          x[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
          x[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
          for (int64_t i = 0; i < 4; i++) std::memcpy(rows + (p + i) * n + j, &x[i], sizeof x[i]);
        }
      }
    }
    for (; j < n; j++) {
      for (int64_t p = 0; p < k; p++) rows[p * n + j] = b[p * row + j * column];
    }
  }

  // Rows begin to end of c. Several rows at a time, or each sum would wait for the one before it.
  PG_INLINE void multiply(const T* a, const T* b, Strides by, const T* bias, T* c, int64_t begin, int64_t end) const {
    int64_t i = begin;
    for (; i + kTall <= end; i += kTall) rows<kTall>(a + i * s_.a.row, b, by, bias, c + i * s_.c.row);
    for (; i < end; i++) rows<1>(a + i * s_.a.row, b, by, bias, c + i * s_.c.row);
  }

  template <int64_t Rows>
  PG_INLINE void rows(const T* a, const T* b, Strides by, const T* bias, T* c) const {
    int64_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr int64_t kLanes = kBytes / sizeof(T);
      if (by.column == 1 && s_.c.column == 1) {
        for (; j + 2 * kLanes <= s_.n; j += 2 * kLanes) panel<Rows, 2>(a, b, by, bias, c, j);
        for (; j + kLanes <= s_.n; j += kLanes) panel<Rows, 1>(a, b, by, bias, c, j);
      }
    }
    for (; j + kWide <= s_.n; j += kWide) block<Rows, kWide>(a, b, by, bias, c, j);
    for (; j + 2 <= s_.n; j += 2) block<Rows, 2>(a, b, by, bias, c, j);
    for (; j < s_.n; j++) block<Rows, 1>(a, b, by, bias, c, j);
  }

  template <int64_t Rows, int64_t Vectors>
  PG_INLINE void panel(const T* a, const T* b, Strides by, const T* bias, T* c, int64_t j) const {
    typedef T Lanes __attribute__((vector_size(kBytes)));
    constexpr int64_t kLanes = kBytes / sizeof(T);
    const int64_t row = by.row, along = s_.a.column, down = s_.a.row;
    T first[Vectors * kLanes] = {};  // not the sums themselves: indexed by a variable they would live in memory
    for (int64_t q = 0; q < Vectors * kLanes && bias != nullptr; q++) first[q] = bias[(j + q) * s_.bias_stride];
    Lanes sum[Rows][Vectors];
    for (int64_t r = 0; r < Rows; r++) {
      for (int64_t v = 0; v < Vectors; v++) std::memcpy(&sum[r][v], first + v * kLanes, sizeof sum[r][v]);
    }
    for (int64_t p = 0; p < s_.k; p++) {
      Lanes y[Vectors];
      for (int64_t v = 0; v < Vectors; v++) std::memcpy(&y[v], b + j + p * row + v * kLanes, sizeof y[v]);
      for (int64_t r = 0; r < Rows; r++) {
        for (int64_t v = 0; v < Vectors; v++) sum[r][v] += a[r * down + p * along] * y[v];
      }
    }
    for (int64_t r = 0; r < Rows; r++) {
      for (int64_t v = 0; v < Vectors; v++)
        std::memcpy(c + r * s_.c.row + j + v * kLanes, &sum[r][v], sizeof sum[r][v]);
    }
  }

  template <int64_t Rows, int64_t Count>
  PG_INLINE void block(const T* a, const T* b, Strides by, const T* bias, T* c, int64_t j) const {
    using Sum = Accumulator<T>;
    typedef Sum Lanes __attribute__((vector_size(Count * sizeof(Sum))));
    const int64_t row = by.row, column = by.column, along = s_.a.column, down = s_.a.row;
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
