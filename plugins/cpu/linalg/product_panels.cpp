// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows by a b whose panels (gemm.hpp) lie ready: bound by reading b, which comes as a few long
// streams, and whose sums need no adding up across lanes. Of bfloat16 panels have half of the bytes: the columns of
// their first half lie in the lower halves of words, those of the second in the upper ones.
#include <algorithm>
#include <cstring>

#include "linalg/gemm.hpp"
#include "linalg/isa.hpp"
#include "linalg/microkernel.hpp"
#include "linalg/panels.hpp"
#include "linalg/repeated.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kMostRows = 4;
constexpr int64_t kGrain = int64_t{1} << 18;      // elements of b that are worth a thread
constexpr int64_t kPackGrain = 8192;              // that packing is
constexpr int kMostPanels = 4, kMostBytes = 128;  // side by side; of a panel's row

// Rows of a, `row` apart, by panels of b, `panel` bytes apart.
template <class A>
struct Strip {
  const A* a;
  const char* b;
  int64_t row, panel, depth;
  A* c;
  int64_t step;  // from one row of c to the next
};

// How a panel's row lies: its numbers, or two of bfloat16 a word.
enum Lie { kNumbers, kPairs };
template <Lie lie>
constexpr int64_t kRowVectors = lie == kPairs ? 1 : 2;

template <Lie lie, class Vector>
PG_INLINE void load_row(const char* from, Vector& left, Vector& right) {
  if constexpr (lie == kPairs) {
    typedef uint32_t Words __attribute__((vector_size(sizeof(Vector)), aligned(4), may_alias));
    const Words words = *reinterpret_cast<const Words*>(from);
    left = (Vector)(words << 16), right = (Vector)(words & 0xffff0000u);
  } else {
    const auto* row = reinterpret_cast<const Vector*>(from);
    left = row[0], right = row[1];
  }
}

template <class A, Lie lie, int Bytes, int Rows, int Panels>
PG_INLINE void multiply(const Strip<A>& s) {
  typedef A Vector __attribute__((vector_size(Bytes), aligned(sizeof(A)), may_alias));
  constexpr int64_t lanes = Bytes / static_cast<int64_t>(sizeof(A)), columns = 2 * lanes;
  Vector sum[Rows][Panels][2];
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
    for (int q = 0; q < Panels; q++) sum[i][q][0] = sum[i][q][1] = Vector{};
  }
  const A* a = s.a;
  const char* b = s.b;
  for (int64_t p = 0; p < s.depth; p++, a++, b += kRowVectors<lie> * Bytes) {
#pragma GCC unroll 4
    for (int q = 0; q < Panels; q++) {
      Vector left, right;
      load_row<lie>(b + q * s.panel, left, right);
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

template <class A, Lie lie, int Rows, int Panels>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Strip<A>& s) {
  multiply<A, lie, 32, Rows, Panels>(s);
}
template <class A, Lie lie, int Rows, int Panels>
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma"))) void multiply_avx512(const Strip<A>& s) {
  multiply<A, lie, 64, Rows, Panels>(s);
}

// By rows: as many panels as keep the multipliers busy, and one.
template <class A>
struct Loop {
  int panels;
  void (*some)(const Strip<A>&);
  void (*one)(const Strip<A>&);
};
template <class A, Lie lie>
const Loop<A>& loop_of(int64_t rows) {
  static constexpr Loop<A> avx2[kMostRows] = {{4, multiply_avx2<A, lie, 1, 4>, multiply_avx2<A, lie, 1, 1>},
                                              {2, multiply_avx2<A, lie, 2, 2>, multiply_avx2<A, lie, 2, 1>},
                                              {2, multiply_avx2<A, lie, 3, 2>, multiply_avx2<A, lie, 3, 1>},
                                              {1, multiply_avx2<A, lie, 4, 1>, multiply_avx2<A, lie, 4, 1>}};
  static constexpr Loop<A> avx512[kMostRows] = {{4, multiply_avx512<A, lie, 1, 4>, multiply_avx512<A, lie, 1, 1>},
                                                {2, multiply_avx512<A, lie, 2, 2>, multiply_avx512<A, lie, 2, 1>},
                                                {2, multiply_avx512<A, lie, 3, 2>, multiply_avx512<A, lie, 3, 1>},
                                                {2, multiply_avx512<A, lie, 4, 2>, multiply_avx512<A, lie, 4, 1>}};
  return (isa() == Isa::kAvx512 ? avx512 : avx2)[rows - 1];
}

// Panel q of b in pairs.
template <int64_t columns>
void pack_pairs(Matrix<const BFloat16> b, int64_t n, int64_t k, int64_t q, uint32_t* target) {
  constexpr int64_t kDepth = 64, lanes = columns / 2;
  alignas(64) float numbers[kDepth * columns];
  alignas(64) uint32_t bits[kDepth * columns];
  const int64_t j = q * columns;
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = std::min(kDepth, k - p);
    pack_panel<BFloat16, columns>(b.data + j * b.column + p * b.row, b.column, b.row, std::min(columns, n - j), depth,
                                  numbers);
    std::memcpy(bits, numbers, static_cast<size_t>(depth * columns) * sizeof *bits);
    for (int64_t i = 0; i < depth; i++) {
      const uint32_t *left = bits + i * columns, *right = left + lanes;
      for (int64_t l = 0; l < lanes; l++) target[(p + i) * lanes + l] = left[l] >> 16 | (right[l] & 0xffff0000u);
    }
  }
}

template <class T>
class PanelProduct final : public Product {
 public:
  explicit PanelProduct(const ProductShape& shape)
      : s_(shape),
        columns_(microkernel<Sum>().columns),
        panels_((shape.n + columns_ - 1) / columns_),
        panel_bytes_(columns_ * shape.k * static_cast<int64_t>(kLie == kPairs ? sizeof(T) : sizeof(Sum))),
        loop_(loop_of<Sum, kLie>(shape.m)),
        plain_(make_product(shape, false)) {}
  uint64_t workspace() const override {
    return std::max(plain_->workspace(), static_cast<uint64_t>(s_.m * s_.k) * sizeof(Sum) + 64);
  }
  uint64_t packed_bytes() const override { return static_cast<uint64_t>(panels_ * panel_bytes_); }
  void pack(const void* data, void* target) override {
    const Matrix<const T> b{static_cast<const T*>(data), s_.b.row, s_.b.column};
    if constexpr (kLie == kPairs) {
      parallel_for(panels_, std::max<int64_t>(1, kPackGrain / (columns_ * s_.k)), [&](int64_t begin, int64_t end) {
        for (int64_t q = begin; q < end; q++) {
          auto* panel = reinterpret_cast<uint32_t*>(static_cast<char*>(target) + q * panel_bytes_);
          columns_ == 32 ? pack_pairs<32>(b, s_.n, s_.k, q, panel) : pack_pairs<16>(b, s_.n, s_.k, q, panel);
        }
      });
    } else {
      Gemm<T>(s_.m, s_.n, s_.k, 1).pack(b, target);
    }
  }

  void run(const ProductData& data) override {
    if (data.packed_b == nullptr) return plain_->run(data);
    Strip<Sum> all{};
    all.panel = panel_bytes_, all.depth = s_.k, all.row = s_.a.row;
    all.b = static_cast<const char*>(data.packed_b);
    all.a = rows_of(static_cast<const T*>(data.a), static_cast<Sum*>(Scratch(data.workspace).take(0)), all.row);
    const int64_t wide = loop_.panels, count = (panels_ + wide - 1) / wide, numbers = columns_ * s_.k * wide;
    parallel_for(count, std::max<int64_t>(1, kGrain / numbers), [&, this](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const int64_t at = data.backwards ? end - 1 - (i - begin) : i, first = at * wide;
        if (first + wide <= panels_) {
          strip(all, static_cast<T*>(data.c), first, wide, loop_.some);
        } else {
          for (int64_t q = first; q < panels_; q++) strip(all, static_cast<T*>(data.c), q, 1, loop_.one);
        }
      }
    });
  }

 private:
  using Sum = Accumulator<T>;
  static constexpr Lie kLie = std::is_same_v<T, BFloat16> ? kPairs : kNumbers;

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
    write_sums<T>(sums, t.step, s_.m, width, {c + j, s_.c.row, 1}, false);
  }

  ProductShape s_;
  int64_t columns_, panels_, panel_bytes_;
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
