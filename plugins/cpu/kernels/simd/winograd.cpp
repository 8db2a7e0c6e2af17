// SPDX-License-Identifier: Apache-2.0
// Filters of 3x3 that slide by one, over float32 (Lavin and Gray, "Fast algorithms for convolutional neural networks",
// 2016): by tiles of 2x2 results 16 products take the place of 36, by tiles of 4x4 36 that of 144. Where there is
// AVX-512, oneDNN goes that way.
#include "../../winograd.hpp"

#include "vector.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
using Floats = Vector<float>;
constexpr int64_t kLanes = kVectorLanes<float>;
static_assert(kLanes == kWinogradChannels);

// Of a line: numbers of x as places, places as results, and three of a filter as places.
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
};

// A tile among those of all images.
struct Spot {
  int64_t image, row, column;  // of its first result
  [[gnu::always_inline]] Spot(const WinogradTiles& t, int64_t at, int64_t side) {
    image = at / (t.high * t.wide), at -= image * t.high * t.wide;
    row = at / t.wide * side, column = at % t.wide * side;
  }
};

template <class Tiles>
struct Sizes {
  static constexpr int kPlaces = Tiles::kNumbers * Tiles::kNumbers;
  int64_t blocks, v_step, sums_row, sums_step;
  explicit Sizes(const WinogradTiles& t)
      : blocks((t.filter_count + kWinogradFilters - 1) / kWinogradFilters),
        v_step(t.count * t.in.channels + kWinogradApart),
        sums_row(blocks * kWinogradFilters),
        sums_step(t.count * sums_row + kWinogradApart) {}
};

// read(row, column, eight) answers the channels of the tile.
template <class Tiles, class Read>
[[gnu::always_inline]] inline void transform_tile(int64_t channels, float* v, int64_t step, const Read& read) {
  constexpr int kNumbers = Tiles::kNumbers;
  for (int64_t eight = 0; eight < channels / kLanes; eight++) {
    Floats half[kNumbers][kNumbers];  // [column][row]
#pragma GCC unroll 6
    for (int k = 0; k < kNumbers; k++) {
      Floats d[kNumbers];
#pragma GCC unroll 6
      for (int j = 0; j < kNumbers; j++) d[j] = read(j, k, eight);
      Tiles::places(d, half[k]);
    }
#pragma GCC unroll 6
    for (int j = 0; j < kNumbers; j++) {
      Floats d[kNumbers], out[kNumbers];
#pragma GCC unroll 6
      for (int k = 0; k < kNumbers; k++) d[k] = half[k][j];
      Tiles::places(d, out);
#pragma GCC unroll 6
      for (int k = 0; k < kNumbers; k++) store_vector(v + (j * kNumbers + k) * step + eight * kLanes, out[k]);
    }
  }
}

template <class Tiles>
void transform_tiles(const WinogradTiles& t) {
  constexpr int kNumbers = Tiles::kNumbers;
  const Sizes<Tiles> sizes(t);
  const int64_t pixel = t.in.pixel, row = t.in.width * pixel, step = t.in.eight;
  alignas(32) const float zeros[kLanes] = {};
  for (int64_t i = 0; i < t.count; i++) {
    const Spot spot(t, t.first + i, Tiles::kSide);
    const int64_t top = spot.row - t.top, left = spot.column - t.left;
    const float* image = t.x + spot.image * t.in.image;
    float* v = t.v + i * t.in.channels;
    if (top >= 0 && left >= 0 && top + kNumbers <= t.in.height && left + kNumbers <= t.in.width) {
      const float* x = image + top * row + left * pixel;
      transform_tile<Tiles>(
          t.in.channels, v, sizes.v_step, [&](int j, int k, int64_t eight) __attribute__((always_inline)) {
            return load_vector(x + eight * step + j * row + k * pixel);
          });
      continue;
    }
    int64_t at[kNumbers][kNumbers];
    for (int j = 0; j < kNumbers; j++) {
      for (int k = 0; k < kNumbers; k++) {
        const int64_t y = top + j, x = left + k;
        at[j][k] = y >= 0 && y < t.in.height && x >= 0 && x < t.in.width ? y * row + x * pixel : -1;
      }
    }
    transform_tile<Tiles>(
        t.in.channels, v, sizes.v_step, [&](int j, int k, int64_t eight) __attribute__((always_inline)) {
          return load_vector(at[j][k] >= 0 ? image + eight * step + at[j][k] : zeros);
        });
  }
}

template <class Tiles>
void transform_sums(const WinogradTiles& t) {
  constexpr int kSide = Tiles::kSide, kNumbers = Tiles::kNumbers;
  const Sizes<Tiles> sizes(t);
  const int64_t pixel = t.out.pixel, row = t.out.width * pixel;
  for (int64_t i = 0; i < t.count; i++) {
    const Spot spot(t, t.first + i, kSide);
    const int64_t rows = t.out.height - spot.row, columns = t.out.width - spot.column;
    for (int64_t f = 0; f < t.filter_count; f += kLanes) {
      const float* from = t.sums + i * sizes.sums_row + f;
      Floats half[kNumbers][kSide];
#pragma GCC unroll 6
      for (int k = 0; k < kNumbers; k++) {
        Floats m[kNumbers];
#pragma GCC unroll 6
        for (int j = 0; j < kNumbers; j++) m[j] = load_vector(from + (j * kNumbers + k) * sizes.sums_step);
        Tiles::results(m, half[k]);
      }
      const int64_t filter = t.filter + f;
      const Floats bias = t.bias != nullptr ? load_vector(t.bias + filter) : Floats{};
      float* to = t.y + spot.image * t.out.image + filter / kLanes * t.out.eight + spot.row * row + spot.column * pixel;
#pragma GCC unroll 4
      for (int j = 0; j < kSide; j++) {
        if (j >= rows) break;
        Floats m[kNumbers], out[kSide];
#pragma GCC unroll 6
        for (int k = 0; k < kNumbers; k++) m[k] = half[k][j];
        Tiles::results(m, out);
#pragma GCC unroll 4
        for (int k = 0; k < kSide; k++) {
          if (k >= columns) break;
          float* place = to + j * row + k * pixel;
          Floats y = out[k] + bias;
          if (t.add) y = y + load_vector(place);
          if (t.relu) y = y < 0 ? Floats{} : y;
          store_vector(place, y);
        }
      }
    }
  }
}

template <class Tiles>
void convolve(const WinogradTiles& t) {
  const Sizes<Tiles> sizes(t);
  transform_tiles<Tiles>(t);
  const int64_t first = t.filter / kWinogradFilters;
  for (int64_t place = 0; place < sizes.kPlaces; place++) {
    const Left<float> v{t.v + place * sizes.v_step, t.in.channels, 1};
    for (int64_t block = 0; block < sizes.blocks; block++) {
      const float* weight = t.weight + place * t.weight_step + (first + block) * t.in.channels * kWinogradFilters;
      float* sums = t.sums + place * sizes.sums_step + block * kWinogradFilters;
      small_product(t.count, v, weight, kWinogradFilters, sums, sizes.sums_row, false,
                    [&](int64_t, int64_t) { return Extent{kWinogradFilters, 0, t.in.channels}; });
    }
  }
  transform_sums<Tiles>(t);
}

template <class Tiles>
void transform_filters(const WinogradFilters& f) {
  constexpr int kNumbers = Tiles::kNumbers;
  for (int64_t block = f.first; block < f.last; block++) {
    const int64_t first = block * kWinogradFilters, left = f.filters - first;
    const int64_t count = left < kWinogradFilters ? left : kWinogradFilters;
    for (int64_t c = 0; c < f.channels; c++) {
      alignas(32) float g[9][kWinogradFilters] = {};
      for (int64_t i = 0; i < count; i++) {
        const float* from = f.weight + (first + i) * f.filter_step + c * f.channel_step;
        for (int k = 0; k < 9; k++) g[k][i] = from[f.turned ? 8 - k : k];
      }
      float* to = f.to + (block * f.channels + c) * kWinogradFilters;
      for (int64_t lane = 0; lane < kWinogradFilters; lane += kLanes) {
        Floats half[3][kNumbers];  // [column][row]
#pragma GCC unroll 3
        for (int k = 0; k < 3; k++) {
          const Floats column[3] = {load_vector(g[k] + lane), load_vector(g[3 + k] + lane),
                                    load_vector(g[6 + k] + lane)};
          Tiles::filters(column, half[k]);
        }
#pragma GCC unroll 6
        for (int j = 0; j < kNumbers; j++) {
          const Floats row[3] = {half[0][j], half[1][j], half[2][j]};
          Floats out[kNumbers];
          Tiles::filters(row, out);
#pragma GCC unroll 6
          for (int k = 0; k < kNumbers; k++) store_vector(to + (j * kNumbers + k) * f.to_step + lane, out[k]);
        }
      }
    }
  }
}

template <class Tiles>
constexpr WinogradLoop kLoop = {convolve<Tiles>, transform_filters<Tiles>};
#endif

}  // namespace

WinogradLoops make_winograd() {
#if defined(__AVX2__) && !defined(__AVX512F__)
  return {{kLoop<SmallTiles>, kLoop<LargeTiles>}};
#else
  return {};
#endif
}

}  // namespace cpu::PG_CPU_ISA
