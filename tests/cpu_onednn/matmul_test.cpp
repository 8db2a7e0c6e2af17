// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "harness.hpp"

using namespace harness;

namespace {

const uint32_t kDtypes[] = {PG_F32, PG_F64, PG_BF16, PG_F16, PG_I64, PG_I32, PG_I8, PG_U8};

// Batched reference with broadcasting over leading axes.
void check_matmul(uint32_t dtype, Dims batch_x, Dims batch_y, int64_t m, int64_t n, int64_t k, bool tx, bool ty,
                  Layout lx, Layout ly) {
  Dims xs = batch_x, ys = batch_y, zs;
  xs.insert(xs.end(), {tx ? k : m, tx ? m : k});
  ys.insert(ys.end(), {ty ? n : k, ty ? k : n});
  size_t rank = std::max(batch_x.size(), batch_y.size());
  for (size_t i = 0; i < rank; i++) {
    size_t from_x = i + batch_x.size() - rank, from_y = i + batch_y.size() - rank;
    int64_t a = from_x < batch_x.size() ? batch_x[from_x] : 1, b = from_y < batch_y.size() ? batch_y[from_y] : 1;
    zs.push_back(a == 1 ? b : a);
  }
  Tensor x(dtype, xs, lx), y(dtype, ys, ly);
  x.random(), y.random();
  Dims batch = zs;
  zs.insert(zs.end(), {m, n});
  Tensor z(dtype, zs);
  run("matmul", {Attr::flag("transpose_x", tx), Attr::flag("transpose_y", ty)}, {&x, &y}, {&z});

  auto flat = [&](const Dims& own, int64_t index) {  // position of a batch index in an operand's own batch
    int64_t at = 0, step = 1;
    for (size_t i = 0; i < batch.size(); i++) {
      size_t axis = batch.size() - 1 - i;
      int64_t digit = index % batch[axis];
      index /= batch[axis];
      if (i >= own.size()) continue;
      int64_t size = own[own.size() - 1 - i];
      if (size > 1) at += digit * step;
      step *= size;
    }
    return at;
  };
  std::vector<double> expected;
  for (int64_t i = 0; i < z.size(); i++) {
    int64_t c = i % n, r = i / n % m, b = i / n / m, bx = flat(batch_x, b) * m * k, by = flat(batch_y, b) * n * k;
    double sum = 0;
    for (int64_t p = 0; p < k; p++) {
      sum += x.get(bx + (tx ? p * m + r : r * k + p)) * y.get(by + (ty ? c * k + p : p * n + c));
    }
    if (dtype == PG_I8) sum = static_cast<int8_t>(static_cast<int64_t>(sum));
    if (dtype == PG_U8) sum = static_cast<uint8_t>(static_cast<int64_t>(sum));
    expected.push_back(sum);
  }
  check_close(z, expected, tolerance(dtype, k), "matmul");
}

}  // namespace

TEST_CASE("matmul: shapes, strides, transposes, dtypes") {
  for (uint32_t dtype : kDtypes) {
    for (int trial = 0; trial < 24; trial++) {
      int64_t size = trial % 3 == 0 ? 6 : trial % 3 == 1 ? 40 : 130;
      check_matmul(dtype, {}, {}, between(1, size), between(1, size), between(1, size), between(0, 1) != 0,
                   between(0, 1) != 0, any_layout(), any_layout());
    }
    check_matmul(dtype, {}, {}, 300, 70, 600, false, true, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {}, {}, 1, 300, 200, false, true, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {}, {}, 300, 1, 200, true, false, Layout::kDense, Layout::kReversed);
  }
}

TEST_CASE("matmul: batches broadcast") {
  for (uint32_t dtype : kDtypes) {
    for (Layout layout : {Layout::kDense, Layout::kReversed, Layout::kStepped}) {
      check_matmul(dtype, {3}, {3}, 5, 4, 6, false, false, layout, Layout::kDense);
      check_matmul(dtype, {9}, {9}, 33, 20, 17, false, true, layout, layout);
      check_matmul(dtype, {2, 3}, {3}, 12, 20, 17, true, false, layout, Layout::kDense);
      check_matmul(dtype, {2, 1}, {1, 3}, 12, 20, 17, false, false, layout, layout);
      check_matmul(dtype, {4, 3}, {}, 12, 20, 17, false, true, layout, layout);
      check_matmul(dtype, {}, {2, 2}, 12, 20, 17, false, false, layout, layout);
    }
  }
}

TEST_CASE("matmul: empty dimensions") {
  for (uint32_t dtype : kDtypes) {
    check_matmul(dtype, {}, {}, 3, 4, 0, false, false, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {2}, {2}, 3, 4, 0, false, false, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {}, {}, 0, 4, 3, false, false, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {}, {}, 3, 0, 3, false, false, Layout::kDense, Layout::kDense);
    check_matmul(dtype, {0}, {0}, 3, 4, 3, false, false, Layout::kDense, Layout::kDense);
  }
}

TEST_CASE("matmul: vectors and expanded operands") {
  for (uint32_t dtype : kDtypes) {
    Tensor v(dtype, {70}, Layout::kStepped), w(dtype, {70}), a(dtype, {3, 70, 5}), z0(dtype, {}), z1(dtype, {3, 5});
    v.random(), w.random(), a.random();
    std::vector<Attr> plain = {Attr::flag("transpose_x", false), Attr::flag("transpose_y", false)};
    run("matmul", plain, {&v, &w}, {&z0});
    double dot = 0;
    for (int64_t i = 0; i < 70; i++) dot += v.get(i) * w.get(i);
    if (dtype == PG_I8) dot = static_cast<int8_t>(static_cast<int>(dot));
    if (dtype == PG_U8) dot = static_cast<uint8_t>(static_cast<int>(dot));
    check_close(z0, {dot}, tolerance(dtype, 70), "dot");
    run("matmul", plain, {&v, &a}, {&z1});
    std::vector<double> expected;
    for (int64_t b = 0; b < 3; b++) {
      for (int64_t j = 0; j < 5; j++) {
        double sum = 0;
        for (int64_t i = 0; i < 70; i++) sum += v.get(i) * a.at({b, i, j});
        if (dtype == PG_I8) sum = static_cast<int8_t>(static_cast<int>(sum));
        if (dtype == PG_U8) sum = static_cast<uint8_t>(static_cast<int>(sum));
        expected.push_back(sum);
      }
    }
    check_close(z1, expected, tolerance(dtype, 70), "row by batch");

    Tensor row(dtype, {1, 30}), other(dtype, {30, 20}), z(dtype, {25, 20});
    row.random(), other.random();
    Tensor rows = row.expand(0, 25);
    run("matmul", plain, {&rows, &other}, {&z});
    std::vector<double> same;
    for (int64_t i = 0; i < 25 * 20; i++) {
      double sum = 0;
      for (int64_t p = 0; p < 30; p++) sum += row.get(p) * other.at({p, i % 20});
      if (dtype == PG_I8) sum = static_cast<int8_t>(static_cast<int>(sum));
      if (dtype == PG_U8) sum = static_cast<uint8_t>(static_cast<int>(sum));
      same.push_back(sum);
    }
    check_close(z, same, tolerance(dtype, 30), "expanded");
  }
}

TEST_CASE("linear") {
  for (uint32_t dtype : {PG_F32, PG_F64, PG_BF16, PG_F16}) {
    for (int trial = 0; trial < 30; trial++) {
      int64_t in = between(1, trial < 10 ? 8 : 90), out = between(1, trial < 10 ? 8 : 90);
      Dims lead = trial % 3 == 0 ? Dims{} : trial % 3 == 1 ? Dims{between(1, 70)} : Dims{between(0, 4), between(1, 30)};
      Dims xs = lead, ys = lead;
      xs.push_back(in), ys.push_back(out);
      Tensor x(dtype, xs, any_layout()), weight(dtype, {out, in}, any_layout()), y(dtype, ys);
      Tensor bias(dtype, {out}, trial % 5 == 0 ? Layout::kStepped : Layout::kDense);
      bool with_bias = trial % 2 == 0;
      x.random(), weight.random(), bias.random();
      run("linear", {}, {&x, &weight, with_bias ? &bias : nullptr}, {&y});
      std::vector<double> expected;
      for (int64_t i = 0; i < y.size(); i++) {
        double sum = with_bias ? bias.get(i % out) : 0;
        for (int64_t p = 0; p < in; p++) sum += x.get(i / out * in + p) * weight.at({i % out, p});
        expected.push_back(sum);
      }
      check_close(y, expected, tolerance(dtype, in), "linear");
    }
  }
}

TEST_CASE("16-bit floats: conversions are exact, rounding is to nearest even, specials survive") {
  Tensor one(PG_F16, {1, 1}), x(PG_F16, {1, 1}), z(PG_F16, {1, 1});
  auto bits = [](Tensor& t) -> uint16_t& { return *reinterpret_cast<uint16_t*>(t.storage.data()); };
  for (uint32_t dtype : {PG_F16, PG_BF16}) {
    one.dtype = x.dtype = z.dtype = dtype;
    one.set(0, 1);
    Prepared kernel("matmul", {Attr::flag("transpose_x", false), Attr::flag("transpose_y", false)}, {&x, &one}, {&z});
    for (uint32_t i = 0; i < 65536; i++) {
      bits(x) = static_cast<uint16_t>(i);
      kernel.launch();
      if (x.get(0) == 0) continue;  // 0 + -0 is 0
      uint16_t expected = static_cast<uint16_t>(i);
      if (z.get(0) == z.get(0) ? bits(z) != expected : x.get(0) == x.get(0))
        FAIL("bits " << i << " became " << bits(z));
    }
  }
}
