// SPDX-License-Identifier: Apache-2.0
// Random kernels draw what philox.hpp defines, element by element.
#include <algorithm>

#include "harness.hpp"
#include "perigee/kernels/philox.hpp"

using namespace test;
namespace philox = pg::philox;

namespace {

constexpr int64_t kDrawSeed = 1234567, kDrawOffset = 89;

Operation draw(const char* op, Tensor to, std::vector<Attr> attrs = {}, std::vector<std::vector<Tensor>> inputs = {}) {
  attrs.push_back(integer("seed", kDrawSeed));
  attrs.push_back(integer("offset", kDrawOffset));
  return {op, inputs, attrs, {std::move(to)}};
}

}  // namespace

TEST_CASE("uniform, normal and randint") {
  Sim sim;
  Tensor u = sim.run(draw("uniform", out(PG_F32, {3, 5}), {real("low", -1), real("high", 3)}))[0];
  Tensor d = sim.run(draw("uniform", out(PG_F64, {7}), {real("low", 0), real("high", 1)}))[0];
  Tensor half = sim.run(draw("uniform", out(PG_F16, {300}), {real("low", 0), real("high", 1)}))[0];
  Tensor z = sim.run(draw("normal", out(PG_F32, {7}), {real("mean", 2), real("std", 3)}))[0];
  Tensor k = sim.run(draw("randint", out(PG_I64, {9}), {integer("low", -2), integer("high", 5)}))[0];
  for (uint64_t i = 0; i < 15; i++)
    CHECK(u.values[i] == philox::between(philox::uniform_f32(kDrawSeed, kDrawOffset, i), -1.0f, 3.0f));
  for (uint64_t i = 0; i < 7; i++) {
    CHECK(d.values[i] == philox::uniform_f64(kDrawSeed, kDrawOffset, i));
    CHECK(z.values[i] == philox::fused(3.0f, philox::normal_f32(kDrawSeed, kDrawOffset, i), 2.0f));
  }
  for (uint64_t i = 0; i < 300; i++)
    CHECK((half.values[i] == philox::uniform_f16(kDrawSeed, kDrawOffset, i) && half.values[i] < 1));
  for (uint64_t i = 0; i < 9; i++)
    CHECK(k.values[i] == static_cast<double>(philox::integer(kDrawSeed, kDrawOffset, i, -2, 5)));
}

// By the words of philox.hpp's specification, step by step.
Values permutation(uint64_t n, int bits) {
  std::vector<Values> buckets(size_t{1} << bits);
  for (uint64_t i = 0; i < n; i++) {
    uint64_t word = philox::word(kDrawSeed, kDrawOffset, i);
    buckets[word >> (32 - bits)].push_back(static_cast<double>(i));
  }
  Values all;
  for (const Values& bucket : buckets) all.insert(all.end(), bucket.begin(), bucket.end());
  uint64_t first = 0;
  for (const Values& bucket : buckets) {
    for (uint64_t p = first; p < first + bucket.size(); p++) {
      uint64_t at = kDrawOffset + p / 4;
      philox::Block block = philox::generate({{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 1, 0}},
                                             static_cast<uint32_t>(kDrawSeed), static_cast<uint32_t>(kDrawSeed >> 32));
      std::swap(all[p], all[first + (block.word[p % 4] * (p - first + 1) >> 32)]);
    }
    first += bucket.size();
  }
  return all;
}

TEST_CASE("randperm shuffles buckets") {
  Sim sim;
  for (auto [n, bits] : {std::pair{50, 0}, {2048, 0}, {2049, 1}, {9000, 3}}) {
    Tensor p = sim.run(draw("randperm", out(PG_I64, {n})))[0];
    CHECK(p.values == permutation(static_cast<uint64_t>(n), bits));
  }
}

TEST_CASE("dropout keeps what its uniforms say") {
  Sim sim;
  Tensor x = f32({40}, Values(40, 2.0));
  Operation call = draw("dropout", out(PG_F32, {40}), {real("p", 0.25), flag("training", true)}, {{x}});
  call.outputs.push_back(out(PG_B8, {40}));
  auto results = sim.run(call);
  for (uint64_t i = 0; i < 40; i++) {
    bool keep = philox::uniform_f32(kDrawSeed, kDrawOffset, i) >= 0.25f;
    CHECK(results[1].values[i] == keep);
    CHECK(results[0].values[i] == (keep ? 2.0f * static_cast<float>(1 / 0.75) : 0.0f));
  }
  call.attrs[1] = flag("training", false);
  check(sim.run(call)[0], x.values);
  Tensor all = sim.run(draw("bernoulli", out(PG_F32, {4}), {}, {{f32({4}, {0, 1, 0, 1})}}))[0];
  check(all, {0, 1, 0, 1});
}
