// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/philox.hpp: the random numbers of every device, as a function of (seed, offset, element).
//
// SPECIFICATION. Generator: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// 2011). Key: (low 32 bits of seed, high 32 bits). Block b has the counter (low(offset + b), high(offset + b), 0, 0)
// and holds four words. With i the row-major position of an element in the *whole* output:
//
//   word(i)       word i % 4 of block i / 4
//   pair(i)       word(2i) + 2^32 word(2i + 1)
//   uniform_f32   (word(i) >> 8) 2^-24                        in [0, 1)
//   uniform_f16   (word(i) >> 21) 2^-11, uniform_bf16 (word(i) >> 24) 2^-8, both exact in their dtype
//   uniform_f64   (pair(i) >> 11) 2^-53                       in [0, 1)
//   between       fma(u, high - low, low) in float32 (float64 for float64), one step below `high` where it rounds to it
//   normal_f32    Box-Muller: word(i & ~1) gives the radius, word(i | 1) the angle; even i takes the cosine, odd the
//                 sine
//   normal_f64    the same with pair(); scaled is fma(standard deviation, z, mean). 16-bit normals are rounded float32
//   integer       low + floor(pair(i) (high - low) / 2^64): bias below (high - low) / 2^64
//   keep          of dropout: uniform_f32(i) >= float(p)
//   bernoulli     uniform_f32(i) < float(p), float64: uniform_f64(i) < p
//
//   permutation   of n, in 2^k buckets, k the least with n <= 2^k 2048: number i goes into bucket
//                 floor(word(i) 2^k / 2^32), in order. The buckets stand one after the other, and each is shuffled: at
//                 the positions p = s, s + 1, ... of one that begins at s, p changes places with
//                 s + floor(v(p) (p - s + 1) / 2^32), v(p) word p % 4 of the block with the counter
//                 (low(offset + p / 4), high(offset + p / 4), 1, 0). Bias below (size of a bucket) / 2^32
//
//   exponential   r r / 2 / rate, r the radius of Box-Muller for word(i), float64: pair(i)
//   categories    with replacement: the first c whose sum p(0) + ... + p(c), added up one by one in float64, is above
//                 uniform_f64(i) times the whole sum, i the position in the output
//                 without: the k categories c of row j with the smallest race(j, c) = r r / p(c) in float64, in that
//                 order (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006); of equal ones
//                 the first. r is the radius for half c % 2 (words 0 and 1, or 2 and 3) of the block with the counter
//                 (low(offset + j), high(offset + j), c / 2 + 1, 0), which no other draw uses
//
// An operator on n elements touches fewer than n + 1 blocks, so a host that advances `offset` by max(1, n) never reuses
// one.
//
// BITS. Only correctly rounded operations (+ - * / sqrt, conversions, explicit fma) and no product that feeds a sum: so
// contraction cannot change a bit, and g++, clang++ and nvcc agree. Never compile it with -ffast-math. For speed:
// -mfma -fno-math-errno.
#pragma once

#include <cstdint>
#include <cstring>

#include "perigee/kernels/hd.hpp"

namespace pg::philox {

struct Block {
  uint32_t word[4];
};

// ---- the generator ----

constexpr uint32_t kMultiply0 = 0xD2511F53u, kMultiply1 = 0xCD9E8D57u;  // the paper's constants
constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;          // golden ratio, sqrt(3) - 1
constexpr int kRounds = 10;

// The raw function, for tests against published vectors.
PG_HD_INLINE Block generate(Block counter, uint32_t key0, uint32_t key1) {
  uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  for (int round = 0; round < kRounds; round++) {
    uint64_t p = static_cast<uint64_t>(a) * kMultiply0, q = static_cast<uint64_t>(c) * kMultiply1;
    a = static_cast<uint32_t>(q >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(q);
    c = static_cast<uint32_t>(p >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(p);
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return {{a, b, c, d}};
}

PG_HD_INLINE Block block(uint64_t seed, uint64_t offset, uint64_t index) {
  uint64_t at = offset + index;
  return generate({{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 0, 0}}, static_cast<uint32_t>(seed),
                  static_cast<uint32_t>(seed >> 32));
}

// Blocks of a second series, for draws that are made besides those of `block`.
PG_HD_INLINE Block second_block(uint64_t seed, uint64_t offset, uint64_t index) {
  uint64_t at = offset + index;
  return generate({{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), 1, 0}}, static_cast<uint32_t>(seed),
                  static_cast<uint32_t>(seed >> 32));
}

PG_HD_INLINE uint32_t word(uint64_t seed, uint64_t offset, uint64_t i) {
  Block all = block(seed, offset, i >> 2);
  return all.word[i & 3];
}

PG_HD_INLINE uint64_t join(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

PG_HD_INLINE uint64_t pair(uint64_t seed, uint64_t offset, uint64_t i) {
  Block all = block(seed, offset, i >> 1);
  return (i & 1) ? join(all.word[2], all.word[3]) : join(all.word[0], all.word[1]);
}

// ---- exact arithmetic ----

#if defined(__CUDA_ARCH__)
PG_HD_INLINE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PG_HD_INLINE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
PG_HD_INLINE float divide(float a, float b) { return __fdiv_rn(a, b); }
PG_HD_INLINE double divide(double a, double b) { return __ddiv_rn(a, b); }
PG_HD_INLINE float root(float a) { return __fsqrt_rn(a); }
PG_HD_INLINE double root(double a) { return __dsqrt_rn(a); }
PG_HD_INLINE uint64_t multiply_high(uint64_t a, uint64_t b) { return __umul64hi(a, b); }
#else
PG_HD_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PG_HD_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
PG_HD_INLINE float divide(float a, float b) { return a / b; }
PG_HD_INLINE double divide(double a, double b) { return a / b; }
PG_HD_INLINE float root(float a) { return __builtin_sqrtf(a); }
PG_HD_INLINE double root(double a) { return __builtin_sqrt(a); }
PG_HD_INLINE uint64_t multiply_high(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
}
#endif

template <class To, class From>
PG_HD_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// sqrt(-2 log(u)) for u in (0, 1]. u = 2^k m with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(s), s = (m - 1) / (m +
// 1), by artanh's series: |s| < 0.172, so five terms leave 4e-9 in float32 and eleven 1e-18 in float64.
PG_HD_INLINE float radius(float u) {
  const uint32_t half_root = 0x3f3504f3u;  // bits of sqrt(1/2)
  uint32_t shifted = bits_as<uint32_t>(u) + (0x3f800000u - half_root);
  float k = static_cast<float>(static_cast<int32_t>(shifted >> 23) - 127);
  float f = bits_as<float>((shifted & 0x7fffffu) + half_root) - 1.0f;
  float s = divide(f, 2.0f + f), z = s * s;
  float p = 1.0f / 9;
  p = fused(p, z, 1.0f / 7);
  p = fused(p, z, 1.0f / 5);
  p = fused(p, z, 1.0f / 3);
  p = fused(p, z, 1.0f);
  float log = fused(k, 0.693147180559945309f, 2.0f * (s * p));
  return root(-2.0f * log);
}

PG_HD_INLINE double radius(double u) {
  const uint64_t half_root = 0x3fe6a09e667f3bcdull;
  uint64_t shifted = bits_as<uint64_t>(u) + (0x3ff0000000000000ull - half_root);
  double k = static_cast<double>(static_cast<int32_t>(shifted >> 52) - 1023);
  double f = bits_as<double>((shifted & 0xfffffffffffffull) + half_root) - 1.0;
  double s = divide(f, 2.0 + f), z = s * s;
  double p = 1.0 / 21;
  p = fused(p, z, 1.0 / 19);
  p = fused(p, z, 1.0 / 17);
  p = fused(p, z, 1.0 / 15);
  p = fused(p, z, 1.0 / 13);
  p = fused(p, z, 1.0 / 11);
  p = fused(p, z, 1.0 / 9);
  p = fused(p, z, 1.0 / 7);
  p = fused(p, z, 1.0 / 5);
  p = fused(p, z, 1.0 / 3);
  p = fused(p, z, 1.0);
  double log = fused(k, 0.693147180559945309, 2.0 * (s * p));
  return root(-2.0 * log);
}

// Taylor's series of sine and cosine for |x| <= pi/4.
PG_HD_INLINE float sine(float x) {
  float z = x * x, p = 1.0f / 362880;
  p = fused(p, z, -1.0f / 5040);
  p = fused(p, z, 1.0f / 120);
  p = fused(p, z, -1.0f / 6);
  return fused(x * z, p, x);
}

PG_HD_INLINE float cosine(float x) {
  float z = x * x, p = 1.0f / 40320;
  p = fused(p, z, -1.0f / 720);
  p = fused(p, z, 1.0f / 24);
  p = fused(p, z, -0.5f);
  return fused(z, p, 1.0f);
}

PG_HD_INLINE double sine(double x) {
  double z = x * x, p = 1.0 / 355687428096000;
  p = fused(p, z, -1.0 / 1307674368000);
  p = fused(p, z, 1.0 / 6227020800);
  p = fused(p, z, -1.0 / 39916800);
  p = fused(p, z, 1.0 / 362880);
  p = fused(p, z, -1.0 / 5040);
  p = fused(p, z, 1.0 / 120);
  p = fused(p, z, -1.0 / 6);
  return fused(x * z, p, x);
}

PG_HD_INLINE double cosine(double x) {
  double z = x * x, p = 1.0 / 20922789888000;
  p = fused(p, z, -1.0 / 87178291200);
  p = fused(p, z, 1.0 / 479001600);
  p = fused(p, z, -1.0 / 3628800);
  p = fused(p, z, 1.0 / 40320);
  p = fused(p, z, -1.0 / 720);
  p = fused(p, z, 1.0 / 24);
  p = fused(p, z, -0.5);
  return fused(z, p, 1.0);
}

// Box-Muller. `angle` counts 2^-32 (2^-64) turns: its nearest quarter turn is taken off exactly, in integers.
PG_HD_INLINE void normal_pair(uint32_t length, uint32_t angle, float* even, float* odd) {
  float r = radius(fused(static_cast<float>(length), 0x1p-32f, 0x1p-33f));
  uint32_t quarter = (angle + 0x20000000u) >> 30;
  float x = static_cast<float>(static_cast<int32_t>(angle - (quarter << 30))) *
            static_cast<float>(6.283185307179586477 * 0x1p-32);
  float s = sine(x), c = cosine(x);
  float u = (quarter & 1) ? s : c, v = (quarter & 1) ? c : s;
  *even = r * (((quarter + 1) & 2) ? -u : u);
  *odd = r * ((quarter & 2) ? -v : v);
}

PG_HD_INLINE void normal_pair(uint64_t length, uint64_t angle, double* even, double* odd) {
  double r = radius(fused(static_cast<double>(static_cast<int64_t>(length >> 11)), 0x1p-53, 0x1p-54));
  uint64_t quarter = (angle + 0x2000000000000000ull) >> 62;
  double x = static_cast<double>(static_cast<int64_t>(angle - (quarter << 62))) * (6.283185307179586477 * 0x1p-64);
  double s = sine(x), c = cosine(x);
  double u = (quarter & 1) ? s : c, v = (quarter & 1) ? c : s;
  *even = r * (((quarter + 1) & 2) ? -u : u);
  *odd = r * ((quarter & 2) ? -v : v);
}

// ---- from words to values ----

// sqrt(-2 log(u)) for a u in (0, 1] made of these bits.
PG_HD_INLINE float to_radius(uint32_t w) { return radius(fused(static_cast<float>(w), 0x1p-32f, 0x1p-33f)); }
PG_HD_INLINE double to_radius(uint64_t pair) {
  return radius(fused(static_cast<double>(static_cast<int64_t>(pair >> 11)), 0x1p-53, 0x1p-54));
}
PG_HD_INLINE float to_exponential(uint32_t w, float rate) {
  float r = to_radius(w);
  return divide(0.5f * (r * r), rate);
}
PG_HD_INLINE double to_exponential(uint64_t pair, double rate) {
  double r = to_radius(pair);
  return divide(0.5 * (r * r), rate);
}

PG_HD_INLINE float to_uniform(uint32_t w) { return static_cast<float>(static_cast<int32_t>(w >> 8)) * 0x1p-24f; }
PG_HD_INLINE float to_uniform_f16(uint32_t w) { return static_cast<float>(static_cast<int32_t>(w >> 21)) * 0x1p-11f; }
PG_HD_INLINE float to_uniform_bf16(uint32_t w) { return static_cast<float>(static_cast<int32_t>(w >> 24)) * 0x1p-8f; }
PG_HD_INLINE double to_uniform(uint64_t pair) {
  return static_cast<double>(static_cast<int64_t>(pair >> 11)) * 0x1p-53;
}
PG_HD_INLINE int64_t to_integer(uint64_t pair, int64_t low, int64_t high) {
  uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + multiply_high(pair, range));
}

// The next number towards minus infinity of a finite x.
PG_HD_INLINE float step_below(float x) {
  uint32_t b = bits_as<uint32_t>(x);
  return bits_as<float>(x == 0.0f ? 0x80000001u : (b >> 31) ? b + 1 : b - 1);
}
PG_HD_INLINE double step_below(double x) {
  uint64_t b = bits_as<uint64_t>(x);
  return bits_as<double>(x == 0.0 ? 0x8000000000000001ull : (b >> 63) ? b + 1 : b - 1);
}

PG_HD_INLINE float between(float u, float low, float high) {
  float x = fused(u, high - low, low);
  return x < high || !(low < high) ? x : step_below(high);
}
PG_HD_INLINE double between(double u, double low, double high) {
  double x = fused(u, high - low, low);
  return x < high || !(low < high) ? x : step_below(high);
}

// ---- one element: the definitions ----

PG_HD_INLINE float uniform_f32(uint64_t seed, uint64_t offset, uint64_t i) { return to_uniform(word(seed, offset, i)); }
PG_HD_INLINE float uniform_f16(uint64_t seed, uint64_t offset, uint64_t i) {
  return to_uniform_f16(word(seed, offset, i));
}
PG_HD_INLINE float uniform_bf16(uint64_t seed, uint64_t offset, uint64_t i) {
  return to_uniform_bf16(word(seed, offset, i));
}
PG_HD_INLINE double uniform_f64(uint64_t seed, uint64_t offset, uint64_t i) {
  return to_uniform(pair(seed, offset, i));
}

PG_HD_INLINE float normal_f32(uint64_t seed, uint64_t offset, uint64_t i) {
  Block b = block(seed, offset, i >> 2);
  float even, odd;
  normal_pair((i & 2) ? b.word[2] : b.word[0], (i & 2) ? b.word[3] : b.word[1], &even, &odd);
  return (i & 1) ? odd : even;
}

PG_HD_INLINE double normal_f64(uint64_t seed, uint64_t offset, uint64_t i) {
  Block b = block(seed, offset, i >> 1);
  double even, odd;
  normal_pair(join(b.word[0], b.word[1]), join(b.word[2], b.word[3]), &even, &odd);
  return (i & 1) ? odd : even;
}

PG_HD_INLINE int64_t integer(uint64_t seed, uint64_t offset, uint64_t i, int64_t low, int64_t high) {
  return to_integer(pair(seed, offset, i), low, high);
}

PG_HD_INLINE float exponential_f32(uint64_t seed, uint64_t offset, uint64_t i, float rate) {
  return to_exponential(word(seed, offset, i), rate);
}
PG_HD_INLINE double exponential_f64(uint64_t seed, uint64_t offset, uint64_t i, double rate) {
  return to_exponential(pair(seed, offset, i), rate);
}

// Permutations of n: bits of the number of a bucket, the bucket of a number with this word, and the place, counted from
// the bucket's first, that its place number `at` changes with.
constexpr uint64_t kBucket = 2048;
PG_HD_INLINE int bucket_bits(uint64_t n) {
  int bits = 0;
  while (n > kBucket << bits) bits++;
  return bits;
}
PG_HD_INLINE uint32_t bucket_of(uint32_t w, int bits) {
  return static_cast<uint32_t>(static_cast<uint64_t>(w) << bits >> 32);
}
PG_HD_INLINE uint32_t exchange(uint32_t w, uint64_t at) { return static_cast<uint32_t>(w * (at + 1) >> 32); }

// Category c of row j, of probability p > 0: the smallest ones are drawn.
PG_HD_INLINE double race(uint64_t seed, uint64_t offset, uint64_t j, uint64_t c, double p) {
  uint64_t at = offset + j;
  Block b =
      generate({{static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32), static_cast<uint32_t>(c / 2 + 1), 0}},
               static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
  double r = to_radius((c & 1) ? join(b.word[2], b.word[3]) : join(b.word[0], b.word[1]));
  return divide(r * r, p);
}

PG_HD_INLINE bool keep(uint64_t seed, uint64_t offset, uint64_t i, double p) {
  return uniform_f32(seed, offset, i) >= static_cast<float>(p);
}

}  // namespace pg::philox

#include "perigee/kernels/philox_fill.hpp"
