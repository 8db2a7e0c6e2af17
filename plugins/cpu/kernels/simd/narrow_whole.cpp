// SPDX-License-Identifier: Apache-2.0
// Rows of whole numbers by a weight of small whole numbers: sums are exact. By VNNI (which multiplies unsigned bytes by
// signed ones, so that the weight is taken plus 128) or by products of 16-bit numbers.
#include "../../narrow_rows.hpp"
#include "narrow.hpp"

#include <type_traits>

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
// Vectors of 32 and of 64 bytes under the same names.
struct Small {
  using Whole = __m256i;
  using Floats = float __attribute__((vector_size(32)));
  static Whole load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static Whole widen(const void* p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
  static Whole set(uint8_t byte) { return _mm256_set1_epi8(static_cast<char>(byte)); }
  static Whole first(int32_t x) { return _mm256_zextsi128_si256(_mm_cvtsi32_si128(x)); }
  static Whole flip(Whole a, Whole b) { return _mm256_xor_si256(a, b); }
  static Whole both(Whole a, Whole b) { return _mm256_and_si256(a, b); }
  static Whole upper(Whole a) { return _mm256_srli_epi16(a, 4); }
  static Whole add(Whole a, Whole b) { return _mm256_add_epi32(a, b); }
  static Whole add_shorts(Whole a, Whole b) { return _mm256_add_epi16(a, b); }
  static Whole pairs(Whole a, Whole b) { return _mm256_madd_epi16(a, b); }
  static Whole byte_pairs(Whole a, Whole b) { return _mm256_maddubs_epi16(a, b); }
  static Whole ones() { return _mm256_set1_epi16(1); }
  static Floats floats(Whole a) { return (Floats)_mm256_cvtepi32_ps(a); }
  static int32_t total(Whole a) {
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xb1)));
  }
};
#if defined(__AVX512F__)
struct Large {
  using Whole = __m512i;
  using Floats = float __attribute__((vector_size(64)));
  static Whole load(const void* p) { return _mm512_loadu_si512(p); }
  static Whole widen(const void* p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static Whole set(uint8_t byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }
  static Whole first(int32_t x) { return _mm512_zextsi128_si512(_mm_cvtsi32_si128(x)); }
  static Whole flip(Whole a, Whole b) { return _mm512_xor_si512(a, b); }
  static Whole both(Whole a, Whole b) { return _mm512_and_si512(a, b); }
  static Whole upper(Whole a) { return _mm512_srli_epi16(a, 4); }
  static Whole add(Whole a, Whole b) { return _mm512_add_epi32(a, b); }
  static Whole add_shorts(Whole a, Whole b) { return _mm512_add_epi16(a, b); }
  static Whole pairs(Whole a, Whole b) { return _mm512_madd_epi16(a, b); }
  static Whole byte_pairs(Whole a, Whole b) { return _mm512_maddubs_epi16(a, b); }
  static Whole ones() { return _mm512_set1_epi16(1); }
  static Floats floats(Whole a) { return (Floats)_mm512_cvtepi32_ps(a); }
  static int32_t total(Whole a) {
    return Small::total(Small::add(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1)));
  }
};
#endif

// sum + four products of bytes a lane. In assembly, since the rest of this file is compiled without VNNI.
#if defined(__AVX512F__)
template <class Whole>
[[gnu::always_inline]] inline Whole vnni(Whole sum, Whole bytes, Whole x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(x));
  return sum;
}
#else
template <class Whole>
[[gnu::always_inline]] inline Whole vnni(Whole sum, Whole, Whole) {
  return sum;
}
#endif

// One way through a block: kBytes of a weight, an x of kParts vectors.
template <class V, bool four, bool dot>
struct Way {
  using Whole = typename V::Whole;
  static constexpr bool kShorts = !four && !dot;  // x as int16_t
  static constexpr int kParts = four ? 2 : 1;
  static constexpr int64_t kVector = sizeof(Whole), kBytes = kShorts ? kVector / 2 : kVector;
  static constexpr int64_t kBlock = four ? 2 * kBytes : kBytes;
  static constexpr int32_t kZero = four ? 8 : dot ? 128 : 0;  // what the weight's numbers are taken plus

  Whole part[kParts];
  [[gnu::always_inline]] explicit Way(const void* p) {
    if constexpr (kShorts) {
      part[0] = V::widen(p);
    } else if constexpr (four) {
      const Whole bytes = V::load(p), mask = V::set(15);
      part[0] = V::both(bytes, mask), part[1] = V::both(V::upper(bytes), mask);
    } else {
      part[0] = V::flip(V::load(p), V::set(128));
    }
  }
  [[gnu::always_inline]] Whole add(Whole sum, const char* x) const {
    if constexpr (dot) {
      sum = vnni(sum, part[0], V::load(x));
      if constexpr (four) sum = vnni(sum, part[1], V::load(x + kVector));
      return sum;
    } else if constexpr (four) {  // each pair is at most 2 * 15 * 128
      const Whole low = V::byte_pairs(part[0], V::load(x)), high = V::byte_pairs(part[1], V::load(x + kVector));
      return V::add(sum, V::pairs(V::add_shorts(low, high), V::ones()));
    } else {
      return V::add(sum, V::pairs(part[0], V::load(x)));
    }
  }
};

template <class V, class W, class Scale, int Rows, int Columns>
[[gnu::always_inline]] inline void tile(const NarrowRows& t, int64_t row, int64_t column) {
  using Whole = typename V::Whole;
  constexpr int64_t kElement = W::kShorts ? 2 : 1, kStep = W::kBlock * kElement;
  constexpr bool four = W::kParts == 2;
  const int64_t group_bytes = four ? t.size / 2 : t.size, step = t.groups * group_bytes;
  const int64_t group_step = t.padded * kElement, row_step = t.groups * group_step;
  const uint8_t *weight = t.weight + column * step, *end = t.weight + t.columns * step;
  const auto* scale = static_cast<const Scale*>(t.scale) + column * t.groups;
  const char* x = static_cast<const char*>(t.x) + row * row_step;
  const int32_t* correction = t.correction + row * t.groups;
  typename V::Floats total[Rows][Columns] = {};
  float result[Rows][Columns] = {};
  for (int64_t g = 0; g < t.groups; g++, weight += group_bytes, x += group_step) {
    Whole sum[Rows][Columns];
#pragma GCC unroll 4
    for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
      for (int j = 0; j < Columns; j++) sum[i][j] = V::first(correction[i * t.groups + g]);
    }
    auto block = [&](const uint8_t* const* at, int64_t b) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int j = 0; j < Columns; j++) {
        __builtin_prefetch(at[j] + kNarrowColumns * step);  // the same stretch of the next columns
        const W w(at[j]);
#pragma GCC unroll 4
        for (int i = 0; i < Rows; i++) sum[i][j] = w.add(sum[i][j], x + i * row_step + b * kStep);
      }
    };
    const int64_t whole = group_bytes / W::kBytes;
    const uint8_t* at[Columns];
    for (int j = 0; j < Columns; j++) at[j] = weight + j * step;
    for (int64_t b = 0; b < whole; b++) {
      block(at, b);
#pragma GCC unroll 4
      for (int j = 0; j < Columns; j++) at[j] += W::kBytes;
    }
    if (whole * W::kBytes < group_bytes) {  // what is read behind a group meets zeros of x
      uint8_t some[Columns][W::kBytes];
      for (int j = 0; j < Columns; j++) {
        if (at[j] + W::kBytes <= end) continue;
        for (int64_t i = 0; i < W::kBytes; i++) some[j][i] = at[j] + i < end ? at[j][i] : 0;
        at[j] = some[j];
      }
      block(at, whole);
    }
#pragma GCC unroll 4
    for (int j = 0; j < Columns; j++) {
      const float s = to_number(scale[j * t.groups + g]);
#pragma GCC unroll 4
      for (int i = 0; i < Rows; i++) {
        if (t.groups == 1)
          result[i][j] = s * static_cast<float>(V::total(sum[i][j]));
        else
          total[i][j] += s * V::floats(sum[i][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Rows; i++) {
#pragma GCC unroll 4
    for (int j = 0; j < Columns; j++) {
      float all = t.groups == 1 ? result[i][j] : 0;
      if (t.groups != 1) {
        for (int64_t lane = 0; lane < W::kVector / 4; lane++) all += total[i][j][lane];
      }
      all *= t.x_scale[row + i];
      t.y[(row + i) * t.columns + column + j] = t.bias != nullptr ? all + t.bias[column + j] : all;
    }
  }
}

template <class V, class W, class Scale>
struct Tile {
  template <int Rows, int Columns>
  static void run(const NarrowRows& t, int64_t row, int64_t column) {
    tile<V, W, Scale, Rows, Columns>(t, row, column);
  }
};

template <class V, class W>
void multiply(const NarrowRows& t, int64_t begin, int64_t end) {
  constexpr int kMostRows = kVectorBytes == 64 ? 4 : 2;
  if (t.bf16_scale)
    each_tile<Tile<V, W, pg::bf16>, kMostRows>(t, begin, end);
  else
    each_tile<Tile<V, W, float>, kMostRows>(t, begin, end);
}

template <class W>
using Element = std::conditional_t<W::kShorts, int16_t, int8_t>;

template <class W>
int32_t lay_out(const void* group, int64_t size, int64_t padded, void* out) {
  const auto* from = static_cast<const int8_t*>(group);
  spread<W::kParts == 2 ? W::kBytes : 0>(from, size, padded, static_cast<Element<W>*>(out));
  int32_t sum = 0;
  for (int64_t p = 0; p < size; p++) sum += from[p];
  return -W::kZero * sum;
}

template <class V, bool four, bool dot>
NarrowLoop loop() {
  using W = Way<V, four, dot>;
  return {W::kBlock, W::kShorts ? 2 : 1, lay_out<W>, multiply<V, W>};
}
#endif

// The two that are kept side by side have no order among themselves, so that vectors may do it.
void extremes(const float* row, int64_t n, float* low, float* high) {
  using V = Vector<float>;
  constexpr int64_t kLanes = kVectorLanes<float>, kSide = 4;
  V least[kSide] = {}, most[kSide] = {}, wrong[kSide] = {};  // 0 but where there is NaN
  int64_t i = 0;
  for (; i + kSide * kLanes <= n; i += kSide * kLanes) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < kSide; k++) {
      const V x = load_vector(row + i + k * kLanes);
      least[k] = x < least[k] ? x : least[k];
      most[k] = x > most[k] ? x : most[k];
      wrong[k] = x == x ? wrong[k] : x;
    }
  }
  float a = 0, b = 0;
  bool nan = false;
  for (; i < n; i++) {
    a = row[i] < a ? row[i] : a, b = row[i] > b ? row[i] : b;
    nan = nan || row[i] != row[i];
  }
  for (int64_t k = 0; k < kSide; k++) {
    for (int64_t lane = 0; lane < kLanes; lane++) {
      a = least[k][lane] < a ? least[k][lane] : a, b = most[k][lane] > b ? most[k][lane] : b;
      nan = nan || wrong[k][lane] != wrong[k][lane];
    }
  }
  *low = nan ? __builtin_nanf("") : a, *high = nan ? __builtin_nanf("") : b;
}

void to_whole(const float* row, int64_t n, const WholeRow& how, int8_t* out) {
  const WholeRow numbers = how;
  PG_LOOP
  for (int64_t i = 0; i < n; i++) {
    out[i] = static_cast<int8_t>(static_cast<int32_t>(numbers.whole(row[i]) - numbers.shift));
  }
}

void widen_bytes(const uint8_t* weight, int64_t first, int64_t n, float scale, float* out) {
  const auto* from = reinterpret_cast<const int8_t*>(weight) + first;
  PG_LOOP
  for (int64_t i = 0; i < n; i++) out[i] = static_cast<float>(from[i]) * scale;
}

void widen_halves(const uint8_t* weight, int64_t first, int64_t n, float scale, float* out) {
  for (int64_t i = 0; i < n; i++) {
    const uint8_t pair = weight[(first + i) / 2];
    const int32_t q = ((first + i) % 2 == 0 ? pair & 15 : pair >> 4) - 8;
    out[i] = static_cast<float>(q) * scale;
  }
}

void widen_pairs(const uint8_t* weight, int64_t first, int64_t n, float scale, float* out) {
  if (first % 2 != 0 || n % 2 != 0) return widen_halves(weight, first, n, scale, out);
  const uint8_t* from = weight + first / 2;
  PG_LOOP
  for (int64_t i = 0; i < n / 2; i++) {
    const int32_t low = (from[i] & 15) - 8, high = (from[i] >> 4) - 8;
    out[2 * i] = static_cast<float>(low) * scale;
    out[2 * i + 1] = static_cast<float>(high) * scale;
  }
}

}  // namespace

void fill_narrow_whole(Simd& table) {
#if defined(__AVX512F__)
  if (has_vnni()) {
    table.narrow.whole[0][0] = loop<Small, false, true>(), table.narrow.whole[0][1] = loop<Large, false, true>();
    table.narrow.whole[1][0] = loop<Small, true, true>(), table.narrow.whole[1][1] = loop<Large, true, true>();
  } else {
    table.narrow.whole[0][0] = loop<Small, false, false>(), table.narrow.whole[0][1] = loop<Large, false, false>();
    table.narrow.whole[1][0] = loop<Small, true, false>(), table.narrow.whole[1][1] = loop<Large, true, false>();
  }
#elif defined(__AVX2__)
  table.narrow.whole[0][0] = table.narrow.whole[0][1] = loop<Small, false, false>();
  table.narrow.whole[1][0] = table.narrow.whole[1][1] = loop<Small, true, false>();
#endif
  table.narrow.extremes = extremes;
  table.narrow.to_whole = to_whole;
  table.narrow.widen[0] = widen_bytes;
  table.narrow.widen[1] = widen_pairs;
}

}  // namespace cpu::PG_CPU_ISA
