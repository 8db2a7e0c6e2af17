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
      const int64_t filter = t.filter + f;
      const Floats bias = t.bias != nullptr ? load_vector(t.bias + filter) : Floats{};
      float* to = t.y + spot.image * t.out.image + filter / kLanes * t.out.eight + spot.row * row + spot.column * pixel;
      transform_tile<Floats, kNumbers, kSide>(
          Tiles::results,
          [&](int j, int k)
              __attribute__((always_inline)) { return load_vector(from + (j * kNumbers + k) * sizes.sums_step); },
          [&](int j, int k, Floats y) __attribute__((always_inline)) {
            if (j >= rows || k >= columns) return;
            float* place = to + j * row + k * pixel;
            y = y + bias;
            if (t.add) y = y + load_vector(place);
            if (t.relu) y = y < 0 ? Floats{} : y;
            store_vector(place, y);
          });
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
        transform_tile<Floats, 3, kNumbers>(
            Tiles::filters,
            [&](int j, int k) __attribute__((always_inline)) { return load_vector(g[3 * j + k] + lane); },
            [&](int j, int k, Floats place)
                __attribute__((always_inline)) { store_vector(to + (j * kNumbers + k) * f.to_step + lane, place); });
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
