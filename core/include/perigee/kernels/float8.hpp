// SPDX-License-Identifier: Apache-2.0
// The two formats of float8 as they lie in memory, and their conversions to and from float, as float16.hpp has those of
// 16 bits: branch-free, rounding to even. What is beyond the largest number, infinities too, becomes that number (448)
// in e4m3fn, which has no infinities, and infinity in e5m2 (from 61440 on): as PyTorch 2.15 has it.
#pragma once

#include "perigee/kernels/float16.hpp"

namespace pg {

struct f8e4m3fn {
  uint8_t bits;
};
struct f8e5m2 {
  uint8_t bits;
};

PG_HD float to_float(f8e4m3fn x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fu) << 20;
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x80u) << 24;
  const uint32_t bits = float_bits(bits_float(magnitude) * 0x1p120f) | (magnitude == 0x07f00000u ? 0x7fc00000u : 0u);
  return bits_float(bits | sign);
}
PG_HD float to_float(f8e5m2 x) {  // the upper byte of a float16
  return to_float(f16{static_cast<uint16_t>(static_cast<uint32_t>(x.bits) << 8)});
}

PG_HD f8e4m3fn to_f8e4m3fn(float x) {
  const uint32_t bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  // Below 2^-6: adding 2^14 leaves the subnormal's bits, rounded, at the end of the mantissa.
  const uint32_t small = float_bits(bits_float(magnitude) + 0x1p14f) - 0x46800000u;
  uint32_t result = magnitude < 0x3c800000u ? small : normal;
  result = magnitude > 0x43e00000u ? 0x7eu : result;
  result = magnitude > 0x7f800000u ? 0x7fu : result;
  return {static_cast<uint8_t>(result | sign)};
}
PG_HD f8e5m2 to_f8e5m2(float x) {
  const uint32_t bits = float_bits(x), sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
  const uint32_t small = float_bits(bits_float(magnitude) + 0x1p7f) - 0x43000000u;  // below 2^-14
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x47800000u ? 0x7cu : result;
  result = magnitude > 0x7f800000u ? 0x7fu : result;
  return {static_cast<uint8_t>(result | sign)};
}

}  // namespace pg
