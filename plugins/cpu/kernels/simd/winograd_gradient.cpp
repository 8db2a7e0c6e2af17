// SPDX-License-Identifier: Apache-2.0
// Gradients of filters of 3x3 that slide by one: what takes the place of products with tiles of dy is summed over the
// tiles in transformed places, and transformed back once.
#include "winograd.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
template <class Tiles>
struct GradientSizes {
  static constexpr int kPlaces = Tiles::kNumbers * Tiles::kNumbers;
  int64_t filters, v_row, w_row, v_step, w_step, sums_step;
  GradientSizes(int64_t channels, int64_t filter_count, int64_t count)
      : filters((filter_count + kWinogradFilters - 1) / kWinogradFilters * kWinogradFilters),
        v_row(channels + kWinogradApart),
        w_row(filters + kWinogradApart),
        v_step(count * v_row),
        w_step(count * w_row),
        sums_step(channels * filters + kWinogradApart) {}
};

// w[place][tile][filter]: the tiles of dy, of which what is beyond the image is 0.
template <class Tiles>
void transform_slopes(const WinogradGradient& g, const GradientSizes<Tiles>& sizes) {
  constexpr int kSide = Tiles::kSide, kNumbers = Tiles::kNumbers;
  const WinogradImages& out = g.out;
  const int64_t line = out.width * out.pixel;
  for (int64_t i = 0; i < g.count; i++) {
    const Spot spot(g.high, g.wide, g.first + i, kSide);
    const int64_t rows = out.height - spot.row, columns = out.width - spot.column;
    const float* dy = g.dy + spot.image * out.image + spot.row * line + spot.column * out.pixel;
    for (int64_t f = 0; f < sizes.filters; f += kLanes) {
      float* to = g.w + i * sizes.w_row + f;
      if (f >= g.filter_count) {  // of the last block
        for (int k = 0; k < sizes.kPlaces; k++) store_vector(to + k * sizes.w_step, Floats{});
        continue;
      }
      const float* from = dy + (g.filter + f) / kLanes * out.eight;
      transform_tile<Floats, kSide, kNumbers>(
          Tiles::results_turned,
          [&](int j, int k) __attribute__((always_inline)) {
            return j < rows && k < columns ? load_vector(from + j * line + k * out.pixel) : Floats{};
          },
          [&](int j, int k, Floats place)
              __attribute__((always_inline)) { store_vector(to + (j * kNumbers + k) * sizes.w_step, place); });
    }
  }
}

template <class Tiles>
void add_gradient(const WinogradGradient& g) {
  const GradientSizes<Tiles> sizes(g.in.channels, g.filter_count, g.count);
  transform_tiles<Tiles>(g, g.x, g.v, sizes.v_row, sizes.v_step);
  transform_slopes<Tiles>(g, sizes);
  const Onto onto = g.add ? Onto::kBehind : Onto::kNothing;
  for (int64_t place = 0; place < sizes.kPlaces; place++) {
    const Left<float> v{g.v + place * sizes.v_step, 1, sizes.v_row};
    const float* w = g.w + place * sizes.w_step;
    float* sums = g.sums + place * sizes.sums_step;
    for (int64_t f = 0; f < sizes.filters; f += kWinogradFilters) {
      small_product(g.in.channels, v, w + f, sizes.w_row, sums + f, sizes.filters, onto, [&](int64_t, int64_t) {
        return Extent{kWinogradFilters, 0, g.count};
      });
    }
  }
  if (g.dbias == nullptr) return;
  const float* all = g.w + (Tiles::kNumbers + 1) * sizes.w_step;  // whose numbers are the sums of tiles
  for (int64_t f = 0; f < g.filter_count; f += kLanes) {
    Floats sum{};
    for (int64_t i = 0; i < g.count; i++) sum = sum + load_vector(all + i * sizes.w_row + f);
    store_vector(g.dbias + f, g.add ? load_vector(g.dbias + f) + sum : sum);
  }
}

template <class Tiles>
void end_gradient(const WinogradGradientEnd& g) {
  constexpr int kNumbers = Tiles::kNumbers;
  const GradientSizes<Tiles> sizes(g.channels, g.filter_count, 0);
  for (int64_t c = 0; c < g.channels; c++) {
    for (int64_t f = 0; f < g.filter_count; f += kLanes) {
      const float* from = g.sums + c * sizes.filters + f;
      alignas(32) float numbers[9][kLanes];
      transform_tile<Floats, kNumbers, 3>(
          Tiles::filters_turned,
          [&](int j, int k)
              __attribute__((always_inline)) { return load_vector(from + (j * kNumbers + k) * sizes.sums_step); },
          [&](int j, int k, Floats number)
              __attribute__((always_inline)) { store_vector(numbers[3 * j + k], number); });
      float* to = g.dweight + (g.filter + f) * g.filter_step + c * g.channel_step;
      for (int64_t i = 0; i < kLanes; i++, to += g.filter_step) {
        for (int k = 0; k < 9; k++) to[k * g.number_step] = numbers[k][i];
      }
    }
  }
}
#endif

}  // namespace

void add_winograd_gradients(WinogradLoops& loops) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  loops.tiling[0].add_gradient = add_gradient<SmallTiles>, loops.tiling[0].end_gradient = end_gradient<SmallTiles>;
  loops.tiling[1].add_gradient = add_gradient<LargeTiles>, loops.tiling[1].end_gradient = end_gradient<LargeTiles>;
#else
  (void)loops;
#endif
}

}  // namespace cpu::PG_CPU_ISA
