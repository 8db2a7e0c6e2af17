// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/narrow_*.cpp are asked for: rows of x by a weight of small whole numbers, which is read as it lies,
// once.
#pragma once

#include <cstdint>

namespace cpu {

constexpr int64_t kNarrowColumns = 4;  // results of a row that are computed side by side

struct NarrowRows {
  // [columns, groups * size]: int8, or int4 plus 8, two in a byte, the first in the lower half, or of floats' ways a
  // code of float8 each, whose groups then are whole blocks.
  const uint8_t* weight;
  const void* scale;  // [columns, groups]
  bool bf16_scale;    // else float32
  int64_t columns, groups, size, rows;
  // x as lay_out wrote it: rows of `groups` groups of `padded` elements.
  const void* x;
  int64_t padded;
  // Of whole x: what is added to a group's sum, and what a row's sums are multiplied by.
  const int32_t* correction;  // [rows, groups]
  const float* x_scale;       // [rows]
  const float* bias;          // [columns], or NULL
  float* y;                   // [rows, columns]
};

// One way to compute it. Groups have at least kNarrowGroup numbers, of whole x at most kWholeGroup.
struct NarrowLoop {
  int64_t block = 0;  // numbers of a group that are taken at a time: x is padded to multiples of it. 0: not there
  int64_t bytes = 0;  // of an element of x
  // A group of x, float or int8_t, padded; what of the sum the whole numbers' own zero makes.
  int32_t (*lay_out)(const void* group, int64_t size, int64_t padded, void* out) = nullptr;
  // Results of columns [begin, end) times kNarrowColumns.
  void (*multiply)(const NarrowRows& t, int64_t begin, int64_t end) = nullptr;
};

constexpr int64_t kNarrowGroup = 16, kWholeGroup = int64_t{1} << 17;  // of int8 times uint8: the sums fit int32

// A row as whole numbers: q = round(x / scale) + zero kept within low..high, minus `shift`, which makes them int8.
struct WholeRow {
  float scale, zero, low, high, shift;
  // The whole number that a float becomes, before `shift`; NaN is 0. Loops copy the struct first: what they write may
  // alias it.
  [[gnu::always_inline]] float whole(float x) const {
    constexpr float kRounds = 12582912;  // 1.5 * 2^23: what is added to it loses its fraction, halves to the even one
    float q = x / scale;
    q = q < -1024 ? -1024.0F : q;
    q = q > 1024 ? 1024.0F : q;
    q = (q + kRounds) - kRounds + zero;
    q = q == q ? q : 0;
    q = q < low ? low : q;
    return q > high ? high : q;
  }
};

struct NarrowLoops {
  NarrowLoop floats[4];                                                    // by format: NarrowFormat
  NarrowLoop whole[2][2];                                                  // by format, and by blocks: smaller, larger
  void (*extremes)(const float* row, int64_t n, float* low, float* high);  // with 0; NaN where there is one
  void (*to_whole)(const float* row, int64_t n, const WholeRow& how, int8_t* out);
  // `n` numbers of a weight, times a scale: from number `first` of the row at `weight`.
  void (*widen[2])(const uint8_t* weight, int64_t first, int64_t n, float scale, float* out);
};

}  // namespace cpu
