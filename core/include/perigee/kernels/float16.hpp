// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating types as they lie in memory, and their conversions to and from float.
// The conversions are branch-free, so that compilers vectorise loops over them; NaN stays NaN, rounding is to even.
#pragma once

#include <cstdint>
#include <cstring>

#include "perigee/kernels/hd.hpp"

namespace pg {

struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

PG_HD uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
PG_HD float bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

PG_HD float to_float(bf16 x) { return bits_float(static_cast<uint32_t>(x.bits) << 16); }
// Chosen as 32 bits, with one shift behind it, and NaN told by a comparison of floats: half the instructions of a
// vector that a choice of 16 bits takes.
PG_HD bf16 to_bf16(float x) {
  uint32_t bits = float_bits(x), rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<uint16_t>((x != x ? bits | 0x400000u : rounded) >> 16)};
}

PG_HD float to_float(f16 x) {
  // The exponent is moved by a multiplication, which also normalises subnormals.
  uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fffu) << 13;
  uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  float scaled = bits_float(magnitude) * 0x1p112f;
  uint32_t bits = float_bits(scaled) | (magnitude >= 0x0f800000u ? 0x7f800000u : 0u);
  return bits_float(bits | sign);
}
PG_HD f16 to_f16(float x) {
  uint32_t bits = float_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: adding 0.5 leaves the subnormal's bits, rounded, at the end of the mantissa.
  uint32_t small = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t result = magnitude < 0x38800000u ? small : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 and more round to infinity
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return {static_cast<uint16_t>(result | sign)};
}

}  // namespace pg
