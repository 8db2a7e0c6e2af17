// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "harness.hpp"
#include "perigee/kernels/reference/elementwise.hpp"

using namespace test;

namespace {

template <class F>
void check_binary(const char* op, F f, bool bools, bool compares, int64_t rows = 70) {
  for (uint32_t dtype : kAll) {
    if (dtype == PG_B8 && !bools) continue;
    for (Layout layout : kLayouts) {
      if (layout == Layout::stepped && dtype != PG_F32 && dtype != PG_F16) continue;
      for (auto [a, b] : std::vector<std::pair<Dims, Dims>>{{{3, 5}, {3, 5}},
                                                            {{2, 300, 3}, {300, 1}},
                                                            {{rows, 1}, {900}},
                                                            {{4}, {}},
                                                            {{0, 3}, {1, 3}},
                                                            {{33000}, {33000}}}) {
        Tensor x(dtype, a, layout), y(dtype, b, layout);
        x.random(-9, 9), y.random(1, 4);
        Tensor got = KernelCall(op).in(x).in(y).one();
        Tensor expected(compares ? PG_B8 : dtype, got.shape);
        pg::reference::binary(x.operand(), y.operand(), expected.operand(), f);
        check_close(got, expected, tolerance(dtype), std::string(op) + " " + pg::dtype_name(dtype));
      }
    }
  }
}

}  // namespace

TEST_CASE("two operands, every dtype, layouts and broadcasting") {
  check_binary("add", pg::math::Add(), true, false, 700);  // one of them over many blocks of work
  check_binary("sub", pg::math::Sub(), false, false);
  check_binary("mul", pg::math::Mul(), true, false);
  check_binary("maximum", pg::math::Maximum(), true, false);
  check_binary("minimum", pg::math::Minimum(), true, false);
  check_binary("remainder", pg::math::Remainder(), false, false);
  check_binary("floor_div", pg::math::FloorDiv(), false, false);
  check_binary("eq", pg::math::Eq(), true, true);
  check_binary("ne", pg::math::Ne(), true, true);
  check_binary("lt", pg::math::Lt(), false, true);
  check_binary("le", pg::math::Le(), false, true);
  check_binary("gt", pg::math::Gt(), false, true);
  check_binary("ge", pg::math::Ge(), false, true);
  check_binary("logical_and", pg::math::LogicalAnd(), true, true);
  check_binary("logical_or", pg::math::LogicalOr(), true, true);
  check_binary("logical_xor", pg::math::LogicalXor(), true, true);
}

TEST_CASE("bits and distances of shifts") {
  for (uint32_t dtype : {PG_I64, PG_I32, PG_I16, PG_I8, PG_U8}) {
    bool is_signed = dtype != PG_U8;
    Tensor x(dtype, {6}), y(dtype, {6});
    x.set({is_signed ? -5.0 : 5.0, 6, 1, 1, is_signed ? -1.0 : 255.0, 127}), y.set({3, 3, 5, 100, 100, 1});
    INFO(pg::dtype_name(dtype));
    check_values(KernelCall("bitwise_and").in(x).in(y).one(), {is_signed ? 3.0 : 1.0, 2, 1, 0, 100, 1});
    check_values(KernelCall("bitwise_xor").in(y).in(y).one(), {0, 0, 0, 0, 0, 0});
    check_values(KernelCall("bitwise_right_shift").in(x).in(y).one(),
                 {is_signed ? -1.0 : 0.0, 0, 0, 0, is_signed ? -1.0 : 0.0, 63});
    Tensor left = KernelCall("bitwise_left_shift").in(x).in(y).one();
    CHECK(left.values()[1] == 48);
    CHECK(left.values()[3] == 0);
  }
}

TEST_CASE("three operands, and slopes") {
  for (uint32_t dtype : {PG_F64, PG_F32, PG_F16, PG_BF16}) {
    Tensor a(dtype, {2, 3}), b(dtype, {3}), c(dtype, {2, 1});
    a.set({1, 2, 3, 4, 5, 6}), b.set({2, 4, 8}), c.set({0.5, 1});
    INFO(pg::dtype_name(dtype));
    check_values(KernelCall("lerp").in(a).in(b).in(c).one(), {1.5, 3, 5.5, 2, 4, 8});
    check_values(KernelCall("lerp").in(a).in(b).none().number(2, 0.25).one(), {1.25, 2.5, 4.25, 3.5, 4.75, 6.5});
    check_values(KernelCall("addcmul").in(a).in(b).in(c).with("value", 2).one(), {3, 6, 11, 8, 13, 22});
    check_values(KernelCall("addcdiv").in(a).in(b).in(c).with("value", -1).one(), {-3, -6, -13, 2, 1, -2});
    check_values(KernelCall("relu_grad").in(a).in(b).one(), {2, 4, 8, 2, 4, 8});
    check_values(KernelCall("hardtanh_grad").in(a).in(c).with("max_val", 3).one(), {0.5, 0.5, 0, 0, 0, 0});
    check_values(KernelCall("tanh_grad").in(c).in(b).one(), {1.5, 3, 6, 0, 0, 0});
  }
}

TEST_CASE("a number in place of an operand") {
  Tensor x(PG_F32, {2, 3});
  x.set({1, 2, 3, 4, 5, 6});
  check_values(KernelCall("add").in(x).none().number(1, 0.5).one(), {1.5, 2.5, 3.5, 4.5, 5.5, 6.5});
  check_values(KernelCall("sub").none().in(x).number(0, 10).one(), {9, 8, 7, 6, 5, 4});
  check_values(KernelCall("pow").in(x).none().number(1, 2).one(), {1, 4, 9, 16, 25, 36});
  check_values(KernelCall("pow").in(x).none().number(1, 0.5).one(),
               {1, std::sqrt(2), std::sqrt(3), 2, std::sqrt(5), std::sqrt(6)});
  check_values(KernelCall("pow").in(x).none().number(1, 3).one(), {1, 8, 27, 64, 125, 216});
  check_values(KernelCall("gt").in(x).none().number(1, 3.5).one(), {0, 0, 0, 1, 1, 1});
  Tensor n(PG_I64, {3});
  n.set({-7, 7, 8});
  check_values(KernelCall("floor_div").in(n).none().number(1, 2).one(), {-4, 3, 4});
  CHECK_THROWS_WITH(KernelCall("floor_div").in(n).none().number(1, 0).one(), Catch::Contains("division by zero"));
  CHECK_THROWS_WITH(KernelCall("pow").in(n).none().number(1, -1).one(), Catch::Contains("negative"));
  Tensor large(PG_F32, {300, 1000});
  large.random();
  Tensor got = KernelCall("mul").in(large).none().number(1, 3).one(), expected = large;
  auto values = large.values();
  for (double& v : values) v *= 3;
  check_values(got, values);
}

TEST_CASE("in place, and outputs that are not dense") {
  Tensor x(PG_F32, {40, 50}, Layout::stepped), y(PG_F32, {50});
  x.random(), y.random();
  Tensor expected(PG_F32, {40, 50});
  pg::reference::binary(x.operand(), y.operand(), expected.operand(), pg::math::Add());
  KernelCall call("add");
  call.in(x).in(y).in_place = true;
  check_close(call.one(), expected, 1e-6, "in place");
  for (uint32_t dtype : {PG_F32, PG_BF16}) {
    Tensor a(dtype, {40, 50}), out(dtype, {40, 50});
    a.random();
    KernelCall square("square");
    square.in(a).output_layout = Layout::reversed;
    pg::reference::unary(a.operand(), out.operand(), {}, pg::math::Square());
    check_close(square.one(), out, tolerance(dtype), "reversed output");
  }
}

TEST_CASE("one operand in float32, float64 and 16 bits against the standard library") {
  using F = double (*)(double);
  struct Row {
    const char* op;
    F f;
    double low, high;
  };
  const Row rows[] = {
      {"exp", std::exp, -100, 88},
      {"expm1", std::expm1, -20, 80},
      {"log", std::log, 1e-6, 1e6},
      {"log1p", std::log1p, -0.99, 9},
      {"log2", std::log2, 1e-3, 1e3},
      {"log10", std::log10, 1e-3, 1e3},
      {"sqrt", std::sqrt, 0, 100},
      {"sin", std::sin, -30, 30},
      {"cos", std::cos, -30, 30},
      {"tan", std::tan, -1.5, 1.5},
      {"sinh", std::sinh, -5, 5},
      {"cosh", std::cosh, -5, 5},
      {"tanh", std::tanh, -12, 12},
      {"asin", std::asin, -1, 1},
      {"acos", std::acos, -1, 1},
      {"atan", std::atan, -9, 9},
      {"erf", std::erf, -5, 5},
      {"erfc", std::erfc, -3, 3},
      {"floor", std::floor, -9, 9},
      {"ceil", std::ceil, -9, 9},
      {"round", std::nearbyint, -9, 9},
      {"trunc", std::trunc, -9, 9},
      {"abs", std::fabs, -9, 9},
      {"neg", [](double x) { return -x; }, -9, 9},
      {"square", [](double x) { return x * x; }, -9, 9},
      {"reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 9},
      {"relu", [](double x) { return x < 0 ? 0 : x; }, -9, 9},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }, -9, 9},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }, -20, 20},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5))); }, -6, 6},
      {"softplus", [](double x) { return std::log1p(std::exp(x)); }, -20, 20},
      {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }, -9, 9},
      {"exp2", std::exp2, -20, 20},
      {"asinh", std::asinh, -9, 9},
      {"acosh", std::acosh, 1.1, 9},
      {"atanh", std::atanh, -0.9, 0.9},
      {"lgamma", std::lgamma, 2.5, 9},
      {"selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }, -9, 9},
      {"celu", [](double x) { return x > 0 ? x : std::expm1(x); }, -9, 9},
      {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -9, 9},
      {"logsigmoid", [](double x) { return -std::log1p(std::exp(-x)); }, -20, 9},
      {"hardswish", [](double x) { return x * std::fmin(std::fmax(x + 3, 0), 6) / 6; }, -9, 9},
      {"hardsigmoid", [](double x) { return std::fmin(std::fmax(x + 3, 0), 6) / 6; }, -9, 9},
      {"hardtanh", [](double x) { return std::fmin(std::fmax(x, -1), 1); }, -9, 9},
      {"softsign", [](double x) { return x / (1 + std::fabs(x)); }, -9, 9},
      {"hardshrink", [](double x) { return std::fabs(x) <= 0.5 ? 0 : x; }, -9, 9},
      {"leaky_relu", [](double x) { return x > 0 ? x : 0.01 * x; }, -9, 9},
  };
  for (const Row& row : rows) {
    for (uint32_t dtype : {PG_F64, PG_F32, PG_F16, PG_BF16}) {
      Tensor x(dtype, {3, 1111});
      x.random(row.low, dtype == PG_F16 ? std::min(row.high, 10.0) : row.high);
      auto values = x.values();
      for (double& v : values) v = row.f(v);
      INFO(row.op << " " << pg::dtype_name(dtype));
      check_values(KernelCall(row.op).in(x).one(), values, tolerance(dtype));
    }
  }
}

TEST_CASE("float32 functions are accurate to a few units in the last place, everywhere") {
  using F = double (*)(double);
  const std::pair<const char*, F> rows[] = {{"exp", std::exp},     {"expm1", std::expm1}, {"log", std::log},
                                            {"log1p", std::log1p}, {"tanh", std::tanh},   {"erf", std::erf},
                                            {"exp2", std::exp2}};
  std::vector<double> points;
  for (int e = -149; e < 128; e++) {
    for (double m : {1.0, 1.1, 1.25, 1.4142135, 1.5, 1.73, 1.99})
      points.push_back(std::ldexp(m, e)), points.push_back(-std::ldexp(m, e));
  }
  for (double special : {0.0, -0.0, double(INFINITY), -double(INFINITY), double(NAN), 88.72, 88.73, -87.4, -103.9,
                         -104.5, 127.9, 128.0, -149.0, -149.9, -150.5})
    points.push_back(special);
  Tensor x(PG_F32, {static_cast<int64_t>(points.size())});
  x.set(points);
  auto exact = x.values();
  for (auto [op, f] : rows) {
    auto got = KernelCall(op).in(x).one().values();
    for (size_t i = 0; i < exact.size(); i++) {
      double want = f(exact[i]);
      auto rounded = static_cast<float>(want);
      double unit = std::isfinite(rounded) ? std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded) : 0;
      bool same = (std::isnan(want) && std::isnan(got[i])) || got[i] == static_cast<double>(rounded) ||
                  std::fabs(got[i] - want) <= 4 * std::max(unit, 1.5e-45);
      if (!same) FAIL_CHECK(op << "(" << exact[i] << ") is " << got[i] << ", expected " << want);
    }
  }
}

TEST_CASE("predicates, bounds, and choices") {
  Tensor x(PG_F32, {5});
  x.set({1, NAN, INFINITY, -INFINITY, 0});
  check_values(KernelCall("isnan").in(x).one(), {0, 1, 0, 0, 0});
  check_values(KernelCall("isinf").in(x).one(), {0, 0, 1, 1, 0});
  check_values(KernelCall("isfinite").in(x).one(), {1, 0, 0, 0, 1});
  check_values(KernelCall("logical_not").in(x).one(), {0, 0, 0, 0, 1});
  check_values(KernelCall("relu").in(x).one(), {1, NAN, INFINITY, 0, 0});
  check_values(KernelCall("clamp").in(x).with("min", -1).with("max", 0.5).one(), {0.5, NAN, 0.5, -1, 0});
  Tensor n(PG_I64, {3});
  n.set({-5, 3, 9});
  check_values(KernelCall("clamp").in(n).with("max", 4).one(), {-5, 3, 4});
  Tensor mask(PG_B8, {3, 1}), a(PG_I16, {3, 2}), b(PG_I16, {2});
  mask.set({1, 0, 1}), a.set({1, 2, 3, 4, 5, 6}), b.set({-1, -2});
  check_values(KernelCall("where").in(mask).in(a).in(b).one(), {1, 2, -1, -2, 5, 6});
  check_values(KernelCall("where").in(mask).none().in(a).number(1, 7).one(), {7, 7, 3, 4, 7, 7});
  check_values(KernelCall("masked_fill").in(a).in(mask).with("value", 9).one(), {9, 9, 3, 4, 9, 9});
}

TEST_CASE("elementwise operators say what they do not take") {
  Tensor b(PG_B8, {2}), i(PG_I64, {2});
  CHECK_THROWS_AS(KernelCall("sub").in(b).in(b).one(), pg::Error);
  CHECK_THROWS_AS(KernelCall("exp").in(i).one(), pg::Error);
}
