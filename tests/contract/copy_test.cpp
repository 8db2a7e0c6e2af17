// SPDX-License-Identifier: Apache-2.0
// The device's copy and fill, for all pairs of dtypes and all kinds of strides.
#include <algorithm>
#include <cmath>
#include <complex>

#include "random.hpp"
#include "subject.hpp"

using namespace contract;

namespace {

// Through the device: the target's numbers afterwards, and every byte that does not belong to it must be as it was.
Values copied(Plugin& plugin, uint64_t s, const Tensor& source, Tensor target) {
  std::vector<char> from = to_bytes(source), to = to_bytes(target), before = to;
  uint64_t a = from.empty() ? 0 : plugin.alloc(from.size()), b = to.empty() ? 0 : plugin.alloc(to.size());
  if (a != 0) plugin.upload(a, from.data(), from.size(), s);
  if (b != 0) plugin.upload(b, to.data(), to.size(), s);
  pg_tensor t = describe(target, b), f = describe(source, a);
  plugin.ok(plugin.device->copy, 0u, static_cast<const pg_tensor*>(&t), static_cast<const pg_tensor*>(&f), s,
            ++plugin.sequence);
  if (b != 0) plugin.download(to.data(), b, to.size(), s);
  plugin.sync(s);
  Values got = from_bytes(target, to);
  target.values = got;
  std::vector<char> expected = to_bytes(target);
  // Which NaN it is is the device's affair.
  const int64_t width = pg::dtype_bytes(target.dtype);
  size_t next = 0;
  pg::reference::each_offset(target.shape, target.stride, [&](int64_t i) {
    if (std::isnan(got[next++]))
      std::copy_n(to.data() + (target.offset + i) * width, width, expected.data() + (target.offset + i) * width);
  });
  CHECK(expected == to);
  if (a != 0) plugin.free(a);
  if (b != 0) plugin.free(b);
  return got;
}

// What the reference conversion makes of the numbers.
Values converted(const Tensor& source, uint32_t dtype) {
  Tensor exact(source.dtype, source.shape, from_bytes(source, to_bytes(source)));
  Tensor out(dtype, source.shape, exact.values);
  return from_bytes(out, to_bytes(out));
}

bool same(double a, double b) { return (a != a && b != b) || a == b; }

}  // namespace

TEST_CASE("Copy converts between all dtypes") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream();
  Random random(11);
  for (uint32_t from : kDtypes) {
    for (uint32_t to : kDtypes) {
      Tensor source(from, {37});
      // All are whole in both, but for fractions that integers lose.
      bool floats = pg::dtype_class(from) == PG_M_FLOAT, small = from == PG_U8 || to == PG_U8;
      for (int i = 0; i < 37; i++) {
        double value = small ? random.below(120) : random.below(240) - 120;
        source.values.push_back(floats && !small ? value + random.below(4) / 4.0 : value);
      }
      if (floats && pg::dtype_class(to) == PG_M_FLOAT) source.values[3] = NAN, source.values[4] = -INFINITY;
      Values got = copied(plugin, s, source, Tensor(to, {37})), expected = converted(source, to);
      INFO(pg::dtype_name(from) << " to " << pg::dtype_name(to));
      for (size_t i = 0; i < got.size(); i++) REQUIRE(same(got[i], expected[i]));
    }
  }
}

TEST_CASE("Copy takes any strides and offsets, empty and 0-dim tensors") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream();
  Random random(5);
  for (int round = 0; round < 120; round++) {
    Shape shape = random.shape(5, 9);
    uint32_t from = kDtypes[static_cast<size_t>(random.below(10))], to = random.below(2) == 0 ? from : PG_F32;
    Tensor source = random.layout(Tensor(from, shape), true), target = random.layout(Tensor(to, shape), false);
    for (int64_t i = 0; i < source.count(); i++) source.values.push_back(from == PG_B8 ? i % 2 : i % 100);
    Values got = copied(plugin, s, source, target), expected = converted(source, to);
    INFO("round " << round);
    for (size_t i = 0; i < got.size(); i++) REQUIRE(same(got[i], expected[i]));
  }
}

TEST_CASE("Fill keeps an integer whole, and both parts of a complex number") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream(), buffer = plugin.alloc(64);
  auto filled = [&](uint32_t dtype, const pg_number& number, auto zero) {
    Tensor two(dtype, {2});
    pg_tensor t = describe(two, buffer);
    decltype(zero) got[2] = {};
    plugin.ok(plugin.device->fill, 0u, static_cast<const pg_tensor*>(&t), &number, s, ++plugin.sequence);
    plugin.download(got, buffer, sizeof got, s);
    plugin.sync(s);
    CHECK(got[0] == got[1]);
    return got[1];
  };
  const int64_t odd = (int64_t{1} << 53) + 1;
  CHECK(filled(PG_I64, pg::make_number(odd), int64_t{}) == odd);
  CHECK(filled(PG_I64, pg::make_number(INT64_MIN), int64_t{}) == INT64_MIN);
  CHECK(filled(PG_F64, pg::make_number(odd), double{}) == static_cast<double>(odd));
  const pg_number number = pg::make_complex(1.5, -2);
  Tensor two(PG_C64, {2});
  pg_tensor t = describe(two, buffer);
  Code taken = plugin.call(plugin.device->fill, 0u, static_cast<const pg_tensor*>(&t), &number, s, ++plugin.sequence);
  if (taken.code == PG_E_NOT_SUPPORTED) return;  // a device without complex numbers says so
  CHECK(taken.code == PG_OK);
  CHECK(filled(PG_C64, number, std::complex<float>{}) == std::complex<float>(1.5f, -2.0f));
  CHECK(filled(PG_C128, number, std::complex<double>{}) == std::complex<double>(1.5, -2));
}

TEST_CASE("Fill converts its number to every dtype, and keeps to its strides") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream();
  Random random(6);
  for (uint32_t dtype : kDtypes) {
    for (double value : {0.0, 2.75, 100.0}) {
      const pg_number number = pg::make_number(value);
      Tensor target = random.layout(Tensor(dtype, {3, 5}), false);
      std::vector<char> bytes = to_bytes(target);
      uint64_t buffer = plugin.alloc(bytes.size());
      plugin.upload(buffer, bytes.data(), bytes.size(), s);
      pg_tensor t = describe(target, buffer);
      plugin.ok(plugin.device->fill, 0u, static_cast<const pg_tensor*>(&t), &number, s, ++plugin.sequence);
      plugin.download(bytes.data(), buffer, bytes.size(), s);
      plugin.sync(s);
      target.values.assign(15, value);
      INFO(pg::dtype_name(dtype) << " " << value);
      CHECK(to_bytes(target) == bytes);
      plugin.free(buffer);
    }
  }
}
