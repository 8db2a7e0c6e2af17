// SPDX-License-Identifier: Apache-2.0
// Known answers: of the generator as published with it, of the numbers made from it so that every compiler that builds
// this file must give the same bits.
#include "perigee/kernels/philox.hpp"

#include <catch2/catch.hpp>
#include <vector>

using namespace pg::philox;

namespace {

// FNV-1a over the bytes.
template <class T>
uint64_t digest(const std::vector<T>& values, uint64_t hash = 1469598103934665603ull) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); i++) hash = (hash ^ bytes[i]) * 1099511628211ull;
  return hash;
}

bool same(Block a, Block b) { return std::equal(a.word, a.word + 4, b.word); }

constexpr uint64_t kSeed = 0x123456789abcdefull, kOffset = 0xffffffff0ull;  // the counter's low word runs over

}  // namespace

TEST_CASE("Philox 4x32-10 gives the published vectors") {
  CHECK(same(generate({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  CHECK(same(generate({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u), {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  CHECK(same(generate({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
             {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST_CASE("Ranges equal the definition, wherever they begin and end") {
  for (uint64_t begin : {0, 1, 63, 130}) {
    for (uint64_t n : {1, 2, 64, 777}) {
      std::vector<float> f(n);
      std::vector<double> d(n);
      std::vector<uint64_t> pairs(n);
      std::vector<uint8_t> kept(n);
      std::vector<uint32_t> words(n);
      auto all = [&](auto&& equal) {
        for (uint64_t i = 0; i < n; i++) {
          if (!equal(i)) return false;
        }
        return true;
      };
      fill_words(words.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return words[i] == word(kSeed, kOffset, begin + i); }));
      fill_pairs(pairs.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return pairs[i] == pair(kSeed, kOffset, begin + i); }));
      fill_uniform_f32(f.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return f[i] == uniform_f32(kSeed, kOffset, begin + i); }));
      fill_normal_f32(f.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return f[i] == normal_f32(kSeed, kOffset, begin + i); }));
      fill_uniform_f64(d.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return d[i] == uniform_f64(kSeed, kOffset, begin + i); }));
      fill_normal_f64(d.data(), begin, begin + n, kSeed, kOffset);
      CHECK(all([&](uint64_t i) { return d[i] == normal_f64(kSeed, kOffset, begin + i); }));
      fill_keep(kept.data(), begin, begin + n, kSeed, kOffset, 0.3);
      CHECK(all([&](uint64_t i) { return (kept[i] != 0) == keep(kSeed, kOffset, begin + i, 0.3); }));
    }
  }
}

TEST_CASE("Every compiler gives these bits") {
  std::vector<float> f(20001);
  std::vector<double> d(20001);
  fill_uniform_f32(f.data(), 0, f.size(), kSeed, kOffset);
  CHECK(digest(f) == 0x283e78f39ab258ceull);
  fill_normal_f32(f.data(), 0, f.size(), kSeed, kOffset);
  CHECK(digest(f) == 0x40854187864bb549ull);
  fill_uniform_f64(d.data(), 0, d.size(), kSeed, kOffset);
  CHECK(digest(d) == 0xfba4f911f4fc7c0dull);
  fill_normal_f64(d.data(), 0, d.size(), kSeed, kOffset);
  CHECK(digest(d) == 0xd0d975d9b84f233ull);
}

TEST_CASE("Numbers are where they should be") {
  std::vector<float> u(200000), z(200000);
  fill_uniform_f32(u.data(), 0, u.size(), 3, 0);
  fill_normal_f32(z.data(), 0, z.size(), 3, 0);
  double mean = 0, variance = 0, fourth = 0;
  for (size_t i = 0; i < u.size(); i++) {
    REQUIRE((u[i] >= 0 && u[i] < 1));
    mean += z[i], variance += double(z[i]) * z[i], fourth += double(z[i]) * z[i] * z[i] * z[i];
  }
  double n = static_cast<double>(z.size());
  CHECK(std::abs(mean / n) < 0.01);
  CHECK(variance / n == Approx(1).margin(0.015));
  CHECK(fourth / n == Approx(3).margin(0.1));
  CHECK(between(1 - 0x1p-24f, 0.0f, 1e-30f) < 1e-30f);
  CHECK(between(0.999999940395f, 1.0f, 1.0000001f) == 1.0f);  // would round to high
  CHECK(to_integer(~uint64_t{0}, -5, 5) == 4);
  CHECK(to_integer(0, -5, 5) == -5);
  CHECK(to_integer(~uint64_t{0}, INT64_MIN, INT64_MAX) == INT64_MAX - 1);
}
