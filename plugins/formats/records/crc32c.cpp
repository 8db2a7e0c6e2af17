// SPDX-License-Identifier: Apache-2.0
#include "crc32c.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace formats {

namespace {

// Table k: what a byte does that k bytes follow.
using Tables = std::array<std::array<uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++) c = (c & 1) != 0 ? c >> 1 ^ 0x82F63B78u : c >> 1;
    tables[0][i] = c;
  }
  for (size_t k = 1; k < tables.size(); k++)
    for (size_t i = 0; i < 256; i++) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
  return tables;
}
constexpr Tables kTables = make_tables();

constexpr uint32_t by_tables(uint32_t c, const unsigned char* at, size_t bytes) {
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint32_t low = 0;
    for (uint32_t i = 0; i < 4; i++) low |= static_cast<uint32_t>(at[i]) << 8 * i;
    low ^= c;
    c = 0;
    for (size_t i = 0; i < 4; i++) c ^= kTables[7 - i][low >> 8 * i & 255] ^ kTables[3 - i][at[4 + i]];
  }
  for (; bytes > 0; at++, bytes--) c = kTables[0][(c ^ *at) & 255] ^ c >> 8;
  return c;
}

constexpr unsigned char kSample[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
static_assert(~by_tables(~0u, kSample, sizeof kSample) == 0xe3069283u);  // Rocksoft's model

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(uint32_t c, const unsigned char* at, size_t bytes) {
  uint64_t wide = c;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  c = static_cast<uint32_t>(wide);
  for (; bytes > 0; at++, bytes--) c = _mm_crc32_u8(c, *at);
  return c;
}
#endif

}  // namespace

uint32_t crc32c(const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return ~by_instruction(~0u, at, bytes);
#endif
  return ~by_tables(~0u, at, bytes);
}

}  // namespace formats
