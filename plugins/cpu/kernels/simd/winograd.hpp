// SPDX-License-Identifier: Apache-2.0
// Filters of 3x3 that slide by one, over float32 (Lavin and Gray, "Fast algorithms for convolutional neural networks",
// 2016): by tiles of 2x2 results 16 products take the place of 36, by tiles of 4x4 36 that of 144. Where there is
// AVX-512, oneDNN goes that way.
#pragma once

#include "../../winograd.hpp"
#include "tile_transform.hpp"

#if defined(__AVX2__) && !defined(__AVX512F__)
namespace cpu::PG_CPU_ISA {
namespace {

using Floats = Vector<float>;
constexpr int64_t kLanes = kVectorLanes<float>;
static_assert(kLanes == kWinogradChannels);

// Of a line: numbers of x as places, places as results, and three of a filter as places; and what these are transposed,
// which gradients of weights need: results as places, and places as three of a filter.
struct SmallTiles {
  static constexpr int kSide = 2, kNumbers = 4;
  [[gnu::always_inline]] static void places(const Floats (&d)[4], Floats (&out)[4]) {
    out[0] = d[0] - d[2], out[1] = d[1] + d[2], out[2] = d[2] - d[1], out[3] = d[1] - d[3];
  }
  [[gnu::always_inline]] static void results(const Floats (&m)[4], Floats (&out)[2]) {
    out[0] = m[0] + m[1] + m[2], out[1] = m[1] - m[2] - m[3];
  }
  [[gnu::always_inline]] static void filters(const Floats (&g)[3], Floats (&out)[4]) {
    const Floats ends = g[0] + g[2];
    out[0] = g[0], out[1] = 0.5f * (ends + g[1]), out[2] = 0.5f * (ends - g[1]), out[3] = g[2];
  }
  [[gnu::always_inline]] static void results_turned(const Floats (&y)[2], Floats (&out)[4]) {
    out[0] = y[0], out[1] = y[0] + y[1], out[2] = y[0] - y[1], out[3] = -y[1];
  }
  [[gnu::always_inline]] static void filters_turned(const Floats (&m)[4], Floats (&out)[3]) {
    const Floats a = 0.5f * (m[1] + m[2]);
    out[0] = m[0] + a, out[1] = 0.5f * (m[1] - m[2]), out[2] = a + m[3];
  }
};

struct LargeTiles {
  static constexpr int kSide = 4, kNumbers = 6;
  [[gnu::always_inline]] static void places(const Floats (&d)[6], Floats (&out)[6]) {
    const Floats a = multiply_add(-4, d[2], d[4]), b = multiply_add(-4, d[1], d[3]);
    const Floats c = d[4] - d[2], e = d[3] - d[1];
    out[0] = multiply_add(4, d[0] - d[2], c), out[1] = a + b, out[2] = a - b;
    out[3] = multiply_add(2, e, c), out[4] = multiply_add(-2, e, c), out[5] = multiply_add(-4, e, d[5] - d[3]);
  }
  [[gnu::always_inline]] static void results(const Floats (&m)[6], Floats (&out)[4]) {
    const Floats a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    out[0] = m[0] + a + c, out[1] = multiply_add(2, d, b), out[2] = multiply_add(4, c, a);
    out[3] = multiply_add(8, d, b) + m[5];
  }
  [[gnu::always_inline]] static void filters(const Floats (&g)[3], Floats (&out)[6]) {
    const Floats ends = g[0] + g[2], far = multiply_add(4, g[2], g[0]), twice = g[1] + g[1];
    out[0] = 0.25f * g[0], out[1] = (-1.0f / 6) * (ends + g[1]), out[2] = (-1.0f / 6) * (ends - g[1]);
    out[3] = (1.0f / 24) * (far + twice), out[4] = (1.0f / 24) * (far - twice), out[5] = g[2];
  }
  [[gnu::always_inline]] static void results_turned(const Floats (&y)[4], Floats (&out)[6]) {
    const Floats a = y[0] + y[2], b = y[1] + y[3];
    const Floats c = multiply_add(4, y[2], y[0]), d = 2 * multiply_add(4, y[3], y[1]);
    out[0] = y[0], out[1] = a + b, out[2] = a - b, out[3] = c + d, out[4] = c - d, out[5] = y[3];
  }
  [[gnu::always_inline]] static void filters_turned(const Floats (&m)[6], Floats (&out)[3]) {
    const Floats a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    out[0] = multiply_add(0.25f, m[0], (1.0f / 24) * multiply_add(-4, a, c));
    out[1] = (1.0f / 12) * multiply_add(-2, b, d);
    out[2] = multiply_add(1.0f / 6, c - a, m[5]);
  }
};

// A tile among those of all images.
struct Spot {
  int64_t image, row, column;  // of its first result
  [[gnu::always_inline]] Spot(int64_t high, int64_t wide, int64_t at, int64_t side) {
    image = at / (high * wide), at -= image * high * wide;
    row = at / wide * side, column = at % wide * side;
  }
};

// read(row, column, eight) answers the channels of the tile.
template <class Tiles, class Read>
[[gnu::always_inline]] inline void transform_channels(int64_t channels, float* v, int64_t step, const Read& read) {
  constexpr int kNumbers = Tiles::kNumbers;
  for (int64_t eight = 0; eight < channels / kLanes; eight++) {
    transform_tile<Floats, kNumbers, kNumbers>(
        Tiles::places, [&](int j, int k) __attribute__((always_inline)) { return read(j, k, eight); },
        [&](int j, int k, Floats place)
            __attribute__((always_inline)) { store_vector(v + (j * kNumbers + k) * step + eight * kLanes, place); });
  }
}

// x: images whose tiles begin `top` and `left` before them. v[place][tile][channel]: `step` from a place to the next,
// `row` from a tile.
template <class Tiles, class Call>
void transform_tiles(const Call& t, const float* images, float* to, int64_t row, int64_t step) {
  constexpr int kNumbers = Tiles::kNumbers;
  const WinogradImages& in = t.in;
  const int64_t line = in.width * in.pixel;
  alignas(32) const float zeros[kLanes] = {};
  for (int64_t i = 0; i < t.count; i++) {
    const Spot spot(t.high, t.wide, t.first + i, Tiles::kSide);
    const int64_t top = spot.row - t.top, left = spot.column - t.left;
    const float* image = images + spot.image * in.image;
    float* v = to + i * row;
    if (top >= 0 && left >= 0 && top + kNumbers <= in.height && left + kNumbers <= in.width) {
      const float* x = image + top * line + left * in.pixel;
      transform_channels<Tiles>(
          in.channels, v, step, [&](int j, int k, int64_t eight) __attribute__((always_inline)) {
            return load_vector(x + eight * in.eight + j * line + k * in.pixel);
          });
      continue;
    }
    int64_t at[kNumbers][kNumbers];
    for (int j = 0; j < kNumbers; j++) {
      for (int k = 0; k < kNumbers; k++) {
        const int64_t y = top + j, x = left + k;
        at[j][k] = y >= 0 && y < in.height && x >= 0 && x < in.width ? y * line + x * in.pixel : -1;
      }
    }
    transform_channels<Tiles>(
        in.channels, v, step, [&](int j, int k, int64_t eight) __attribute__((always_inline)) {
          return load_vector(at[j][k] >= 0 ? image + eight * in.eight + at[j][k] : zeros);
        });
  }
}

}  // namespace
}  // namespace cpu::PG_CPU_ISA
#endif
