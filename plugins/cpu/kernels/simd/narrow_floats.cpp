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

// The numbers in kLanes bytes: of int4 first the lower halves, then the upper ones.
template <bool four>
struct Numbers {
  Floats part[four ? 2 : 1];
};
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<false>& out) {
#if defined(__AVX512F__)
  out.part[0] = (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
#else
  out.part[0] = (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
#endif
}
[[gnu::always_inline]] inline void take(__m128i bytes, Numbers<true>& out) {
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
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return (Floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
  return (Floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#endif
}

template <bool four>
constexpr int64_t kBlock = four ? 2 * kLanes : kLanes;

template <bool four, class Scale, int Rows, int Columns>
[[gnu::always_inline]] inline void tile(const NarrowRows& t, int64_t row, int64_t column) {
  constexpr int kParts = four ? 2 : 1, kSums = Rows == 1 ? 2 : 1;  // sums that do not wait for each other
  const int64_t group_bytes = four ? t.size / 2 : t.size, step = t.groups * group_bytes, row_step = t.groups * t.padded;
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
        Numbers<four> w;
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
      const float s = to_number(scale[j * t.groups + g]);
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

template <bool four, class Scale>
struct Tile {
  template <int Rows, int Columns>
  static void run(const NarrowRows& t, int64_t row, int64_t column) {
    tile<four, Scale, Rows, Columns>(t, row, column);
  }
};

template <bool four>
void multiply(const NarrowRows& t, int64_t begin, int64_t end) {
  constexpr int kMostRows = kVectorBytes == 64 ? 4 : 2;  // sums take half of the registers
  if (t.bf16_scale)
    each_tile<Tile<four, pg::bf16>, kMostRows>(t, begin, end);
  else
    each_tile<Tile<four, float>, kMostRows>(t, begin, end);
}

template <bool four>
int32_t lay_out(const void* group, int64_t size, int64_t padded, void* out) {
  const auto* from = static_cast<const float*>(group);
  auto* to = static_cast<float*>(out);
  spread<four ? kLanes : 0>(from, size, padded, to);
  return 0;
}
#endif

}  // namespace

void fill_narrow_floats(Simd& table) {
#if defined(__AVX2__)
  table.narrow.floats[0] = {kBlock<false>, sizeof(float), lay_out<false>, multiply<false>};
  table.narrow.floats[1] = {kBlock<true>, sizeof(float), lay_out<true>, multiply<true>};
#else
  (void)table;
#endif
}

}  // namespace cpu::PG_CPU_ISA
