// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/philox_fill.hpp: whole ranges of random elements on a processor, equal bit for bit to the definitions
// in philox.hpp (which includes this file) and written so that compilers vectorise them.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace pg::philox {

constexpr int kLanes = 16;             // blocks generated side by side
constexpr int kRunWords = 4 * kLanes;  // words of one run

// The words of kLanes blocks from `first` on, in order; of the series whose counters have `series` third.
#if defined(__AVX2__) && !defined(__CUDACC__)
// A word takes the lower half of 64 bits, which is what the vectors' products read; the upper halves hold anything. (A
// compiler that does not know this makes a sixth of the speed.)
static inline void run(uint64_t seed, uint64_t offset, uint64_t first, uint32_t series, uint32_t* out) {
  constexpr int kVectors = kLanes / 4;
  const __m256i multiply0 = _mm256_set1_epi64x(kMultiply0), multiply1 = _mm256_set1_epi64x(kMultiply1);
  __m256i a[kVectors], b[kVectors], c[kVectors], d[kVectors];
  for (int i = 0; i < kVectors; i++) {
    a[i] = _mm256_add_epi64(_mm256_set1_epi64x(static_cast<int64_t>(offset + first) + 4 * i),
                            _mm256_set_epi64x(3, 2, 1, 0));
    b[i] = _mm256_srli_epi64(a[i], 32);
    c[i] = _mm256_set1_epi64x(series);
    d[i] = _mm256_setzero_si256();
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < kRounds; round++) {
    const __m256i low = _mm256_set1_epi64x(key0), high = _mm256_set1_epi64x(key1);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; i++) {
      __m256i p = _mm256_mul_epu32(a[i], multiply0), q = _mm256_mul_epu32(c[i], multiply1);
      a[i] = _mm256_xor_si256(_mm256_srli_epi64(q, 32), _mm256_xor_si256(b[i], low));
      b[i] = q;
      c[i] = _mm256_xor_si256(_mm256_srli_epi64(p, 32), _mm256_xor_si256(d[i], high));
      d[i] = p;
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (int i = 0; i < kVectors; i++) {
    __m256i ab = _mm256_blend_epi32(a[i], _mm256_slli_epi64(b[i], 32), 0xaa);
    __m256i cd = _mm256_blend_epi32(c[i], _mm256_slli_epi64(d[i], 32), 0xaa);
    __m256i even = _mm256_unpacklo_epi64(ab, cd), odd = _mm256_unpackhi_epi64(ab, cd);
    auto* to = reinterpret_cast<__m256i*>(out + 16 * i);
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
  }
}
#else
static inline void run(uint64_t seed, uint64_t offset, uint64_t first, uint32_t series, uint32_t* out) {
  uint32_t a[kLanes], b[kLanes], c[kLanes], d[kLanes];
  for (int i = 0; i < kLanes; i++) {
    uint64_t at = offset + first + static_cast<uint64_t>(i);
    a[i] = static_cast<uint32_t>(at);
    b[i] = static_cast<uint32_t>(at >> 32);
    c[i] = series;
    d[i] = 0;
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; round++) {
    for (int i = 0; i < kLanes; i++) {
      uint64_t p = static_cast<uint64_t>(a[i]) * kMultiply0, q = static_cast<uint64_t>(c[i]) * kMultiply1;
      a[i] = static_cast<uint32_t>(q >> 32) ^ b[i] ^ key0;
      b[i] = static_cast<uint32_t>(q);
      c[i] = static_cast<uint32_t>(p >> 32) ^ d[i] ^ key1;
      d[i] = static_cast<uint32_t>(p);
    }
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  for (int i = 0; i < kLanes; i++) {
    out[4 * i] = a[i];
    out[4 * i + 1] = b[i];
    out[4 * i + 2] = c[i];
    out[4 * i + 3] = d[i];
  }
}
#endif

// Calls body(words, at, count) for consecutive stretches of the words [begin, end): words[0 .. count) are those at
// position `at`. Stretches begin and end on whole runs but for the first and the last.
template <uint32_t kSeries = 0, class Body>
static inline void each_run(uint64_t seed, uint64_t offset, uint64_t begin, uint64_t end, Body&& body) {
  uint32_t words[kRunWords];
  while (begin < end) {
    uint64_t start = begin / kRunWords * kRunWords, stop = start + kRunWords < end ? start + kRunWords : end;
    run(seed, offset, start / 4, kSeries, words);
    body(words + (begin - start), begin, static_cast<int>(stop - begin));
    begin = stop;
  }
}

// out[0 .. end - begin) are the elements [begin, end).
static inline void fill_words(uint32_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  each_run(seed, offset, begin, end, [&](const uint32_t* words, uint64_t at, int count) {
    memcpy(out + (at - begin), words, static_cast<size_t>(count) * sizeof(uint32_t));
  });
}

static inline void fill_pairs(uint64_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  each_run(seed, offset, 2 * begin, 2 * end, [&](const uint32_t* words, uint64_t at, int count) {
    uint64_t* to = out + (at / 2 - begin);
    for (int i = 0; i < count / 2; i++) to[i] = join(words[2 * i], words[2 * i + 1]);
  });
}

// One bucket of a permutation, which begins at position `first`.
template <class T>
static inline void shuffle(T* bucket, uint64_t first, uint64_t count, uint64_t seed, uint64_t offset) {
  each_run<1>(seed, offset, first, first + count, [&](const uint32_t* words, uint64_t p, int n) {
    uint64_t at = p - first;
    for (int i = 0; i < n; i++) {
      uint64_t here = at + static_cast<uint64_t>(i), there = exchange(words[i], here);
      T moved = bucket[here];
      bucket[here] = bucket[there];
      bucket[there] = moved;
    }
  });
}

static inline void fill_uniform_f32(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  each_run(seed, offset, begin, end, [&](const uint32_t* words, uint64_t at, int count) {
    float* to = out + (at - begin);
    for (int i = 0; i < count; i++) to[i] = to_uniform(words[i]);
  });
}

static inline void fill_uniform_f64(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  each_run(seed, offset, 2 * begin, 2 * end, [&](const uint32_t* words, uint64_t at, int count) {
    double* to = out + (at / 2 - begin);
    for (int i = 0; i < count / 2; i++) to[i] = to_uniform(join(words[2 * i], words[2 * i + 1]));
  });
}

// Dropout's mask: 1 where the element is kept.
static inline void fill_keep(uint8_t* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset, double p) {
  float limit = static_cast<float>(p);
  each_run(seed, offset, begin, end, [&](const uint32_t* words, uint64_t at, int count) {
    uint8_t* to = out + (at - begin);
    for (int i = 0; i < count; i++) to[i] = to_uniform(words[i]) >= limit;
  });
}

// Elements come in pairs, so both ends may cut one in two: whole runs are computed and the wanted part is kept.
static inline void fill_normal_f32(float* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  uint32_t words[kRunWords], length[kRunWords / 2], angle[kRunWords / 2];
  float even[kRunWords / 2], odd[kRunWords / 2], whole[kRunWords];
  for (uint64_t start = begin / kRunWords * kRunWords; start < end; start += kRunWords) {
    run(seed, offset, start / 4, 0, words);
    for (int i = 0; i < kRunWords / 2; i++) length[i] = words[2 * i], angle[i] = words[2 * i + 1];
    for (int i = 0; i < kRunWords / 2; i++) normal_pair(length[i], angle[i], &even[i], &odd[i]);
    for (int i = 0; i < kRunWords / 2; i++) whole[2 * i] = even[i], whole[2 * i + 1] = odd[i];
    uint64_t from = start < begin ? begin : start, stop = start + kRunWords < end ? start + kRunWords : end;
    memcpy(out + (from - begin), whole + (from - start), (stop - from) * sizeof(float));
  }
}

static inline void fill_normal_f64(double* out, uint64_t begin, uint64_t end, uint64_t seed, uint64_t offset) {
  constexpr int kElements = kRunWords / 2;
  uint32_t words[kRunWords];
  double even[kLanes], odd[kLanes], whole[kElements];
  for (uint64_t start = begin / kElements * kElements; start < end; start += kElements) {
    run(seed, offset, start / 2, 0, words);
    for (int i = 0; i < kLanes; i++) {
      const uint32_t* w = words + 4 * i;
      normal_pair(join(w[0], w[1]), join(w[2], w[3]), &even[i], &odd[i]);
    }
    for (int i = 0; i < kLanes; i++) whole[2 * i] = even[i], whole[2 * i + 1] = odd[i];
    uint64_t from = start < begin ? begin : start, stop = start + kElements < end ? start + kElements : end;
    memcpy(out + (from - begin), whole + (from - start), (stop - from) * sizeof(double));
  }
}

}  // namespace pg::philox
