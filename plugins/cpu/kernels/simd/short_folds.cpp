// SPDX-License-Identifier: Apache-2.0
// Reductions of many short lines that fold one element after another: of as many lines at once as 32 bytes have
// elements. A line's vectors are folded into one each; the lanes of those are folded across, in pairs, into a vector of
// results. A line's result depends on its own elements only.
#include "loop.hpp"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace cpu::PG_CPU_ISA {
namespace {

template <class T, int kBytes>
struct BytesOf {
  typedef T type __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Whole = typename BytesOf<T, 32>::type;
using Half = BytesOf<float, 16>::type;
template <class T>
constexpr int64_t kSide = 32 / static_cast<int64_t>(sizeof(T));

template <class V, class T>
[[gnu::always_inline]] inline V load(const T* at) {
  return *reinterpret_cast<const V*>(at);
}
// A mask of the first (last) `count` lanes.
template <class V>
[[gnu::always_inline]] inline auto lanes_below(int64_t count) {
  using Mask = decltype(V{} == V{});
  constexpr int kLanes = sizeof(V) / sizeof(V{}[0]);
  Mask place;
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; i++) place[i] = i;
  return place < Mask{} + static_cast<decltype(place[0] + 0)>(count);
}
// The first lanes of a line that is shorter than a vector; the others are 0.
template <class V, class T, class Mask>
[[gnu::always_inline]] inline V load_first(const T* at, [[maybe_unused]] int64_t count, [[maybe_unused]] Mask mask) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 16)
    return (V)_mm_maskload_ps(at, (__m128i)mask);
  else if constexpr (sizeof(T) == 4)
    return (V)_mm256_maskload_ps(at, (__m256i)mask);
  else
    return (V)_mm256_maskload_pd(at, (__m256i)mask);
#else
  V v{};
  for (int64_t i = 0; i < count; i++) v[i] = at[i];
  return v;
#endif
}

struct AddLanes {
  static constexpr double kStart = 0;
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a + b;
  }
};
struct MultiplyLanes {
  static constexpr double kStart = 1;
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    return a * b;
  }
};
// NaN stays, as in math.hpp.
struct LargerLanes {
  static constexpr double kStart = -__builtin_inf();
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    V larger = a > b ? a : b;
    return a == a ? larger : a;
  }
};
struct SmallerLanes {
  static constexpr double kStart = __builtin_inf();
  template <class V>
  [[gnu::always_inline]] V operator()(V a, V b) const {
    V smaller = a < b ? a : b;
    return a == a ? smaller : a;
  }
};

struct Itself {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x;
  }
};
struct Number {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x == x ? x : V{};
  }
};
struct Nonzero {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x != V{} ? V{} + 1 : V{};
  }
};
struct Magnitude {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x < V{} ? -x : x;
  }
};
struct Squared {
  template <class V>
  [[gnu::always_inline]] V operator()(V x) const {
    return x * x;
  }
};

// ---- across ----

// Of eight lines' vectors, or of four times two lines': lanes of lines i and i + 4 lie in halves of one.
template <class Op>
[[gnu::always_inline]] inline Whole<float> fold_halves(const Whole<float> (&v)[4]) {
  Whole<float> a = Op()(__builtin_shufflevector(v[0], v[1], 0, 8, 1, 9, 4, 12, 5, 13),
                        __builtin_shufflevector(v[0], v[1], 2, 10, 3, 11, 6, 14, 7, 15));
  Whole<float> b = Op()(__builtin_shufflevector(v[2], v[3], 0, 8, 1, 9, 4, 12, 5, 13),
                        __builtin_shufflevector(v[2], v[3], 2, 10, 3, 11, 6, 14, 7, 15));
  return Op()(__builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13),
              __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15));
}
template <class Op>
[[gnu::always_inline]] inline Whole<float> fold_across(const Whole<float> (&v)[8]) {
  Whole<float> a = fold_halves<Op>({v[0], v[1], v[2], v[3]}), b = fold_halves<Op>({v[4], v[5], v[6], v[7]});
  return Op()(__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11),
              __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15));
}
template <class Op>
[[gnu::always_inline]] inline Whole<double> fold_across(const Whole<double> (&v)[4]) {
  Whole<double> a =
      Op()(__builtin_shufflevector(v[0], v[1], 0, 4, 2, 6), __builtin_shufflevector(v[0], v[1], 1, 5, 3, 7));
  Whole<double> b =
      Op()(__builtin_shufflevector(v[2], v[3], 0, 4, 2, 6), __builtin_shufflevector(v[2], v[3], 1, 5, 3, 7));
  return Op()(__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7));
}

// ---- lines ----

// Results of kSide<T> lines. A last vector that is not full ends with its line's end: of what it shares with the one
// before only the new lanes go in.
template <class T, class Op, class Map>
[[gnu::always_inline]] inline Whole<T> fold_some(const T* x, int64_t n) {
  using V = Whole<T>;
  constexpr int64_t side = kSide<T>;
  V acc[side];
  const int64_t rest = n % side;
  const auto first = lanes_below<V>(rest), old = lanes_below<V>(side - rest);
#pragma GCC unroll 8
  for (int64_t r = 0; r < side; r++) acc[r] = V{} + static_cast<T>(Op::kStart);
  for (int64_t c = 0; c + side <= n; c += side) {
#pragma GCC unroll 8
    for (int64_t r = 0; r < side; r++) acc[r] = Op()(acc[r], Map()(load<V>(x + r * n + c)));
  }
  if (n < side) {
#pragma GCC unroll 8
    for (int64_t r = 0; r < side; r++)
      acc[r] = first ? Op()(acc[r], Map()(load_first<V>(x + r * n, n, first))) : acc[r];
  } else if (rest > 0) {
#pragma GCC unroll 8
    for (int64_t r = 0; r < side; r++) acc[r] = old ? acc[r] : Op()(acc[r], Map()(load<V>(x + r * n + n - side)));
  }
  return fold_across<Op>(acc);
}
// Of eight lines of up to four floats.
template <class Op, class Map>
[[gnu::always_inline]] inline Whole<float> fold_few(const float* x, int64_t n) {
  const Whole<float> start = Whole<float>{} + static_cast<float>(Op::kStart);
  const auto first = lanes_below<Half>(n);
  const auto both = __builtin_shufflevector(first, first, 0, 1, 2, 3, 0, 1, 2, 3);
  Whole<float> acc[4];
#pragma GCC unroll 4
  for (int64_t r = 0; r < 4; r++) {
    Half low = load_first<Half>(x + r * n, n, first), high = load_first<Half>(x + (r + 4) * n, n, first);
    Whole<float> v = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    acc[r] = both ? Op()(start, Map()(v)) : start;
  }
  return fold_halves<Op>(acc);
}

// some(lines) for each kSide<T> of them; the last ones are completed by lines of 0.
template <class T, class Some>
[[gnu::always_inline]] inline void each_side(const void* lines, int64_t count, int64_t n, void* results,
                                             const Some& some) {
  const T* x = static_cast<const T*>(lines);
  T* out = static_cast<T*>(results);
  int64_t i = 0;
  for (; i + kSide<T> <= count; i += kSide<T>) *reinterpret_cast<Whole<T>*>(out + i) = some(x + i * n);
  if (i == count) return;
  T rest[kSide<T> * kShortLine];
  const int64_t there = (count - i) * n;
  __builtin_memcpy(rest, x + i * n, static_cast<size_t>(there) * sizeof(T));
  for (int64_t k = there; k < kSide<T> * n; k++) rest[k] = 0;
  Whole<T> found = some(rest);
  __builtin_memcpy(out + i, &found, static_cast<size_t>(count - i) * sizeof(T));
}

template <class T, class Op, class Map = Itself>
void fold_lines(const void* lines, int64_t count, int64_t n, void* results) {
  if constexpr (sizeof(T) == 4) {
    if (n <= 4)
      return each_side<T>(
          lines, count, n, results, [=](const T* x) __attribute__((always_inline)) { return fold_few<Op, Map>(x, n); });
  }
  each_side<T>(
      lines, count, n, results, [=](const T* x) __attribute__((always_inline)) { return fold_some<T, Op, Map>(x, n); });
}

// Floats in double: a product of some of them may overflow where that of all does not.
[[gnu::always_inline]] inline Half prod_some(const float* x, int64_t n) {
  const int64_t rest = n % 4;
  const auto first = lanes_below<Half>(rest), old = lanes_below<Half>(4 - rest);
  const Half one = Half{} + 1;
  Whole<double> acc[4];
#pragma GCC unroll 4
  for (int64_t r = 0; r < 4; r++) {
    const float* line = x + r * n;
    Half v = one;
    if (n < 4)
      v = first ? load_first<Half>(line, n, first) : one;
    else if (rest > 0)
      v = old ? one : load<Half>(line + n - 4);
    acc[r] = __builtin_convertvector(v, Whole<double>);
  }
  for (int64_t c = 0; c + 4 <= n; c += 4) {
#pragma GCC unroll 4
    for (int64_t r = 0; r < 4; r++) acc[r] *= __builtin_convertvector(load<Half>(x + r * n + c), Whole<double>);
  }
  return __builtin_convertvector(fold_across<MultiplyLanes>(acc), Half);
}
void prod_floats(const void* lines, int64_t count, int64_t n, void* results) {
  each_side<float>(
      lines, count, n, results, [=](const float* x) __attribute__((always_inline)) {
        Half low = prod_some(x, n), high = prod_some(x + 4 * n, n);
        return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
      });
}

template <class T>
void fill(Simd& table, bool wide) {
  auto& lines = table.short_lines;
  lines[rSum][wide] = fold_lines<T, AddLanes>;
  lines[rAmax][wide] = fold_lines<T, LargerLanes>;
  lines[rAmin][wide] = fold_lines<T, SmallerLanes>;
  lines[rNumbers][wide] = fold_lines<T, AddLanes, Number>;
  lines[rNonzeros][wide] = fold_lines<T, AddLanes, Nonzero>;
  lines[rMagnitudes][wide] = fold_lines<T, AddLanes, Magnitude>;
  lines[rSquares][wide] = fold_lines<T, AddLanes, Squared>;
  lines[rAbsMax][wide] = fold_lines<T, LargerLanes, Magnitude>;
  lines[rAbsMin][wide] = fold_lines<T, SmallerLanes, Magnitude>;
}

}  // namespace

void fill_short_folds(Simd& table) {
  fill<float>(table, false);
  fill<double>(table, true);
  table.short_lines[rProd][false] = prod_floats;
  table.short_lines[rProd][true] = fold_lines<double, MultiplyLanes>;
}

}  // namespace cpu::PG_CPU_ISA
