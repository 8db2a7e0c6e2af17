// SPDX-License-Identifier: Apache-2.0
// cdist and cdist_grad: distances of rows [n, d] to rows [m, d]. The second matrix is turned, [d, m], so that a vector
// holds one element of many of its rows: whatever d is, no vector is half empty and none is summed across.
#include <cmath>
#include <vector>

#include "linalg/dense.hpp"
#include "linalg/isa.hpp"
#include "perigee/kernel.hpp"
#include "simd.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kManyRows = 25, kLongRow = 24;    // from there on products are faster
constexpr int64_t kIfNecessary = 0, kProducts = 1;  // of compute_mode

// 32 bytes: wider ones are taken apart, an element at a time, where there is no AVX-512.
template <class A>
struct LanesOf {
  typedef A type __attribute__((vector_size(32), aligned(sizeof(A)), may_alias));
  typedef std::conditional_t<sizeof(A) == 4, int32_t, int64_t> bits __attribute__((vector_size(32)));
};
template <class A>
using Lanes = typename LanesOf<A>::type;
template <class A>
using Bits = typename LanesOf<A>::bits;
template <class A>
constexpr int64_t kCount = 32 / static_cast<int64_t>(sizeof(A));

template <class A>
PG_INLINE Lanes<A>& lanes(A* p) {
  return *reinterpret_cast<Lanes<A>*>(p);
}
template <class A>
PG_INLINE const Lanes<A>& lanes(const A* p) {
  return *reinterpret_cast<const Lanes<A>*>(p);
}
template <class A>
constexpr auto kSign = static_cast<std::conditional_t<sizeof(A) == 4, int32_t, int64_t>>(uint64_t{1}
                                                                                         << (sizeof(A) * 8 - 1));
template <class A>
PG_INLINE void make_positive(Lanes<A>& t) {
  t = (Lanes<A>)((Bits<A>)t & ~kSign<A>);
}

enum class Order { zero, one, two, most, other };
Order order_of(double p) {
  return p == 0 ? Order::zero : p == 1 ? Order::one : p == 2 ? Order::two : std::isinf(p) ? Order::most : Order::other;
}

// y[i] = x[i]^p, x not negative.
void raise(float* x, double p, int64_t n, float* exponents) {
  std::fill_n(exponents, n, static_cast<float>(p));
  ::cpu::simd->binary[::cpu::pPow][::cpu::kF32](x, exponents, x, n);
}
void raise(double* x, double p, int64_t n, double* exponents) {
  std::fill_n(exponents, n, p);
  ::cpu::simd->binary[::cpu::pPow][::cpu::kF64](x, exponents, x, n);
}

void root(float* x, int64_t n) { ::cpu::simd->unary[::cpu::pSqrt][::cpu::kF32](x, x, n, nullptr); }
void root(double* x, int64_t n) { ::cpu::simd->unary[::cpu::pSqrt][::cpu::kF64](x, x, n, nullptr); }

// Where the matrices of a batch begin, in matrices, for operands whose leading axes broadcast.
std::vector<int64_t> starts_of(const pg_tensor& out, const pg_tensor& t) {
  int64_t count = 1;
  for (uint32_t i = 0; i + 2 < out.rank; i++) count *= out.shape[i];
  std::vector<int64_t> starts(static_cast<size_t>(count), 0);
  int64_t inner = 1, step = 1;  // of the output, of the operand
  for (uint32_t back = 3; back <= out.rank; back++) {
    int64_t size = out.shape[out.rank - back], own = back <= t.rank ? t.shape[t.rank - back] : 1;
    if (own > 1)
      for (int64_t b = 0; b < count; b++) starts[static_cast<size_t>(b)] += b / inner % size * step;
    inner *= size, step *= own;
  }
  return starts;
}

int64_t matrices(const pg_tensor& t) {
  int64_t count = 1;
  for (uint32_t i = 0; i + 2 < t.rank; i++) count *= t.shape[i];
  return count;
}

// An operand [..., rows, columns], read in the type that is computed in.
struct Operand {
  Operand() = default;
  Operand(const pg_tensor& out, const pg_tensor& t)
      : dense(t),
        starts(starts_of(out, t)),
        count(matrices(t)),
        rows(t.shape[t.rank - 2]),
        columns(t.shape[t.rank - 1]) {}
  int64_t elements() const { return count * rows * columns; }
  uint64_t bytes() const { return static_cast<uint64_t>(elements()) * 8; }
  // Rows of the turned matrix begin a whole number of vectors apart.
  int64_t turned_step() const { return (rows + 15) / 16 * 16; }
  uint64_t turned_bytes() const { return static_cast<uint64_t>(count * columns * turned_step()) * 8; }

  template <class T, class A>
  const A* read(const void* data, Scratch& scratch) const {
    auto* x = static_cast<const T*>(dense.get(data, scratch));
    if constexpr (std::is_same_v<T, A>) {
      return x;
    } else {
      auto* wide = static_cast<A*>(scratch.take(bytes()));
      for (int64_t i = 0, n = elements(); i < n; i++) wide[i] = load<T>(x[i]);
      return wide;
    }
  }
  // [count, columns, turned_step()], 0 behind the rows.
  template <class A>
  const A* turn(const A* x, Scratch& scratch) const {
    auto* out = static_cast<A*>(scratch.take(turned_bytes()));
    const int64_t step = turned_step();
    for (int64_t b = 0; b < count; b++, x += rows * columns) {
      A* target = out + b * columns * step;
      std::fill_n(target, columns * step, A(0));
      for (int64_t j = 0; j < rows; j++)
        for (int64_t k = 0; k < columns; k++) target[k * step + j] = x[j * columns + k];
    }
    return out;
  }
  void reserve(Scratch& scratch, bool converts, bool turns) const {
    dense.get(nullptr, scratch);
    if (converts) scratch.take(bytes());
    if (turns) scratch.take(turned_bytes());
  }

  DenseInput dense;
  std::vector<int64_t> starts;
  int64_t count = 0, rows = 0, columns = 0;
};

bool is_wide(uint32_t dtype) { return dtype == PG_F32 || dtype == PG_F64; }

// ---- distances ----

// total, with one difference more.
template <Order order, class A>
PG_INLINE void add(Lanes<A>& total, Lanes<A>& t) {
  const Lanes<A> none = {}, one = none + A(1);
  if constexpr (order == Order::two) {
    total += t * t;
  } else if constexpr (order == Order::zero) {
    total += t != none ? one : none;
  } else if constexpr (order == Order::one) {
    make_positive<A>(t);
    total += t;
  } else {
    make_positive<A>(t);
    total = (t > total) | (t != t) ? t : total;
  }
}

// kRows rows of x against kCount * kWidth rows of the turned y.
template <Order order, int kRows, int kWidth, class A>
PG_INLINE void tile(const A* x, int64_t d, const A* y, int64_t step, A* out, int64_t out_step) {
  Lanes<A> total[kRows][kWidth] = {};
  for (int64_t k = 0; k < d; k++) {
    Lanes<A> column[kWidth];
    for (int w = 0; w < kWidth; w++) column[w] = lanes(y + k * step + w * kCount<A>);
    for (int r = 0; r < kRows; r++) {
      const Lanes<A> own = Lanes<A>{} + x[r * d + k];
      for (int w = 0; w < kWidth; w++) {
        Lanes<A> t = own - column[w];
        add<order, A>(total[r][w], t);
      }
    }
  }
  for (int r = 0; r < kRows; r++)
    for (int w = 0; w < kWidth; w++) lanes(out + r * out_step + w * kCount<A>) = total[r][w];
}

template <Order order, int kRows, class A>
PG_INLINE void row_tiles(const A* x, int64_t d, const A* y, int64_t step, A* out) {
  int64_t j = 0;
  for (; j + 4 * kCount<A> <= step; j += 4 * kCount<A>) tile<order, kRows, 4>(x, d, y + j, step, out + j, step);
  for (; j < step; j += 2 * kCount<A>) tile<order, kRows, 2>(x, d, y + j, step, out + j, step);
}

// Any order: sums of powers, a row of differences at a time.
template <class A>
void row_of_powers(const A* x, int64_t d, const A* y, int64_t step, double p, A* out, A* spare) {
  std::fill_n(out, step, A(0));
  for (int64_t k = 0; k < d; k++, y += step) {
    for (int64_t j = 0; j < step; j++) spare[j] = std::abs(x[k] - y[j]);
    raise(spare, p, step, spare + step);
    for (int64_t j = 0; j < step; j++) out[j] += spare[j];
  }
  raise(out, 1 / p, step, spare);
}

class Distances final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    const pg_tensor &x = call.in(0), &y = call.in(1);
    uint32_t dtype = dtype_of(x);
    with_float(dtype, [](auto) {});
    if (dtype_of(y) != dtype || dtype_of(call.out(0)) != dtype) fail_argument("cdist takes floats of one dtype");
    int64_t n = x.shape[x.rank - 2], m = y.shape[y.rank - 2], d = x.shape[x.rank - 1];
    auto mode = call.attr<int64_t>("compute_mode");
    bool pays = mode == kIfNecessary && (n > kManyRows || m > kManyRows) && d > kLongRow;
    if (call.attr<double>("p") == 2 && (mode == kProducts || pays))
      fail(PG_E_NOT_SUPPORTED, "cdist is computed by products here");
  }
  Distances(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        p_(call.attr<double>("p")),
        x_(call.out(0), call.in(0)),
        y_(call.out(0), call.in(1)) {
    Scratch scratch;
    x_.reserve(scratch, !is_wide(dtype_), false), y_.reserve(scratch, !is_wide(dtype_), true);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (static_cast<int64_t>(x_.starts.size()) * x_.rows * y_.rows == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      switch (order_of(p_)) {
        case Order::zero: return run<T, Order::zero>(launch);
        case Order::one: return run<T, Order::one>(launch);
        case Order::two: return run<T, Order::two>(launch);
        case Order::most: return run<T, Order::most>(launch);
        case Order::other: return run<T, Order::other>(launch);
      }
    });
  }

 private:
  template <class T, Order order>
  void run(const pg_launch& launch) {
    using A = Accumulator<T>;
    Scratch scratch(host_pointer(launch.workspace));
    const A* x = x_.read<T, A>(input(launch, 0), scratch);
    const A* y = y_.turn(y_.read<T, A>(input(launch, 1), scratch), scratch);
    T* out = output<T>(launch, 0);
    const int64_t n = x_.rows, m = y_.rows, d = x_.columns, step = y_.turned_step();
    const int64_t batches = static_cast<int64_t>(x_.starts.size());
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, step * d));
    vector_for(
        batches * n, grain, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
          std::vector<A> rows(static_cast<size_t>(4 * step));
          for (int64_t i = begin, count = 1; i < end; i += count) {
            const int64_t b = i / n;
            const A* from = x + (x_.starts[static_cast<size_t>(b)] * n + i % n) * d;
            const A* to = y + y_.starts[static_cast<size_t>(b)] * d * step;
            A* result = rows.data();
            count = std::min<int64_t>({2, end - i, (b + 1) * n - i});
            if constexpr (order == Order::other) {
              count = 1;
              row_of_powers(from, d, to, step, p_, result, result + step);
            } else if (count == 2) {
              row_tiles<order, 2>(from, d, to, step, result);
            } else {
              row_tiles<order, 1>(from, d, to, step, result);
            }
            if (order == Order::two) root(result, count * step);
            for (int64_t r = 0; r < count; r++) {
              T* target = out + (i + r) * m;
              for (int64_t j = 0; j < m; j++) target[j] = store<T>(result[r * step + j]);
            }
          }
        });
  }

  uint32_t dtype_;
  double p_;
  Operand x_, y_;
};

// ---- gradients ----

class DistanceGradient final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    uint32_t dtype = dtype_of(call.in(0));
    with_float(dtype, [](auto) {});
    for (uint32_t i = 1; i < 4; i++)
      if (dtype_of(call.in(i)) != dtype) fail_argument("cdist_grad takes floats of one dtype");
  }
  DistanceGradient(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        p_(call.attr<double>("p")),
        d_(call.out(0), call.in(0)),
        x_(call.out(0), call.in(1)),
        y_(call.out(0), call.in(2)),
        z_(call.out(0), call.in(3)) {
    Scratch scratch;
    for (const Operand* each : {&d_, &x_, &y_, &z_}) each->reserve(scratch, !is_wide(dtype_), each == &y_);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (static_cast<int64_t>(x_.starts.size()) * x_.rows * x_.columns == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      switch (order_of(p_)) {
        case Order::zero: return;
        case Order::one: return run<T, Order::one>(launch);
        case Order::two: return run<T, Order::two>(launch);
        case Order::most: return run<T, Order::most>(launch);
        case Order::other: return run<T, Order::other>(launch);
      }
    });
  }

 private:
  static constexpr int kTile = 4;  // rows that share what is read of the others

  // w[j] = d[j] z[j]^(1 - p), 0 where z is 0 and behind the last.
  template <Order order, class A>
  void weigh(const A* d, const A* z, int64_t m, int64_t step, A* w, A* spare) const {
    std::fill_n(w, step, A(0));
    if constexpr (order == Order::one || order == Order::most) {
      std::copy_n(d, m, w);
    } else if constexpr (order == Order::two) {
      for (int64_t j = 0; j < m; j++) w[j] = z[j] == 0 ? A(0) : d[j] / z[j];
    } else {
      for (int64_t j = 0; j < m; j++) w[j] = z[j] == 0 ? A(1) : z[j];
      raise(w, 1 - p_, m, spare);
      for (int64_t j = 0; j < m; j++) w[j] = z[j] == 0 ? A(0) : w[j] * d[j];
    }
  }

  // out[r][k] = sum of w[r][j] S(x[r][k] - y[k][j]); z: the distances, -1 behind the last.
  template <Order order, int kRows, class A, class T>
  PG_INLINE void pull(const A* x, int64_t d, const A* y, const A* w, const A* z, int64_t step, T* out) const {
    const Lanes<A> none = {};
    for (int64_t k = 0; k < d; k++, y += step) {
      Lanes<A> own[kRows], sums[kRows][2] = {};
      for (int r = 0; r < kRows; r++) own[r] = none + x[r * d + k];
      for (int64_t j = 0; j < step; j += 2 * kCount<A>) {
        for (int half = 0; half < 2; half++) {
          const int64_t at = j + half * kCount<A>;
          const Lanes<A> column = lanes(y + at);
          for (int r = 0; r < kRows; r++) {
            Lanes<A> t = own[r] - column;
            const Lanes<A> weight = lanes(w + r * step + at);
            if constexpr (order == Order::two) {
              sums[r][half] += weight * t;
            } else {
              auto part = ((Bits<A>)weight ^ ((Bits<A>)t & kSign<A>)) & (Bits<A>)(t != none);
              if constexpr (order == Order::most) {
                make_positive<A>(t);
                part &= (Bits<A>)(t == lanes(z + r * step + at));
              }
              sums[r][half] += (Lanes<A>)part;
            }
          }
        }
      }
      for (int r = 0; r < kRows; r++) {
        sums[r][0] += sums[r][1];
        A total = 0;
        for (int64_t l = 0; l < kCount<A>; l++) total += sums[r][0][l];
        out[r * d + k] = store<T>(total);
      }
    }
  }

  template <class A>
  A pull_powers(A x, const A* y, const A* w, int64_t step, A* spare) const {
    for (int64_t j = 0; j < step; j++) spare[j] = x == y[j] ? A(1) : std::abs(x - y[j]);
    raise(spare, p_ - 1, step, spare + step);
    double total = 0;
    for (int64_t j = 0; j < step; j++)
      if (x != y[j]) total += static_cast<double>(w[j] * (x < y[j] ? -spare[j] : spare[j]));
    return static_cast<A>(total);
  }

  template <class T, Order order>
  void run(const pg_launch& launch) {
    using A = Accumulator<T>;
    Scratch scratch(host_pointer(launch.workspace));
    const A* dy = d_.read<T, A>(input(launch, 0), scratch);
    const A* x = x_.read<T, A>(input(launch, 1), scratch);
    const A* y = y_.turn(y_.read<T, A>(input(launch, 2), scratch), scratch);
    const A* z = z_.read<T, A>(input(launch, 3), scratch);
    T* out = output<T>(launch, 0);
    const int64_t n = x_.rows, m = y_.rows, d = x_.columns, step = y_.turned_step();
    const int64_t batches = static_cast<int64_t>(x_.starts.size());
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, step * d));
    vector_for(
        batches * n, grain, [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
          std::vector<A> room(static_cast<size_t>((2 * kTile + 2) * step));
          A *w = room.data(), *far = w + kTile * step, *spare = far + kTile * step;
          for (int64_t i = begin, count = 1; i < end; i += count) {
            const auto b = static_cast<size_t>(i / n);
            const int64_t row = i % n;
            const A* own = x + (x_.starts[b] * n + row) * d;
            const A* others = y + y_.starts[b] * d * step;
            count = order != Order::other && std::min(end - i, n - row) >= kTile ? kTile : 1;
            for (int64_t r = 0; r < count; r++) {
              const A* distance = z + (z_.starts[b] * n + row + r) * m;
              weigh<order>(dy + (d_.starts[b] * n + row + r) * m, distance, m, step, w + r * step, spare);
              if (order != Order::most) continue;
              std::copy_n(distance, m, far + r * step);
              std::fill_n(far + r * step + m, step - m, A(-1));
            }
            T* target = out + i * d;
            if constexpr (order == Order::other) {
              for (int64_t k = 0; k < d; k++)
                target[k] = store<T>(pull_powers(own[k], others + k * step, w, step, spare));
            } else if (count == kTile) {
              pull<order, kTile>(own, d, others, w, far, step, target);
            } else {
              pull<order, 1>(own, d, others, w, far, step, target);
            }
          }
        });
  }

  uint32_t dtype_;
  double p_;
  Operand d_, x_, y_, z_;
};

PG_KERNEL("cdist", Distances);
PG_KERNEL("cdist_grad", DistanceGradient);

}  // namespace
}  // namespace pg::cpu
