// SPDX-License-Identifier: Apache-2.0
// Reductions of dense blocks (callers pass at most a few thousand elements at a time) and of columns. Lanes accumulate
// in the compute type within a block, blocks in double or int64_t, in a fixed order.
#include "loop.hpp"
#include "perigee/kernels/float16.hpp"
#include "perigee/kernels/math.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

constexpr int64_t kLanes = 64;

using pg::math::is_float;

// What becomes of an element before it is folded in.
struct Itself {
  template <class T>
  T operator()(T x) const {
    return x;
  }
};
struct Number {
  template <class T>
  T operator()(T x) const {
    return x == x ? x : T(0);
  }
};
struct Nonzero {
  template <class T>
  T operator()(T x) const {
    return x != T(0) ? T(1) : T(0);
  }
};
struct Magnitude {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? -x : x;
  }
};
struct Squared {
  template <class T>
  T operator()(T x) const {
    return x * x;
  }
};

template <class Op, class Map = Itself, class T>
T fold(const T* x, int64_t n, T start) {
  if (n < kLanes) {
    T total = start;
    for (int64_t i = 0; i < n; i++) total = Op()(total, Map()(x[i]));
    return total;
  }
  T lane[kLanes];
  for (int64_t j = 0; j < kLanes; j++) lane[j] = Map()(x[j]);
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; j++) lane[j] = Op()(lane[j], Map()(x[i + j]));
  }
  for (int64_t j = 0; i + j < n; j++) lane[j] = Op()(lane[j], Map()(x[i + j]));
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; j++) lane[j] = Op()(lane[j], lane[j + half]);
  }
  return Op()(start, lane[0]);
}

template <class T>
void put(Acc* acc, T value) {
  if constexpr (is_float<T>)
    acc->f = static_cast<double>(value);
  else
    acc->i = static_cast<int64_t>(value);
}
template <class T>
T get(const Acc* acc) {
  if constexpr (is_float<T>)
    return static_cast<T>(acc->f);
  else
    return static_cast<T>(acc->i);
}

template <class T>
void sum(const void* data, int64_t n, int64_t, Acc* acc) {
  const T* x = static_cast<const T*>(data);
  acc->count += n;
  if constexpr (is_float<T>) {
    acc->f += static_cast<double>(fold<pg::math::Add>(x, n, T(0)));
  } else {
    uint64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += static_cast<uint64_t>(static_cast<int64_t>(x[i]));
    acc->i = static_cast<int64_t>(static_cast<uint64_t>(acc->i) + total);
  }
}

template <class T, class Map>
void mapped_sum(const void* data, int64_t n, int64_t, Acc* acc) {
  acc->count += n;
  acc->f += static_cast<double>(fold<pg::math::Add, Map>(static_cast<const T*>(data), n, T(0)));
}

template <class T>
void prod(const void* data, int64_t n, int64_t, Acc* acc) {
  const T* x = static_cast<const T*>(data);
  if (acc->count == 0) put(acc, T(1));
  acc->count += n;
  if constexpr (is_float<T>) {
    double total = acc->f;  // in double: lanes of float could overflow where the product does not
    for (int64_t i = 0; i < n; i++) total *= static_cast<double>(x[i]);
    acc->f = total;
  } else {
    uint64_t total = static_cast<uint64_t>(acc->i);
    for (int64_t i = 0; i < n; i++) total *= static_cast<uint64_t>(static_cast<int64_t>(x[i]));
    acc->i = static_cast<int64_t>(total);
  }
}

template <class Op, class T, class Map = Itself>
void extreme(const void* data, int64_t n, int64_t, Acc* acc) {
  const T* x = static_cast<const T*>(data);
  put(acc, fold<Op, Map>(x, n, acc->count == 0 ? Map()(x[0]) : get<T>(acc)));
  acc->count += n;
}

// i: whether any (all) so far.
template <bool kAll, class T>
void truth(const void* data, int64_t n, int64_t, Acc* acc) {
  const T* x = static_cast<const T*>(data);
  int32_t zeros = 0, others = 0;
  for (int64_t i = 0; i < n; i++) zeros |= x[i] == T(0), others |= x[i] != T(0);
  if (kAll)
    acc->i = (acc->count == 0 || acc->i != 0) && zeros == 0;
  else
    acc->i = acc->i != 0 || others != 0;
  acc->count += n;
}

// f or i: the value; the position is kept in m2's bits. The first of equals wins, a NaN beats all numbers.
template <bool kMax, class T>
void position(const void* data, int64_t n, int64_t base, Acc* acc) {
  const T* x = static_cast<const T*>(data);
  using Op = std::conditional_t<kMax, pg::math::Maximum, pg::math::Minimum>;
  T best = fold<Op>(x, n, x[0]);
  bool first = acc->count == 0;
  T old = first ? best : get<T>(acc);
  acc->count += n;
  bool better = first || (kMax ? best > old : best < old) || (best != best && old == old);
  if (!better) return;
  int64_t at = 0;
  while (at < n && !(x[at] == best || (best != best && x[at] != x[at]))) at++;
  put(acc, best);
  int64_t where = base + at;
  __builtin_memcpy(&acc->m2, &where, sizeof where);
}

// f: mean, m2: sum of squared distances from it. Blocks are merged by Chan's formula.
template <class T>
void moments(const void* data, int64_t n, int64_t, Acc* acc) {
  if (n == 0) return;
  const T* x = static_cast<const T*>(data);
  double total = static_cast<double>(fold<pg::math::Add>(x, n, T(0)));
  double mean = total / static_cast<double>(n);
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t j = 0; j < 8; j++) {
      double d = static_cast<double>(x[i + j]) - mean;
      lane[j] += d * d;
    }
  }
  for (; i < n; i++) {
    double d = static_cast<double>(x[i]) - mean;
    lane[0] += d * d;
  }
  double m2 = ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
  double before = static_cast<double>(acc->count), here = static_cast<double>(n), all = before + here;
  double delta = mean - acc->f;
  acc->m2 += m2 + (before > 0 ? delta * delta * before * here / all : 0.0);
  acc->f = before > 0 ? acc->f + delta * here / all : mean;
  acc->count += n;
}

// f: largest so far, m2: sum of e^(x - f).
template <class T>
void logsumexp(const void* data, int64_t n, int64_t, Acc* acc) {
  if (n == 0) return;
  if (acc->f != acc->f) return;  // NaN stays
  const T* x = static_cast<const T*>(data);
  T top = fold<pg::math::Maximum>(x, n, x[0]);
  double largest = acc->count == 0 || !(static_cast<double>(top) <= acc->f) ? static_cast<double>(top) : acc->f;
  T shift = largest - largest == 0.0 ? static_cast<T>(largest) : T(0);  // infinite: no shift
  T lane[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int64_t j = 0; j < 16; j++) lane[j] += pg::math::exp_of(x[i + j] - shift);
  }
  for (int64_t j = 0; i + j < n; j++) lane[j] += pg::math::exp_of(x[i + j] - shift);
  double total = 0;
  for (int64_t j = 0; j < 16; j++) total += static_cast<double>(lane[j]);
  if (acc->count > 0 && acc->m2 > 0)
    total += acc->m2 * static_cast<double>(__builtin_exp(acc->f - static_cast<double>(shift)));
  acc->f = largest;
  acc->m2 = total;
  acc->count += n;
}

template <class T>
[[gnu::always_inline]] inline T wide(T x) {
  return x;
}
[[gnu::always_inline]] inline float wide(pg::bf16 x) { return pg::to_float(x); }

// Stored: the elements as they lie.
template <class Op, class T, class Stored = T>
void column(const void* data, int64_t stride, int64_t rows, int64_t columns, void* acc) {
  T* __restrict total = static_cast<T*>(acc);
  const Stored* x = static_cast<const Stored*>(data);
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4, x += 4 * stride) {
    for (int64_t j = 0; j < columns; j++) {
      T a = Op()(wide(x[j]), wide(x[stride + j])), b = Op()(wide(x[2 * stride + j]), wide(x[3 * stride + j]));
      total[j] = Op()(total[j], Op()(a, b));
    }
  }
  for (; i < rows; i++, x += stride) {
    for (int64_t j = 0; j < columns; j++) total[j] = Op()(total[j], wide(x[j]));
  }
}

template <class T>
void fill_type(Simd& table, Compute c) {
  table.reduce[rSum][c] = sum<T>;
  table.reduce[rProd][c] = prod<T>;
  table.reduce[rAmax][c] = extreme<pg::math::Maximum, T>;
  table.reduce[rAmin][c] = extreme<pg::math::Minimum, T>;
  table.reduce[rAny][c] = truth<false, T>;
  table.reduce[rAll][c] = truth<true, T>;
  table.reduce[rArgmax][c] = position<true, T>;
  table.reduce[rArgmin][c] = position<false, T>;
  table.column[rAmax][c] = column<pg::math::Maximum, T>;
  table.column[rAmin][c] = column<pg::math::Minimum, T>;
  if constexpr (is_float<T>) {
    table.column[rSum][c] = column<pg::math::Add, T>;
    table.reduce[rVar][c] = moments<T>;
    table.reduce[rLogsumexp][c] = logsumexp<T>;
    table.reduce[rNumbers][c] = mapped_sum<T, Number>;
    table.reduce[rNonzeros][c] = mapped_sum<T, Nonzero>;
    table.reduce[rMagnitudes][c] = mapped_sum<T, Magnitude>;
    table.reduce[rSquares][c] = mapped_sum<T, Squared>;
    table.reduce[rAbsMax][c] = extreme<pg::math::Maximum, T, Magnitude>;
    table.reduce[rAbsMin][c] = extreme<pg::math::Minimum, T, Magnitude>;
  }
}

}  // namespace

void fill_reduce(Simd& table) {
  fill_type<float>(table, kF32);
  fill_type<double>(table, kF64);
  fill_type<int64_t>(table, kI64);
  fill_type<int32_t>(table, kI32);
  table.column_bf16[rSum] = column<pg::math::Add, float, pg::bf16>;
  table.column_bf16[rAmax] = column<pg::math::Maximum, float, pg::bf16>;
  table.column_bf16[rAmin] = column<pg::math::Minimum, float, pg::bf16>;
}

}  // namespace cpu::PG_CPU_ISA
