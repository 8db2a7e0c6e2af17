// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/philox_fill.hpp: whole ranges of random elements on a processor, equal bit for bit to the definitions
// in philox.hpp (which includes this file) and written so that compilers vectorise them.
#pragma once

#include <cstdint>
#include <cstring>

namespace pg::philox {

constexpr int kLanes = 16;             // blocks generated side by side
constexpr int kRunWords = 4 * kLanes;  // words of one run

// The words of kLanes blocks from `first` on, in order.
static inline void run(uint64_t seed, uint64_t offset, uint64_t first, uint32_t* out) {
  uint32_t a[kLanes], b[kLanes], c[kLanes], d[kLanes];
  for (int i = 0; i < kLanes; i++) {
    uint64_t at = offset + first + static_cast<uint64_t>(i);
    a[i] = static_cast<uint32_t>(at);
    b[i] = static_cast<uint32_t>(at >> 32);
    c[i] = d[i] = 0;
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

// Calls body(words, at, count) for consecutive stretches of the words [begin, end): words[0 .. count) are those at
// position `at`. Stretches begin and end on whole runs but for the first and the last.
template <class Body>
static inline void each_run(uint64_t seed, uint64_t offset, uint64_t begin, uint64_t end, Body&& body) {
  uint32_t words[kRunWords];
  while (begin < end) {
    uint64_t start = begin / kRunWords * kRunWords, stop = start + kRunWords < end ? start + kRunWords : end;
    run(seed, offset, start / 4, words);
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
    run(seed, offset, start / 4, words);
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
    run(seed, offset, start / 2, words);
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
