// SPDX-License-Identifier: Apache-2.0
// What the codes of the two formats of float8 stand for: a sign, four bits of exponent and three of fraction without
// infinities, or five and two as float16's upper byte.
#pragma once

#include <cstdint>
#include <limits>

namespace cpu {

class Float8Table {
 public:
  constexpr Float8Table(int fraction_bits, float least, int infinity, int first_nan) {
    const int fractions = 1 << fraction_bits;
    for (int code = 0; code < 128; code++) {
      float x = static_cast<float>(code % fractions + (code >= fractions ? fractions : 0)) * least /
                static_cast<float>(fractions);
      for (int e = code / fractions; e > 1; e--) x *= 2;
      if (code == infinity) x = std::numeric_limits<float>::infinity();
      if (code >= first_nan) x = std::numeric_limits<float>::quiet_NaN();
      value_[code] = x, value_[code + 128] = -x;
    }
  }
  constexpr float operator[](uint8_t code) const { return value_[code]; }

 private:
  float value_[256] = {};
};

inline constexpr Float8Table kFloat8[2] = {{3, 0x1p-6F, -1, 127}, {2, 0x1p-14F, 124, 125}};  // e4m3fn, e5m2

// `n` numbers times a scale, from number `first` of the row at `weight`.
inline void widen_float8(const Float8Table& table, const uint8_t* weight, int64_t first, int64_t n, float scale,
                         float* out) {
  for (int64_t i = 0; i < n; i++) out[i] = table[weight[first + i]] * scale;
}

}  // namespace cpu
