// SPDX-License-Identifier: Apache-2.0
#include "linalg/panels.hpp"

#include "linalg/lanes.hpp"

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
