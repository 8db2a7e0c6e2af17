// SPDX-License-Identifier: Apache-2.0
// Conversions of the 16-bit floats, and the operators that have loops of their own for bfloat16: every bit, NaN
// included.
#include <cmath>
#include <cstring>

#include "harness.hpp"
#include "perigee/kernels/reference/elementwise.hpp"

using namespace test;

namespace {

Tensor of_bits(uint32_t dtype, const std::vector<uint16_t>& bits) {
  Tensor t(dtype, {static_cast<int64_t>(bits.size())});
  std::memcpy(t.bytes.data(), bits.data(), bits.size() * 2);
  return t;
}
std::vector<uint16_t> bits_of(const Tensor& t) {
  std::vector<uint16_t> bits(static_cast<size_t>(t.count()));
  if (!bits.empty()) std::memcpy(bits.data(), t.bytes.data(), bits.size() * 2);
  return bits;
}
std::vector<uint16_t> all_values() {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); i++) bits[i] = static_cast<uint16_t>(i);
  return bits;
}
Tensor converted(const Tensor& source, uint32_t dtype) {
  Tensor target(dtype, source.shape);
  pg_tensor t = target.placed(), s = source.placed();
  pg_error error{};
  REQUIRE(device().copy(device_self(), 0, &t, &s, 1, 0, &error) == PG_OK);
  return target;
}
float wide(uint16_t bits) { return pg::to_float(pg::bf16{bits}); }

// To nearest, ties to even, by the definition: of the two neighbours the nearer.
uint16_t nearest_bf16(float x) {
  const uint32_t bits = pg::float_bits(x);
  const auto cut = static_cast<uint16_t>(bits >> 16);
  if (std::isnan(x)) return cut | 0x40;
  const uint32_t rest = bits & 0xffff;
  return static_cast<uint16_t>(cut + (rest > 0x8000 || (rest == 0x8000 && cut % 2 == 1) ? 1 : 0));
}

void fill(Tensor& t) {
  std::vector<double> values(static_cast<size_t>(t.count()));
  for (size_t i = 0; i < values.size(); i++) values[i] = 9 * std::sin(static_cast<double>(i));
  t.set(values);
}

// Counts differences: one check an operator, not 65,536.
void check_bits(const std::vector<uint16_t>& got, const std::vector<uint16_t>& want, const std::string& what) {
  REQUIRE(got.size() == want.size());
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); i++) {
    if (got[i] != want[i] && wrong++ == 0) first = i;
  }
  INFO(what << ": " << wrong << " differ, the first at " << first);
  CHECK((wrong == 0 || got[first] == want[first]));
}

template <class Op>
void check_unary(KernelCall call, Op op) {
  const std::vector<uint16_t> x = all_values();
  std::vector<uint16_t> want;
  for (uint16_t bits : x) want.push_back(pg::to_bf16(op(wide(bits), static_cast<const float*>(nullptr))).bits);
  check_bits(bits_of(call.in(of_bits(PG_BF16, x)).one()), want, call.op);
}

// Everything that is special or next to it against everything, of either sign, and random pairs.
void make_pairs(std::vector<uint16_t>& a, std::vector<uint16_t>& b) {
  std::vector<uint16_t> special;
  for (uint32_t sign : {0x0000, 0x8000}) {
    for (uint32_t bits : {0x0000, 0x0001, 0x007f, 0x0080, 0x0081, 0x3f80, 0x3f81, 0x4000, 0x7f7f, 0x7f80, 0x7f81,
                          0x7fbf, 0x7fc0, 0x7fc1, 0x7fff})
      special.push_back(static_cast<uint16_t>(sign | bits));
  }
  for (uint16_t s : special) {
    for (uint32_t i = 0; i < 65536; i += 7) {
      a.push_back(s), b.push_back(static_cast<uint16_t>(i));
      a.push_back(static_cast<uint16_t>(i)), b.push_back(s);
    }
    for (uint16_t t : special) a.push_back(s), b.push_back(t);
  }
  uint32_t state = 1;
  for (int i = 0; i < 400000; i++) {
    state = state * 1664525 + 1013904223;
    a.push_back(static_cast<uint16_t>(state >> 16));
    state = state * 1664525 + 1013904223;
    b.push_back(static_cast<uint16_t>(state >> 16));
  }
}

template <class Op>
void check_pairs(KernelCall call, Op op) {
  std::vector<uint16_t> a, b, want;
  make_pairs(a, b);
  for (size_t i = 0; i < a.size(); i++) want.push_back(pg::to_bf16(op(wide(a[i]), wide(b[i]))).bits);
  std::vector<uint16_t> got = bits_of(call.in(of_bits(PG_BF16, a)).in(of_bits(PG_BF16, b)).one());
  // Which NaN comes of two is the processor's to choose: it depends on the order of the operands.
  for (size_t i = 0; i < want.size(); i++) {
    if (std::isnan(wide(a[i])) && std::isnan(wide(b[i])) && std::isnan(wide(got[i])) && std::isnan(wide(want[i])))
      want[i] = got[i];
  }
  check_bits(got, want, call.op);
}

// Three operands, the third of other pairs, and the parameter `value`.
template <class Op>
void check_triples(KernelCall call, float value, Op op) {
  std::vector<uint16_t> a, b, want;
  make_pairs(a, b);
  std::vector<uint16_t> c(b.rbegin(), b.rend());
  for (size_t i = 0; i < a.size(); i++)
    want.push_back(pg::to_bf16(op(wide(a[i]), wide(b[i]), wide(c[i]), &value)).bits);
  std::vector<uint16_t> got =
      bits_of(call.in(of_bits(PG_BF16, a)).in(of_bits(PG_BF16, b)).in(of_bits(PG_BF16, c)).one());
  for (size_t i = 0; i < want.size(); i++) {
    if (std::isnan(wide(got[i])) && std::isnan(wide(want[i]))) want[i] = got[i];  // of several, any
  }
  check_bits(got, want, call.op);
}

}  // namespace

TEST_CASE("every bfloat16 and float16 becomes the float that it is") {
  for (uint32_t dtype : {PG_BF16, PG_F16}) {
    const std::vector<uint16_t> bits = all_values();
    Tensor got = converted(of_bits(dtype, bits), PG_F32);
    size_t wrong = 0;
    for (size_t i = 0; i < bits.size(); i++) {
      float is, want = dtype == PG_BF16 ? wide(bits[i]) : pg::to_float(pg::f16{bits[i]});
      std::memcpy(&is, got.bytes.data() + i * 4, 4);
      const bool nan = std::isnan(is) && std::isnan(want);  // the processor makes float16's NaN quiet
      if (!(nan && dtype == PG_F16) && pg::float_bits(is) != pg::float_bits(want)) wrong++;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("floats round to the nearest bfloat16 and float16, NaN stays") {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 65536; upper++) {
    for (uint32_t lower : {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff})
      values.push_back(pg::bits_float(upper << 16 | lower));
  }
  Tensor x(PG_F32, {static_cast<int64_t>(values.size())});
  std::memcpy(x.bytes.data(), values.data(), values.size() * 4);
  std::vector<uint16_t> brain, half, got = bits_of(converted(x, PG_F16));
  for (size_t i = 0; i < values.size(); i++) {
    brain.push_back(nearest_bf16(values[i]));
    REQUIRE(pg::to_bf16(values[i]).bits == brain.back());
    half.push_back(std::isnan(values[i]) ? got[i] : pg::to_f16(values[i]).bits);
    if (std::isnan(values[i])) REQUIRE(std::isnan(pg::to_float(pg::f16{got[i]})));
  }
  check_bits(bits_of(converted(x, PG_BF16)), brain, "bfloat16");
  check_bits(got, half, "float16");
}

TEST_CASE("what has loops of its own for bfloat16 gives the bits of float32, rounded") {
  check_unary(KernelCall("relu"), pg::math::Relu());
  check_unary(KernelCall("abs"), pg::math::Abs());
  check_unary(KernelCall("neg"), pg::math::Neg());
  check_pairs(KernelCall("maximum"), pg::math::Maximum());
  check_pairs(KernelCall("minimum"), pg::math::Minimum());
  check_pairs(KernelCall("copysign"), pg::math::Copysign());
  check_pairs(KernelCall("relu_grad"),
              [](float y, float d) { return pg::math::ReluGrad()(y, d, static_cast<float*>(nullptr)); });
  check_pairs(KernelCall("add"), pg::math::Add());
  check_pairs(KernelCall("sub"), pg::math::Sub());
  check_pairs(KernelCall("mul"), pg::math::Mul());
  check_pairs(KernelCall("div"), pg::math::Div());
  check_triples(KernelCall("addcmul").with("value", 0.3), 0.3f, pg::math::Addcmul());
  check_triples(KernelCall("addcdiv").with("value", 0.3), 0.3f, pg::math::Addcdiv());
  check_triples(KernelCall("lerp"), 0, pg::math::Lerp());
  const float slope = 0.3f, bounds[] = {-0.3f, 2};
  check_pairs(KernelCall("leaky_relu_grad").with("negative_slope", 0.3),
              [&](float x, float d) { return pg::math::LeakyReluGrad()(x, d, &slope); });
  check_unary(KernelCall("clamp").with("min", -0.3).with("max", 2),
              [&](float x, const float*) { return pg::math::Clamp()(x, bounds); });
}

TEST_CASE("bfloat16 broadcast, in views, in place, and past the caches") {
  const std::pair<Dims, Dims> shapes[] = {{{3, 5}, {3, 1}}, {{2, 300, 3}, {300, 1}}, {{70, 900}, {900}},
                                          {{4}, {}},        {{0, 3}, {1, 3}},        {{1700, 1300}, {1700, 1300}}};
  for (const auto& [a, b] : shapes) {
    for (Layout layout : kLayouts) {
      Tensor x(PG_BF16, a, layout), y(PG_BF16, b, layout);
      if (layout == Layout::reversed && x.count() >= 4096) continue;  // refused: the host copies them first
      fill(x), fill(y);
      auto both = [&](const char* name, auto op) {
        Tensor got = KernelCall(name).in(x).in(y).one(), want(PG_BF16, got.shape);
        pg::reference::binary(x.operand(), y.operand(), want.operand(), op);
        check_bits(bits_of(got), bits_of(want), name);
      };
      both("maximum", pg::math::Maximum());
      both("add", pg::math::Add());
    }
  }
  Tensor x(PG_BF16, {40, 50}, Layout::stepped);
  fill(x);
  std::vector<double> want = x.values();
  for (double& v : want) v = v < 0 ? 0 : v;
  KernelCall relu("relu");
  relu.in(x).in_place = true;
  check_values(relu.one(), want);
}
