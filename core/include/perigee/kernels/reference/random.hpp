// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/random.hpp: what operators draw; philox.hpp is the specification.
#pragma once

#include <algorithm>

#include "perigee/kernels/philox.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace pg::reference {

struct Draw {
  uint64_t seed, offset;
};

// [low, high): float64 draws in double, all else in float32; the 16-bit types from as many bits as they hold.
inline void uniform(Draw d, double low, double high, const Operand& y) {
  uint64_t n = static_cast<uint64_t>(y.count());
  if (y.dtype == PG_F64) {
    std::vector<double> out(n);
    philox::fill_uniform_f64(out.data(), 0, n, d.seed, d.offset);
    for (double& u : out) u = philox::between(u, low, high);
    return write(y, out);
  }
  std::vector<float> out(n);
  for (uint64_t i = 0; i < n; i++) {
    float u = y.dtype == PG_F16    ? philox::uniform_f16(d.seed, d.offset, i)
              : y.dtype == PG_BF16 ? philox::uniform_bf16(d.seed, d.offset, i)
                                   : philox::uniform_f32(d.seed, d.offset, i);
    out[i] = philox::between(u, static_cast<float>(low), static_cast<float>(high));
  }
  write(y, out);
}

inline void normal(Draw d, double mean, double deviation, const Operand& y) {
  uint64_t n = static_cast<uint64_t>(y.count());
  if (y.dtype == PG_F64) {
    std::vector<double> out(n);
    philox::fill_normal_f64(out.data(), 0, n, d.seed, d.offset);
    for (double& z : out) z = philox::fused(deviation, z, mean);
    return write(y, out);
  }
  std::vector<float> out(n);
  philox::fill_normal_f32(out.data(), 0, n, d.seed, d.offset);
  for (float& z : out) z = philox::fused(static_cast<float>(deviation), z, static_cast<float>(mean));
  write(y, out);
}

inline void exponential(Draw d, double rate, const Operand& y) {
  std::vector<double> out;
  for (uint64_t i = 0; i < static_cast<uint64_t>(y.count()); i++) {
    out.push_back(y.dtype == PG_F64 ? philox::exponential_f64(d.seed, d.offset, i, rate)
                                    : philox::exponential_f32(d.seed, d.offset, i, static_cast<float>(rate)));
  }
  write(y, out);
}

// Checks the probabilities of a row; answers their sum, added up one by one.
inline double total_of(const double* p, int64_t n, int64_t row, int64_t most) {
  double total = 0;
  int64_t possible = 0;
  for (int64_t c = 0; c < n; c++) {
    if (!(p[c] >= 0) || p[c] > 1.7976931348623157e308) {
      fail_argument(format("multinomial: p is %g at row %lld, category %lld; expected finite numbers from 0", p[c],
                           static_cast<long long>(row), static_cast<long long>(c)));
    }
    total += p[c];
    possible += p[c] > 0;
  }
  if (possible < most) {
    fail_argument(format("multinomial: row %lld has %lld categories of probability above 0; expected at least %lld",
                         static_cast<long long>(row), static_cast<long long>(possible), static_cast<long long>(most)));
  }
  return total;
}

inline void multinomial(Draw d, const Operand& p, int64_t samples, bool replacement, const Operand& y) {
  auto all = read<double>(p);
  int64_t n = p.shape.back(), rows = n == 0 ? 0 : p.count() / n;
  std::vector<int64_t> out;
  for (int64_t j = 0; j < rows; j++) {
    const double* chances = all.data() + j * n;
    double total = total_of(chances, n, j, replacement ? 1 : samples);
    if (replacement) {
      for (int64_t k = 0; k < samples; k++) {
        double goal = philox::uniform_f64(d.seed, d.offset, static_cast<uint64_t>(j * samples + k)) * total, sum = 0;
        int64_t c = 0;
        for (;; c++) {
          sum += chances[c];
          if (sum > goal || sum >= total) break;
        }
        out.push_back(c);
      }
      continue;
    }
    std::vector<std::pair<double, int64_t>> runners;
    for (int64_t c = 0; c < n; c++) {
      if (chances[c] == 0) continue;
      auto row = static_cast<uint64_t>(j), category = static_cast<uint64_t>(c);
      runners.emplace_back(philox::race(d.seed, d.offset, row, category, chances[c]), c);
    }
    std::sort(runners.begin(), runners.end());
    for (int64_t k = 0; k < samples; k++) out.push_back(runners[static_cast<size_t>(k)].second);
  }
  write(y, out);
}

inline void randint(Draw d, int64_t low, int64_t high, const Operand& y) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < y.count(); i++) {
    out.push_back(philox::integer(d.seed, d.offset, static_cast<uint64_t>(i), low, high));
  }
  write(y, out);
}

inline void randperm(Draw d, const Operand& y) {
  auto n = static_cast<uint64_t>(y.count());
  int bits = philox::bucket_bits(n);
  std::vector<std::vector<int64_t>> buckets(size_t{1} << bits);
  for (uint64_t i = 0; i < n; i++) {
    uint32_t bucket = philox::bucket_of(philox::word(d.seed, d.offset, i), bits);
    buckets[bucket].push_back(static_cast<int64_t>(i));
  }
  std::vector<int64_t> order;
  for (auto& bucket : buckets) {
    philox::shuffle(bucket.data(), order.size(), bucket.size(), d.seed, d.offset);
    order.insert(order.end(), bucket.begin(), bucket.end());
  }
  write(y, order);
}

// The elements of p; throws "p is 1.5 at position [4]; expected 0 to 1".
inline std::vector<double> probabilities(const Operand& p) {
  auto chance = read<double>(p);
  for (size_t i = 0; i < chance.size(); i++) {
    if (!(chance[i] >= 0 && chance[i] <= 1)) fail_argument(no_probability(chance[i], place_text(p.shape, i)));
  }
  return chance;
}

inline void bernoulli(Draw d, const Operand& p, const Operand& y) {
  auto chance = probabilities(p);
  std::vector<int64_t> out;
  for (uint64_t i = 0; i < chance.size(); i++) {
    bool hit = p.dtype == PG_F64 ? philox::uniform_f64(d.seed, d.offset, i) < chance[i]
                                 : philox::uniform_f32(d.seed, d.offset, i) < static_cast<float>(chance[i]);
    out.push_back(hit);
  }
  write(y, out);
}

// y = x mask / (1 - p). Not training: y = x, and the mask is all ones.
inline void dropout(Draw d, const Operand& x, double p, bool training, const Operand& y, const Operand& mask) {
  if (!(p >= 0 && p <= 1)) fail_argument(format("dropout: p is %g; expected 0 to 1", p));
  uint64_t n = static_cast<uint64_t>(x.count());
  std::vector<uint8_t> keep(n, 1);
  if (training) philox::fill_keep(keep.data(), 0, n, d.seed, d.offset, p);
  with_compute(x.dtype, [&](auto tag) {
    using W = decltype(tag);
    W scale = training ? static_cast<W>(1 / (1 - p)) : W(1);
    auto values = read<W>(x);
    for (uint64_t i = 0; i < n; i++) values[i] = keep[i] ? values[i] * scale : W(0);
    write(y, values);
  });
  if (mask) write(mask, std::vector<int64_t>(keep.begin(), keep.end()));
}

inline void dropout_mask(Draw d, double p, const Operand& keep) {
  std::vector<uint8_t> bits(static_cast<size_t>(keep.count()));
  philox::fill_keep(bits.data(), 0, bits.size(), d.seed, d.offset, p);
  write(keep, std::vector<int64_t>(bits.begin(), bits.end()));
}

}  // namespace pg::reference
