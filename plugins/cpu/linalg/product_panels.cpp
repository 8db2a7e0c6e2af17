// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows by a b whose panels (gemm.hpp) lie ready: bound by reading b, which comes as a few long
// streams, and whose sums need no adding up across lanes.
#include <algorithm>

#include "linalg/gemm.hpp"
#include "linalg/isa.hpp"
#include "linalg/microkernel.hpp"
#include "linalg/repeated.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kGrain = int64_t{1} << 18;      // elements of b that are worth a thread
constexpr int kMostPanels = 4, kMostBytes = 128;  // side by side; of a panel's row

// Rows of a, `row` apart, by panels of b, `panel` apart.
template <class A>
struct Strip {
  const A *a, *b;
  int64_t row, panel, depth;
  A* c;
  int64_t step;  // from one row of c to the next
};

template <class A, int Bytes, int Rows, int Panels>
PG_INLINE void multiply(const Strip<A>& s) {
  typedef A Vector __attribute__((vector_size(Bytes), aligned(sizeof(A)), may_alias));
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(A)), columns = 2 * lanes;
  Vector sum[Rows][Panels][2];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
    for (int q = 0; q < Panels; q++) sum[i][q][0] = sum[i][q][1] = Vector{};
  }
  const A *a = s.a, *b = s.b;
  for (int64_t p = 0; p < s.depth; p++, a++, b += columns) {
#pragma GCC unroll 4
    for (int q = 0; q < Panels; q++) {
      const A* from = b + q * s.panel;
      const Vector left = *reinterpret_cast<const Vector*>(from),
                   right = *reinterpret_cast<const Vector*>(from + lanes);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; i++) {
        sum[i][q][0] += a[i * s.row] * left;
        sum[i][q][1] += a[i * s.row] * right;
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
    for (int q = 0; q < Panels; q++) {
      A* to = s.c + i * s.step + q * columns;
      *reinterpret_cast<Vector*>(to) = sum[i][q][0], *reinterpret_cast<Vector*>(to + lanes) = sum[i][q][1];
    }
  }
}

template <class A, int Rows, int Panels>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Strip<A>& s) {
  multiply<A, 32, Rows, Panels>(s);
}
template <class A, int Rows, int Panels>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))) void multiply_avx512(const Strip<A>& s) {
  multiply<A, 64, Rows, Panels>(s);
}

// By rows: as many panels as keep the multipliers busy, and one.
template <class A>
struct Loop {
  int panels;
  void (*some)(const Strip<A>&);
  void (*one)(const Strip<A>&);
};
template <class A>
const Loop<A>& loop_of(int64_t rows) {
  static constexpr Loop<A> avx2[kMostRows] = {{4, multiply_avx2<A, 1, 4>, multiply_avx2<A, 1, 1>},
                                              {2, multiply_avx2<A, 2, 2>, multiply_avx2<A, 2, 1>},
                                              {2, multiply_avx2<A, 3, 2>, multiply_avx2<A, 3, 1>},
                                              {1, multiply_avx2<A, 4, 1>, multiply_avx2<A, 4, 1>}};
  static constexpr Loop<A> avx512[kMostRows] = {{4, multiply_avx512<A, 1, 4>, multiply_avx512<A, 1, 1>},
                                                {2, multiply_avx512<A, 2, 2>, multiply_avx512<A, 2, 1>},
                                                {2, multiply_avx512<A, 3, 2>, multiply_avx512<A, 3, 1>},
                                                {2, multiply_avx512<A, 4, 2>, multiply_avx512<A, 4, 1>}};
  return (isa() == Isa::kAvx512 ? avx512 : avx2)[rows - 1];
}

template <class T>
class PanelProduct final : public Product {
 public:
  explicit PanelProduct(const ProductShape& shape)
      : s_(shape),
        gemm_(shape.m, shape.n, shape.k, 1),
        columns_(microkernel<Sum>().columns),
        loop_(loop_of<Sum>(shape.m)),
        plain_(make_product(shape, false)) {}
  uint64_t workspace() const override {
    return std::max(plain_->workspace(), static_cast<uint64_t>(s_.m * s_.k) * sizeof(Sum) + 64);
  }
  uint64_t packed_bytes() const override { return gemm_.packed_bytes(); }
  void pack(const void* b, void* target) override {
    gemm_.pack({static_cast<const T*>(b), s_.b.row, s_.b.column}, target);
  }

  void run(const ProductData& data) override {
    if (data.packed_b == nullptr) return plain_->run(data);
    Strip<Sum> all{};
    all.panel = columns_ * s_.k, all.depth = s_.k, all.row = s_.a.row;
    all.b = static_cast<const Sum*>(data.packed_b);
    all.a = rows_of(static_cast<const T*>(data.a), static_cast<Sum*>(Scratch(data.workspace).take(0)), all.row);
    const int64_t panels = (s_.n + columns_ - 1) / columns_, wide = loop_.panels, count = (panels + wide - 1) / wide;
    parallel_for(count, std::max<int64_t>(1, kGrain / (all.panel * wide)), [&, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = data.backwards ? end - 1 - (i - begin) : i, first = at * wide;
        if (first + wide <= panels) {
          strip(all, static_cast<T*>(data.c), first, wide, loop_.some);
        } else {
          for (int64_t q = first; q < panels; q++) strip(all, static_cast<T*>(data.c), q, 1, loop_.one);
        }
      }
    });
  }

 private:
  using Sum = Accumulator<T>;

  // a in the type of its sums: where it is of that, as it lies.
  const Sum* rows_of(const T* a, Sum* room, int64_t& row) const {
    if constexpr (std::is_same_v<T, Sum>) {
      return a;
    } else {
      for (int64_t i = 0; i < s_.m; i++) {
        for (int64_t p = 0; p < s_.k; p++) room[i * s_.k + p] = load<T>(a[i * s_.a.row + p]);
      }
      row = s_.k;
      return room;
    }
  }

  void strip(Strip<Sum> t, T* c, int64_t first, int64_t count, void (*loop)(const Strip<Sum>&)) const {
    const int64_t j = first * columns_, width = std::min(count * columns_, s_.n - j);
    t.b += first * t.panel;
    if constexpr (std::is_same_v<T, Sum>) {
      if (width == count * columns_) {
        t.c = c + j, t.step = s_.c.row;
        return loop(t);
      }
    }
    alignas(64) Sum sums[kMostRows * kMostPanels * kMostBytes / sizeof(Sum)];
    t.c = sums, t.step = count * columns_;
    loop(t);
    for (int64_t i = 0; i < s_.m; i++) {
      for (int64_t q = 0; q < width; q++) c[i * s_.c.row + j + q] = store<T>(sums[i * t.step + q]);
    }
  }

  ProductShape s_;
  Gemm<T> gemm_;
  int64_t columns_;
  const Loop<Sum>& loop_;
  std::unique_ptr<Product> plain_;
};

}  // namespace

std::unique_ptr<Product> make_panel_product(const ProductShape& s) {
  const bool plain = s.batch.empty() && !s.bias && s.activation == Activation::kNone;
  if (!plain || s.m < 1 || s.m > kMostRows || s.a.column != 1 || s.c.column != 1) return nullptr;
  switch (s.dtype) {
    case PG_F32: return std::make_unique<PanelProduct<float>>(s);
    case PG_F64: return std::make_unique<PanelProduct<double>>(s);
    case PG_BF16: return std::make_unique<PanelProduct<BFloat16>>(s);
    case PG_F16: return std::make_unique<PanelProduct<Half>>(s);
    default: return nullptr;
  }
}

}  // namespace pg::cpu
