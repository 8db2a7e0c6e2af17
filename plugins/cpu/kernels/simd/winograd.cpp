// SPDX-License-Identifier: Apache-2.0
// Filters of 3x3 that slide by one, over float32: results and gradients of inputs, by tiles of results.
#include "winograd.hpp"

namespace cpu::PG_CPU_ISA {

void add_winograd_gradients(WinogradLoops& loops);

namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
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

template <class Tiles>
void transform_sums(const WinogradTiles& t) {
  constexpr int kSide = Tiles::kSide, kNumbers = Tiles::kNumbers;
  const Sizes<Tiles> sizes(t);
  const int64_t pixel = t.out.pixel, row = t.out.width * pixel;
  for (int64_t i = 0; i < t.count; i++) {
    const Spot spot(t.high, t.wide, t.first + i, kSide);
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
  transform_tiles<Tiles>(t, t.x, t.v, t.in.channels, sizes.v_step);
  const int64_t first = t.filter / kWinogradFilters;
  for (int64_t place = 0; place < sizes.kPlaces; place++) {
    const Left<float> v{t.v + place * sizes.v_step, t.in.channels, 1};
    for (int64_t block = 0; block < sizes.blocks; block++) {
      const float* weight = t.weight + place * t.weight_step + (first + block) * t.in.channels * kWinogradFilters;
      float* sums = t.sums + place * sizes.sums_step + block * kWinogradFilters;
      small_product(t.count, v, weight, kWinogradFilters, sums, sizes.sums_row, Onto::kNothing, [&](int64_t, int64_t) {
        return Extent{kWinogradFilters, 0, t.in.channels};
      });
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
  WinogradLoops loops{{kLoop<SmallTiles>, kLoop<LargeTiles>}};
  add_winograd_gradients(loops);
  return loops;
#else
  return {};
#endif
}

}  // namespace cpu::PG_CPU_ISA
