// SPDX-License-Identifier: Apache-2.0
// The own blocked product at its edges: panels, blocks, depths that are added up in memory, threads, kept operands.
#include <omp.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "harness.hpp"

using namespace harness;

namespace {

const uint32_t kNumbers[] = {PG_F32, PG_F64, PG_BF16, PG_F16, PG_I64, PG_I32, PG_I8, PG_U8};
const uint32_t kRealFloats[] = {PG_F32, PG_F64, PG_BF16, PG_F16};

double wrapped(double x, uint32_t dtype) {
  auto whole = static_cast<int64_t>(x);
  switch (dtype) {
    case PG_I8: return static_cast<int8_t>(whole);
    case PG_U8: return static_cast<uint8_t>(whole);
    default: return x;
  }
}

double activated(double x, int activation) {
  if (activation == 0) return x < 0 ? 0 : x;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// One product, and what it should be at a position of its result.
struct Case {
  uint32_t dtype;
  int64_t m, n, k;
  bool tx, ty;
  Tensor x, y, z;
  Case(uint32_t dtype, int64_t m, int64_t n, int64_t k, bool tx, bool ty, Layout lx, Layout ly)
      : dtype(dtype),
        m(m),
        n(n),
        k(k),
        tx(tx),
        ty(ty),
        x(dtype, tx ? Dims{k, m} : Dims{m, k}, lx),
        y(dtype, ty ? Dims{n, k} : Dims{k, n}, ly),
        z(dtype, {m, n}) {
    x.random(), y.random();
  }
  double expected(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < k; p++) sum += (tx ? x.at({p, i}) : x.at({i, p})) * (ty ? y.at({j, p}) : y.at({p, j}));
    return wrapped(sum, dtype);
  }
  std::vector<Attr> attrs() const { return {Attr::flag("transpose_x", tx), Attr::flag("transpose_y", ty)}; }
  // Every element of a small result, some of a large one.
  void check() {
    run("matmul", attrs(), {&x, &y}, {&z});
    bool all = m * n * k < 40000;
    int64_t count = all ? m * n : std::max<int64_t>(40, 40000 / k);
    for (int64_t t = 0; t < count; t++) {
      int64_t at = all ? t : t < 4 ? (t % 2 * (m - 1)) * n + t / 2 * (n - 1) : between(0, m * n - 1);
      double got = z.get(at), want = expected(at / n, at % n);
      if (std::fabs(got - want) <= tolerance(dtype, k) * (1 + std::fabs(want))) continue;
      FAIL(pg::dtype_name(dtype) << " " << m << " x " << n << " x " << k << (tx ? " x^T" : "") << (ty ? " y^T" : "")
                                 << ": element " << at << " is " << got << ", expected " << want);
    }
    SUCCEED();
  }
};

// The harness makes no special float16.
void put(Tensor& t, int64_t index, double value, uint16_t half) {
  if (t.dtype != PG_F16) return t.set(index, value);
  reinterpret_cast<uint16_t*>(t.storage.data())[t.position(index)] = half;
}

struct Threads {  // of kernels that are prepared while it lives
  int before = omp_get_max_threads();
  explicit Threads(int count) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before); }
};

}  // namespace

TEST_CASE("matmul: edges of panels and blocks") {
  for (uint32_t dtype : kNumbers) {
    for (int64_t e : {1, 5, 6, 7, 11, 12, 13, 15, 16, 17, 31, 33, 383, 384, 385, 769}) {
      for (int way = 0; way < 4; way++) {
        bool tx = way % 2 != 0, ty = way / 2 != 0;
        Case(dtype, e, 33, 17, tx, ty, Layout::kDense, Layout::kDense).check();
        Case(dtype, 33, e, 17, tx, ty, Layout::kDense, any_layout()).check();
        Case(dtype, 7, 49, e, tx, ty, any_layout(), Layout::kDense).check();
        Case(dtype, 70, 40, e, tx, ty, any_layout(), any_layout()).check();
      }
    }
  }
}

TEST_CASE("matmul: depths that are added up in memory, and a b that is packed in passes") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16, PG_I32}) {
    for (int64_t k : {1025, 2048, 2049, 4100}) {
      Case(dtype, 13, 40, k, false, true, Layout::kDense, Layout::kDense).check();
      Case(dtype, 50, 600, k, true, false, Layout::kDense, Layout::kDense).check();
    }
    Case(dtype, 9, 2100, 4100, false, true, Layout::kDense, Layout::kDense).check();
  }
}

TEST_CASE("matmul: the same bits by any number of threads, and with b kept") {
  for (uint32_t dtype : kRealFloats) {
    for (Dims shape :
         {Dims{64, 300, 200}, Dims{500, 90, 385}, Dims{33, 700, 2100}, Dims{1000, 20, 64}, Dims{5, 640, 512}}) {
      Case c(dtype, shape[0], shape[1], shape[2], false, true, Layout::kDense, Layout::kDense);
      std::vector<unsigned char> bits;
      for (int threads : {1, 2, 3, 5}) {
        Threads limit(threads);
        Prepared kernel("matmul", c.attrs(), {&c.x, &c.y}, {&c.z});
        kernel.launch();
        if (bits.empty()) bits = c.z.storage;
        bool same = bits == c.z.storage;
        INFO(pg::dtype_name(dtype) << " " << c.m << " x " << c.n << " x " << c.k << ", threads " << threads);
        if (dtype == PG_F32 || (dtype == PG_BF16 && __builtin_cpu_supports("avx512f"))) continue;  // oneDNN's
        CHECK(same);
        if (!kernel.packs()) continue;
        kernel.pack(), kernel.launch();
        CHECK(bits == c.z.storage);
      }
    }
  }
}

TEST_CASE("matmul: a b that outgrows the caches is packed depth by depth, with the bits of a kept one") {
  for (uint32_t dtype : {PG_F32, PG_F64}) {
    for (bool turned : {false, true}) {
      Case c(dtype, 132, 640, 1700, turned, false, Layout::kDense, Layout::kDense);
      c.check();
      std::vector<unsigned char> bits;
      for (int threads : {1, 2, 3}) {
        Threads limit(threads);
        Prepared kernel("matmul", c.attrs(), {&c.x, &c.y}, {&c.z});
        kernel.launch();
        if (bits.empty()) bits = c.z.storage;
        if (dtype == PG_F32 && !__builtin_cpu_supports("avx512f")) continue;  // oneDNN's
        CHECK(bits == c.z.storage);
        if (!kernel.packs()) continue;
        kernel.pack(), kernel.launch();
        CHECK(bits == c.z.storage);
      }
    }
  }
}

TEST_CASE("linear: rounded once, and to nearest") {
  for (uint32_t dtype : {PG_BF16, PG_F16}) {
    for (Dims shape : {Dims{1, 70, 385}, Dims{3, 70, 385}, Dims{40, 37, 385}, Dims{40, 64, 2100}}) {
      int64_t m = shape[0], n = shape[1], k = shape[2];
      Tensor x(dtype, {m, k}), w(dtype, {n, k}), bias(dtype, {n}, Layout::kStepped), y(dtype, {m, n});
      for (Tensor* t : {&x, &w, &bias}) {  // sums of small integers are exact in float32
        for (int64_t i = 0; i < t->size(); i++) t->set(i, static_cast<double>(between(-3, 3)));
      }
      run("linear", {}, {&x, &w, &bias}, {&y});
      for (int64_t i = 0; i < y.size(); i++) {
        double sum = bias.get(i % n);
        for (int64_t p = 0; p < k; p++) sum += x.get(i / n * k + p) * w.get(i % n * k + p);
        double half = sum == 0 ? 0 : std::ldexp(1, std::ilogb(sum) - (dtype == PG_BF16 ? 8 : 11));
        if (std::fabs(y.get(i) - sum) > half) FAIL("element " << i << " is " << y.get(i) << ", expected " << sum);
      }
    }
  }
}

TEST_CASE("linear: bias and activation behind the sums") {
  for (uint32_t dtype : kRealFloats) {
    for (int64_t m : {1, 4, 7, 40}) {
      for (int64_t n : {5, 16, 50}) {
        for (int64_t k : {40, m == 7 ? 2100 : 300}) {
          Tensor x(dtype, {m, k}, any_layout()), w(dtype, {n, k}, any_layout()), y(dtype, {m, n});
          Tensor bias(dtype, {n}, n == 5 ? Layout::kStepped : Layout::kDense);
          x.random(-0.2, 0.2), w.random(), bias.random();
          for (int activation : {0, 1}) {
            run("linear_activation", {Attr::integer("activation", activation)}, {&x, &w, &bias}, {&y});
            std::vector<double> expected;
            for (int64_t i = 0; i < m * n; i++) {
              double sum = bias.get(i % n);
              for (int64_t p = 0; p < k; p++) sum += x.at({i / n, p}) * w.at({i % n, p});
              expected.push_back(activated(sum, activation));
            }
            check_close(y, expected, 2 * tolerance(dtype, k), "linear_activation");
          }
        }
      }
    }
  }
}

TEST_CASE("matmul: NaN and infinity stay in their rows and columns") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (uint32_t dtype : kRealFloats) {
    for (int64_t m : {2, 8, 77}) {
      Tensor x(dtype, {m, 60}), y(dtype, {60, 50}), z(dtype, {m, 50});
      x.fill(1), y.fill(1);
      put(x, (m - 1) * 60 + 59, nan, 0x7e00), put(y, 59 * 50 + 49, infinity, 0x7c00);
      run("matmul", {Attr::flag("transpose_x", false), Attr::flag("transpose_y", false)}, {&x, &y}, {&z});
      for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < 50; j++) {
          double got = z.get(i * 50 + j);
          bool right = i == m - 1 ? std::isnan(got) : j == 49 ? got == infinity : got == 60;
          if (!right) FAIL(pg::dtype_name(dtype) << ": " << i << ", " << j << " is " << got);
        }
      }
    }
  }
}
