// SPDX-License-Identifier: Apache-2.0
// What reductions compute, as reduce.cuh wants it. A few elements at a time are combined in the compute type, as a
// tree; the rest in double or int64_t.
#pragma once

#include "access.cuh"
#include "group.cuh"
#include "perigee/kernels/math.hpp"

namespace cuda {

template <class S>
inline constexpr bool kIsFloat = std::is_floating_point_v<typename Access<S>::C>;

// Writes a result of storage S's reduction: in S, or in `dtype` where S leaves that open.
template <class S, class T>
__device__ __forceinline__ void put_result(uint32_t dtype, void* out, int64_t at, T value) {
  char* base = static_cast<char*>(out);
  if constexpr (std::is_same_v<S, AnyFloat>) {
    set_any_float(dtype, base + at * Access<S>::bytes(dtype), value);
  } else if constexpr (!kIsFloat<S>) {
    set_any_int(dtype, base + at * Access<AnyInt>::bytes(dtype), static_cast<int64_t>(value));
  } else {
    reinterpret_cast<S*>(base)[at] = to_storage<S>(dtype, value);
  }
}

template <class S>
struct ReducerOf {
  using Storage = S;
  using C = typename Access<S>::C;
  static constexpr int kOperands = 1;
  void* out = nullptr;
  uint32_t dtype = 0;  // of the result
};

// Sum, or mean. Integers wrap around.
template <class S>
struct SumOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = std::conditional_t<kIsFloat<S>, double, uint64_t>;
  bool mean = false;
  double count = 0;  // of elements

  __device__ void start(State& s) const { s = 0; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    if constexpr (kIsFloat<S>) return static_cast<double>(tree_sum(values[0]));
    State s = 0;
    for (int j = 0; j < M; j++) s += static_cast<uint64_t>(static_cast<int64_t>(values[0][j]));
    return s;
  }
  __device__ void merge(State& into, const State& other) const { into += other; }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    if constexpr (kIsFloat<S>)
      put_result<S>(this->dtype, this->out, at, mean ? s / count : s);
    else
      put_result<S>(this->dtype, this->out, at, static_cast<int64_t>(s));
  }
};

// What norms, and sums without NaN, are made of: sums and extremes of a function of the elements.
enum class Measure : uint8_t { kNumbers, kNonzeros, kMagnitudes, kSquares, kLargest, kLeast };

template <class S>
struct MeasureOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = double;
  Measure measure = Measure::kNumbers;

  __device__ bool extreme() const { return measure >= Measure::kLargest; }
  __device__ C map(C x) const {
    switch (measure) {
      case Measure::kNumbers: return x == x ? x : C(0);
      case Measure::kNonzeros: return x != C(0) ? C(1) : C(0);
      case Measure::kSquares: return x * x;
      case Measure::kLeast: return -std::fabs(x);
      default: return std::fabs(x);
    }
  }
  __device__ void start(State& s) const {
    s = measure == Measure::kLeast ? -std::numeric_limits<double>::infinity() : 0;
  }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    C mapped[M];
    for (int j = 0; j < M; j++) mapped[j] = map(values[0][j]);
    if (!extreme()) return static_cast<double>(tree_sum(mapped));
    C most = mapped[0];
    for (int j = 1; j < M; j++) most = pg::math::Maximum()(most, mapped[j]);
    return static_cast<double>(most);
  }
  __device__ void merge(State& into, const State& other) const {
    into = extreme() ? pg::math::Maximum()(into, other) : into + other;
  }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    double value = measure == Measure::kSquares ? sqrt(s) : measure == Measure::kLeast ? -s : s;
    put_result<S>(this->dtype, this->out, at, value);
  }
};

// Products; floats in double, where lanes do not overflow before the whole does.
template <class S>
struct ProductOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = std::conditional_t<kIsFloat<S>, double, uint64_t>;

  __device__ void start(State& s) const { s = 1; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    State s = 1;
    for (int j = 0; j < M; j++) s *= static_cast<State>(values[0][j]);
    return s;
  }
  __device__ void merge(State& into, const State& other) const { into *= other; }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    if constexpr (kIsFloat<S>)
      put_result<S>(this->dtype, this->out, at, s);
    else
      put_result<S>(this->dtype, this->out, at, static_cast<int64_t>(s));
  }
};

// Largest element, or smallest: of numbers turned round. NaN wins.
template <class S>
struct ExtremeOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = C;
  bool smallest = false;

  __device__ C turn(C x) const {
    if constexpr (kIsFloat<S>)
      return smallest ? -x : x;
    else
      return smallest ? ~x : x;
  }
  __device__ void start(State& s) const {
    if constexpr (kIsFloat<S>)
      s = -std::numeric_limits<C>::infinity();
    else
      s = std::numeric_limits<C>::lowest();
  }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    State s = turn(values[0][0]);
    for (int j = 1; j < M; j++) merge(s, turn(values[0][j]));
    return s;
  }
  __device__ void merge(State& into, const State& other) const { into = pg::math::Maximum()(into, other); }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    put_result<S>(this->dtype, this->out, at, turn(s));
  }
};

template <class C>
struct Placed {
  int64_t place;
  C value;
};
// Position of the largest element, or smallest; the first of equal ones. NaN wins.
template <class S>
struct PlaceOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = Placed<C>;
  bool smallest = false;

  __device__ C turn(C x) const { return ExtremeOf<S>{{}, smallest}.turn(x); }
  __device__ void start(State& s) const {
    ExtremeOf<S>{{}, false}.start(s.value);
    s.place = std::numeric_limits<int64_t>::max();
  }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place& place) const {
    C best = turn(values[0][0]);
    int which = 0;
#pragma unroll
    for (int j = 1; j < M; j++) {  // places rise, so that the first of equal ones stays
      C next = turn(values[0][j]);
      bool better = pg::math::is_nan(best) ? false : pg::math::is_nan(next) || next > best;
      best = better ? next : best;
      which = better ? j : which;
    }
    return {place(which), best};
  }
  __device__ void merge(State& into, const State& other) const {
    bool old_nan = pg::math::is_nan(into.value), new_nan = pg::math::is_nan(other.value);
    bool equal = old_nan ? new_nan : other.value == into.value;
    bool better = old_nan ? false : new_nan || other.value > into.value;
    if (better || (equal && other.place < into.place)) into = other;
  }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    put_result<int64_t>(PG_I64, this->out, at, s.place);
  }
};

// Whether any element, all elements, are not zero. S is an unsigned integer of the element's size; mask: the bits that
// tell numbers from zero.
template <class S>
struct TruthOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = uint32_t;  // whether an element was found that decides
  bool all = false;
  S mask = 0;

  __device__ void start(State& s) const { s = 0; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    State s = 0;
    for (int j = 0; j < M; j++) s |= ((static_cast<S>(values[0][j]) & mask) != 0) != all;
    return s;
  }
  __device__ void merge(State& into, const State& other) const { into |= other; }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    static_cast<uint8_t*>(this->out)[at] = (s != 0) != all;
  }
};

struct Moments {
  double count, mean, squares;  // squares: sum of squared distances from the mean
};

// Moments are exact to rounding whatever the mean: of a few elements around the first of them, then merged (Chan,
// Golub, LeVeque 1983).
template <class S>
struct MomentsOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = Moments;

  __device__ void start(State& s) const { s = {0, 0, 0}; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    C shift = values[0][0], distances[M], squares[M];
    for (int j = 0; j < M; j++) distances[j] = values[0][j] - shift;
    C mean = tree_sum(distances) * C(1.0 / M);
    for (int j = 0; j < M; j++) squares[j] = (distances[j] - mean) * (distances[j] - mean);
    return {M, static_cast<double>(shift) + static_cast<double>(mean), static_cast<double>(tree_sum(squares))};
  }
  __device__ void merge(State& into, const State& other) const {
    double count = into.count + other.count, share = count == 0 ? 0 : other.count / count;
    double distance = other.mean - into.mean;
    into.squares += other.squares + distance * distance * into.count * share;
    into.mean = into.count == 0 ? other.mean : into.mean + distance * share;
    into.count = count;
  }
};

template <class S>
struct VarianceOf : MomentsOf<S> {
  double correction = 0;
  bool root = false;

  __device__ void finish(int64_t, int64_t at, const Moments& s) const {
    double freedom = s.count - correction, variance = s.squares / (freedom > 0 ? freedom : 0);
    put_result<S>(this->dtype, this->out, at, root ? sqrt(variance) : variance);
  }
};

// log(sum(exp(x))): the largest so far, and the sum of e^(x - largest). Infinities are not subtracted.
template <class C>
struct Powers {
  double sum;
  C top;
};
template <class C>
__device__ __forceinline__ C power_shift(C top) {
  return std::fabs(top) == std::numeric_limits<C>::infinity() ? C(0) : top;
}
template <class C>
__device__ __forceinline__ void merge_powers(Powers<C>& into, const Powers<C>& other) {
  C top = pg::math::Maximum()(into.top, other.top), shift = power_shift(top);
  auto scaled = [&](const Powers<C>& p) {
    return p.sum == 0 || p.top == top ? p.sum
                                      : p.sum * static_cast<double>(pg::math::exp_of(power_shift(p.top) - shift));
  };
  into = {scaled(into) + scaled(other), top};
}
template <int M, class C>
__device__ __forceinline__ Powers<C> powers_of(const C (&values)[M]) {
  C top = values[0], powers[M];
  for (int j = 1; j < M; j++) top = pg::math::Maximum()(top, values[j]);
  C shift = power_shift(top);
  for (int j = 0; j < M; j++) powers[j] = pg::math::exp_of(values[j] - shift);
  return {static_cast<double>(tree_sum(powers)), top};
}

template <class S>
struct LogSumExpOf : ReducerOf<S> {
  using C = typename Access<S>::C;
  using State = Powers<C>;

  __device__ void start(State& s) const { s = {0, -std::numeric_limits<C>::infinity()}; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[1][M], int64_t, const Place&) const {
    return powers_of(values[0]);
  }
  __device__ void merge(State& into, const State& other) const { merge_powers(into, other); }
  __device__ void finish(int64_t, int64_t at, const State& s) const {
    put_result<S>(this->dtype, this->out, at, static_cast<double>(power_shift(s.top)) + log(s.sum));
  }
};

}  // namespace cuda
