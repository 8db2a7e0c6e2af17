// SPDX-License-Identifier: Apache-2.0
// Rows of floats by a weight of small whole numbers: bound by reading the weight, so it is widened in registers.
#include "../../narrow_rows.hpp"
#include "narrow.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
constexpr int64_t kLanes = kVectorLanes<float>;
using Floats = Vector<float>;

// kLanes bytes of a weight; nothing behind `end` is read, where there is one.
[[gnu::always_inline]] inline __m128i load_bytes(const uint8_t* p, const uint8_t* end) {
  if (end != nullptr && p + kLanes > end) {
    alignas(16) uint8_t some[16] = {};
    for (int64_t i = 0; i < end - p; i++) some[i] = p[i];
    return _mm_load_si128(reinterpret_cast<const __m128i*>(some));
  }
  if constexpr (kLanes == 8) return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

enum Format { kBytes, kPairs, kE4M3, kE5M2 };  // as the operators number them

// The numbers in kLanes bytes: of pairs first the lower halves, then the upper ones.
template <Format format>
struct Numbers {
  static constexpr int kParts = format == kPairs ? 2 : 1;
  static constexpr float kScale = format == kE4M3 ? 256 : 1;  // what they are to be multiplied by
  Floats part[kParts];
};
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<kBytes>& out) {
#if defined(__AVX512F__)
  out.part[0] = (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
#else
  out.part[0] = (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
#endif
}
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<kPairs>& out) {
#if defined(__AVX512F__)
  const __m512 value = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  const __m512i wide = _mm512_cvtepu8_epi32(bytes);  // the look-up takes the lowest four bits
  out.part[0] = (Floats)_mm512_permutexvar_ps(wide, value);
  out.part[1] = (Floats)_mm512_permutexvar_ps(_mm512_srli_epi32(wide, 4), value);
#else
  const __m256i wide = _mm256_cvtepu8_epi32(bytes), eight = _mm256_set1_epi32(8);
  const __m256i low = _mm256_and_si256(wide, _mm256_set1_epi32(15)), high = _mm256_srli_epi32(wide, 4);
  out.part[0] = (Floats)_mm256_cvtepi32_ps(_mm256_sub_epi32(low, eight));
  out.part[1] = (Floats)_mm256_cvtepi32_ps(_mm256_sub_epi32(high, eight));
#endif
}
// Float8 as halves: of e5m2 they are their upper bytes, of e4m3 exponents are less by 8.
#if defined(__AVX512F__)
using Halves = __m256i;
[[gnu::always_inline]] inline Halves signed_halves(__m128i bytes) { return _mm256_cvtepi8_epi16(bytes); }
[[gnu::always_inline]] inline Halves shifted(Halves a, int n) { return _mm256_slli_epi16(a, n); }
[[gnu::always_inline]] inline Halves masked(Halves a, int bits) {
  return _mm256_and_si256(a, _mm256_set1_epi16(static_cast<int16_t>(bits)));
}
[[gnu::always_inline]] inline Halves or_ones_where(Halves a, Halves b, int bits) {
  return _mm256_or_si256(a, _mm256_cmpeq_epi16(b, _mm256_set1_epi16(static_cast<int16_t>(bits))));
}
[[gnu::always_inline]] inline Floats wide(Halves a) { return (Floats)_mm512_cvtph_ps(a); }
#else
using Halves = __m128i;
[[gnu::always_inline]] inline Halves signed_halves(__m128i bytes) { return _mm_cvtepi8_epi16(bytes); }
[[gnu::always_inline]] inline Halves shifted(Halves a, int n) { return _mm_slli_epi16(a, n); }
[[gnu::always_inline]] inline Halves masked(Halves a, int bits) {
  return _mm_and_si128(a, _mm_set1_epi16(static_cast<int16_t>(bits)));
}
[[gnu::always_inline]] inline Halves or_ones_where(Halves a, Halves b, int bits) {
  return _mm_or_si128(a, _mm_cmpeq_epi16(b, _mm_set1_epi16(static_cast<int16_t>(bits))));
}
[[gnu::always_inline]] inline Floats wide(Halves a) { return (Floats)_mm256_cvtph_ps(a); }
#endif
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<kE5M2>& out) {
  out.part[0] = wide(shifted(signed_halves(bytes), 8));
}
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<kE4M3>& out) {
  const Halves a = masked(shifted(signed_halves(bytes), 7), 0xbf80);
  out.part[0] = wide(or_ones_where(a, masked(a, 0x7fff), 0x3f80));  // all ones are NaN
}
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

template <Format format>
constexpr int64_t kBlock = format == kPairs ? 2 * kLanes : kLanes;

template <Format format, class Scale, int Rows, int Columns>
[[gnu::always_inline]] inline void tile(const NarrowRows& t, int64_t row, int64_t column) {
  constexpr int kParts = Numbers<format>::kParts, kSums = Rows == 1 ? 2 : 1;  // sums that do not wait for each other
  const int64_t group_bytes = t.size / kParts, step = t.groups * group_bytes, row_step = t.groups * t.padded;
  const uint8_t *weight = t.weight + column * step, *end = t.weight + t.columns * step;
  const auto* scale = static_cast<const Scale*>(t.scale) + column * t.groups;
  const float* x = static_cast<const float*>(t.x) + row * row_step;
  Floats total[Rows][Columns] = {};
  for (int64_t g = 0; g < t.groups; g++, weight += group_bytes, x += t.padded) {
    Floats sum[Rows][Columns][kSums] = {};
    auto block = [&](int64_t b, int first, const uint8_t* limit) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int j = 0; j < Columns; j++) {
        if (b % (64 / kLanes) == 0) __builtin_prefetch(weight + (j + kNarrowColumns) * step + b * kLanes);
        Numbers<format> w;
        take(load_bytes(weight + j * step + b * kLanes, limit), w);
#pragma GCC unroll 4
        for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 2
          for (int part = 0; part < kParts; part++) {
            const Floats a = load_vector(x + i * row_step + (b * kParts + part) * kLanes);
            Floats& to = sum[i][j][(first + part) % kSums];
            to = multiply_add(a, w.part[part], to);
          }
        }
      }
    };
    const int64_t whole = group_bytes / kLanes;
    int64_t b = 0;
    for (; b + 2 <= whole; b += 2) block(b, 0, nullptr), block(b + 1, 1, nullptr);
    if (b < whole) block(b, 0, nullptr);
    if (whole * kLanes < group_bytes) block(whole, 0, end);
#pragma GCC unroll 4
    for (int j = 0; j < Columns; j++) {
      const float s = to_number(scale[j * t.groups + g]) * Numbers<format>::kScale;
#pragma GCC unroll 4
      for (int i = 0; i < Rows; i++) {
        const Floats all = kSums == 2 ? sum[i][j][0] + sum[i][j][kSums - 1] : sum[i][j][0];
        total[i][j] = cpu::PG_CPU_ISA::multiply_add(s, all, total[i][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
    for (int j = 0; j < Columns; j++) {
      float all = t.bias != nullptr ? t.bias[column + j] : 0;
      for (int64_t lane = 0; lane < kLanes; lane++) all += total[i][j][lane];
      t.y[(row + i) * t.columns + column + j] = all;
    }
  }
}

template <Format format, class Scale>
struct Tile {
  template <int Rows, int Columns>
  static void run(const NarrowRows& t, int64_t row, int64_t column) {
    tile<format, Scale, Rows, Columns>(t, row, column);
  }
};

template <Format format>
void multiply(const NarrowRows& t, int64_t begin, int64_t end) {
  constexpr int kMostRows = kVectorBytes == 64 ? 4 : 2;  // sums take half of the registers
  if (t.bf16_scale)
    each_tile<Tile<format, pg::bf16>, kMostRows>(t, begin, end);
  else
    each_tile<Tile<format, float>, kMostRows>(t, begin, end);
}

template <Format format>
int32_t lay_out(const void* group, int64_t size, int64_t padded, void* out) {
  const auto* from = static_cast<const float*>(group);
  auto* to = static_cast<float*>(out);
  spread<format == kPairs ? kLanes : 0>(from, size, padded, to);
  return 0;
}

template <Format format>
void add(Simd& table) {
  table.narrow.floats[format] = {kBlock<format>, sizeof(float), lay_out<format>, multiply<format>};
}
#endif

}  // namespace

void fill_narrow_floats(Simd& table) {
#if defined(__AVX2__)
  add<kBytes>(table), add<kPairs>(table), add<kE4M3>(table), add<kE5M2>(table);
#else
  (void)table;
#endif
}

}  // namespace cpu::PG_CPU_ISA
