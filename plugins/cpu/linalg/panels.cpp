// SPDX-License-Identifier: Apache-2.0
#include "linalg/panels.hpp"

#include <algorithm>

#include "linalg/lanes.hpp"
#include "linalg/narrow_panels.hpp"

namespace pg::cpu {
namespace {

template <class T>
constexpr bool kVectors = std::is_same_v<Accumulator<T>, float>;

// Any strides and types, depths `begin` to `depth`.
template <class T, int Width>
void pack_plain(const T* from, int64_t across, int64_t along, int64_t filled, int64_t begin, int64_t depth,
                Accumulator<T>* panel) {
  if (filled == Width && across == 1) {
    for (int64_t p = begin; p < depth; p++) {
      for (int64_t i = 0; i < Width; i++) panel[p * Width + i] = load<T>(from[p * along + i]);
    }
    return;
  }
  for (int64_t i = 0; i < Width; i++) {
    for (int64_t p = begin; p < depth; p++)
      panel[p * Width + i] = i < filled ? load<T>(from[i * across + p * along]) : Accumulator<T>(0);
  }
}

// Panels that lie across memory: returns how many depths it has done. A vector that reaches beyond the panel is read
// only where it ends before the next depth's elements begin, and what it writes there is overwritten.
template <class T, int Width>
PG_AVX2_INLINE int64_t pack_across(const T* from, int64_t along, int64_t depth, float* panel) {
  constexpr int64_t kVectorsAcross = (Width + kLanes - 1) / kLanes;
  if (Width % kLanes != 0 && along < kVectorsAcross * kLanes) return 0;
  const int64_t safe = Width % kLanes == 0 ? depth : depth - 1;
  for (int64_t p = 0; p < safe; p++) {
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectorsAcross; v++) {
      Lanes x;
      load_lanes(from + p * along + v * kLanes, x);
      store_lanes(x, panel + p * Width + v * kLanes);
    }
  }
  return safe;
}

// Panels that lie along memory: eight by eight elements are turned at a time.
template <class T, int Width>
PG_AVX2_INLINE int64_t pack_along(const T* from, int64_t across, int64_t filled, int64_t depth, float* panel) {
  constexpr int64_t kVectorsAcross = (Width + kLanes - 1) / kLanes;
  int64_t p = 0;
  for (; p + kLanes <= depth; p += kLanes) {
    Lanes x[kVectorsAcross][kLanes];
#pragma GCC unroll 4
    for (int64_t v = 0; v < kVectorsAcross; v++) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kLanes; i++) {
        x[v][i] = Lanes{};
        const int64_t row = v * kLanes + i;
        if (row < Width && row < filled) load_lanes(from + row * across + p, x[v][i]);
      }
      turn(x[v]);
      if (Width % kLanes != 0) continue;
#pragma GCC unroll 8
      for (int64_t i = 0; i < kLanes; i++) store_lanes(x[v][i], panel + (p + i) * Width + v * kLanes);
    }
    if (Width % kLanes == 0) continue;
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) {  // depth by depth: the last vector reaches into the next depth
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectorsAcross; v++) store_lanes(x[v][i], panel + (p + i) * Width + v * kLanes);
    }
  }
  return p;
}

template <class T>
PG_AVX2 void write_rows(const float* sums, int64_t step, int64_t rows, int64_t columns, Matrix<T> c, bool add) {
  for (int64_t i = 0; i < rows; i++) {
    const float* from = sums + i * step;
    T* to = c.data + i * c.row;
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      Lanes x, before;
      load_lanes(from + j, x);
      if (add) load_lanes(to + j, before), x += before;
      store_lanes(x, to + j);
    }
    for (; j < columns; j++) to[j] = store<T>(add ? load<T>(to[j]) + from[j] : from[j]);
  }
}

template <class T, int Width>
PG_AVX2 int64_t pack_vectors(const T* from, int64_t across, int64_t along, int64_t filled, int64_t depth,
                             float* panel) {
  if (along == 1 && filled == Width) return pack_along<T, Width>(from, across, Width, depth, panel);
  if (along == 1) return pack_along<T, Width>(from, across, filled, depth, panel);
  return across == 1 && filled == Width ? pack_across<T, Width>(from, along, depth, panel) : 0;
}

}  // namespace

template <class T, int Width>
void pack_panel(const T* from, int64_t across, int64_t along, int64_t filled, int64_t depth, Accumulator<T>* panel) {
  int64_t done = 0;
  if constexpr (kVectors<T>) done = pack_vectors<T, Width>(from, across, along, filled, depth, panel);
  if (done < depth) pack_plain<T, Width>(from, across, along, filled, done, depth, panel);
}

template <class T>
void write_sums(const Accumulator<T>* sums, int64_t step, int64_t rows, int64_t columns, Matrix<T> c, bool add) {
  if constexpr (kVectors<T>) {
    if (c.column == 1) return write_rows<T>(sums, step, rows, columns, c, add);
  }
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      T& to = c.data[i * c.row + j * c.column];
      to = store<T>(add ? load<T>(to) + sums[i * step + j] : sums[i * step + j]);
    }
  }
}

#define PG_PANEL(T, Width) \
  template void pack_panel<T, Width>(const T*, int64_t, int64_t, int64_t, int64_t, Accumulator<T>*);
// Of four-byte accumulators, and of eight-byte ones: rows and columns with AVX2, then with AVX-512.
#define PG_PANELS(T, columns, wide) \
  PG_PANEL(T, 6)                    \
  PG_PANEL(T, columns)              \
  PG_PANEL(T, 12)                   \
  PG_PANEL(T, wide)                 \
  template void write_sums<T>(const Accumulator<T>*, int64_t, int64_t, int64_t, Matrix<T>, bool);
PG_PANELS(float, 16, 32)
PG_PANELS(BFloat16, 16, 32)
PG_PANELS(Half, 16, 32)
PG_PANELS(int32_t, 16, 32)
PG_PANELS(int16_t, 16, 32)
PG_PANELS(int8_t, 16, 32)
PG_PANELS(uint8_t, 16, 32)
PG_PANELS(double, 8, 16)
PG_PANELS(int64_t, 8, 16)

}  // namespace pg::cpu

// ---- of int8 and int4 ----

namespace pg::cpu {
namespace {

constexpr int64_t kTile = 16;  // columns and depths that are turned at a time

float narrow_number(const NarrowPanels& w, int64_t column, int64_t p) {
  const uint8_t* row = w.weight + column * w.row_bytes;
  const int code = w.four ? ((row[p / 2] >> (p % 2 * 4)) & 15) - 8 : static_cast<int8_t>(row[p]);
  return static_cast<float>(code) * w.scale[column * w.groups + p / w.size];
}

// Sixteen numbers of a row, a byte each.
template <bool four>
PG_AVX2_INLINE __m128i bytes_of(const uint8_t* row, int64_t p) {
  if constexpr (!four) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + p));
  } else {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + p / 2)), low = _mm_set1_epi8(15);
    const __m128i codes = _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
    return _mm_sub_epi8(codes, _mm_set1_epi8(8));
  }
}

// Sixteen rows of sixteen bytes become their columns: four times, neighbours half of the rows apart are interleaved.
PG_AVX2_INLINE void turn_bytes(__m128i (&x)[kTile]) {
#pragma GCC unroll 4
  for (int round = 0; round < 4; round++) {
    __m128i y[kTile];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      y[2 * i] = _mm_unpacklo_epi8(x[i], x[i + 8]);
      y[2 * i + 1] = _mm_unpackhi_epi8(x[i], x[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kTile; i++) x[i] = y[i];
  }
}

template <bool four>
PG_AVX2 void fill_tile(const NarrowPanels& w, int64_t column, int64_t filled, int64_t p, int64_t step, float* panel) {
  __m128i x[kTile];
  alignas(32) float scale[kTile] = {};
  const int64_t group = p / w.size;
  for (int64_t i = 0; i < kTile; i++) {
    x[i] = _mm_setzero_si128();
    if (i >= filled) continue;
    x[i] = bytes_of<four>(w.weight + (column + i) * w.row_bytes, p);
    scale[i] = w.scale[(column + i) * w.groups + group];
  }
  turn_bytes(x);
  const __m256 first = _mm256_load_ps(scale), second = _mm256_load_ps(scale + 8);
#pragma GCC unroll 16
  for (int64_t q = 0; q < kTile; q++) {
    const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x[q]));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x[q], 8)));
    _mm256_storeu_ps(panel + q * step, _mm256_mul_ps(low, first));
    _mm256_storeu_ps(panel + q * step + 8, _mm256_mul_ps(high, second));
  }
}

template <bool four>
void fill_narrow(const void* state, int64_t column, int64_t columns, int64_t p, int64_t depth, float* panel) {
  const auto& w = *static_cast<const NarrowPanels*>(state);
  const int64_t end = p + depth;
  for (int64_t j = 0; j < columns; j += kTile) {
    const int64_t filled = std::clamp<int64_t>(w.columns - column - j, 0, kTile);
    for (int64_t at = p; at < end;) {
      float* out = panel + (at - p) * columns + j;
      const int64_t left = std::min((at / w.size + 1) * w.size, end) - at;  // of one scale
      if (left >= kTile && at % 2 == 0) {
        fill_tile<four>(w, column + j, filled, at, columns, out);
        at += kTile;
        continue;
      }
      for (int64_t i = 0; i < kTile; i++) out[i] = i < filled ? narrow_number(w, column + j + i, at) : 0.0F;
      at++;
    }
  }
}

}  // namespace

PanelSource NarrowPanels::source() const { return {four ? fill_narrow<true> : fill_narrow<false>, this}; }

}  // namespace pg::cpu
