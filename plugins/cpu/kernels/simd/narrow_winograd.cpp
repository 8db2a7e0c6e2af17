// SPDX-License-Identifier: Apache-2.0
// Filters of 3x3 that slide by one, over whole numbers, by tiles of 2x2 or 4x4 results (Lavin and Gray, "Fast
// algorithms for convolutional neural networks", 2016): 16 products take the place of 36, or 36 of 144. Filters are
// transformed by a multiple of the usual matrix, so that all numbers stay whole and a multiple of the result is exact:
// sums may wrap around on the way.
#include "narrow_conv.hpp"
#include "tile_transform.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
using Shorts = Vector<int16_t>;
using Words = Vector<uint32_t>;
using Floats = Vector<float>;
constexpr int64_t kShorts = kVectorLanes<int16_t>, kWords = kVectorLanes<int32_t>, kParts = kConvFilters / kWords;

// Of a line: four numbers of x as four places, and four places as twice two results.
struct SmallTiles {
  static constexpr ConvTiling kTiling = kConvTilings[0];
  static constexpr int kSide = 2, kNumbers = 4;
  template <class V>
  [[gnu::always_inline]] static void places(const V (&d)[4], V (&out)[4]) {
    out[0] = d[0] - d[2], out[1] = d[1] + d[2], out[2] = d[2] - d[1], out[3] = d[1] - d[3];
  }
  [[gnu::always_inline]] static void results(const Words (&m)[4], Words (&out)[2]) {
    out[0] = m[0] + m[1] + m[2], out[1] = m[1] - m[2] - m[3];
  }
  [[gnu::always_inline]] static Words whole(Words sum, int, int) { return (Words)((Vector<int32_t>)sum >> 2); }
};

// Six numbers as six places, and these as 24, 12, 6 and 6 times four results.
struct LargeTiles {
  static constexpr ConvTiling kTiling = kConvTilings[1];
  static constexpr int kSide = 4, kNumbers = 6;
  template <class V>
  [[gnu::always_inline]] static void places(const V (&d)[6], V (&out)[6]) {
    const V a = d[4] - 4 * d[2], b = d[3] - 4 * d[1], c = d[4] - d[2], e = 2 * (d[3] - d[1]);
    out[0] = 4 * (d[0] - d[2]) + c, out[1] = a + b, out[2] = a - b, out[3] = c + e, out[4] = c - e;
    out[5] = d[5] - d[3] - 2 * e;
  }
  [[gnu::always_inline]] static void results(const Words (&m)[6], Words (&out)[4]) {
    const Words a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    out[0] = m[0] + 4 * a + c, out[1] = 2 * b + d, out[2] = a + c, out[3] = b + 2 * d + m[5];
  }
  // Nine is odd: modulo 2^32 multiplying by its inverse divides by it.
  [[gnu::always_inline]] static Words whole(Words sum, int row, int column) {
    constexpr int kTwos[] = {3, 2, 1, 1};
    return (Words)((Vector<int32_t>)(sum * 954437177U) >> (kTwos[row] + kTwos[column]));
  }
};

template <class Tiles>
struct Sizes {
  static constexpr int64_t kMost = Tiles::kTiling.most, kPlaces = Tiles::kTiling.places();
  static constexpr int64_t kPlace = kMost * kConvFilters;  // sums of a place of all tiles, by a block
  static constexpr int64_t kSums = kPlaces * kPlace;
  static constexpr int64_t kResults = Tiles::kSide * Tiles::kSide * kPlace;
};

// Where results wait: a tile's from at(i) on, its rows `row` apart. Where tiles are whole rows of the image, they are
// in the order in which they go out; else rows of tiles are.
template <class Tiles>
struct Waiting {
  bool ordered;
  int64_t wide, row;
  explicit Waiting(const NarrowTiles& t)
      : ordered(t.wide * Tiles::kSide == t.out_w && t.first % t.wide == 0 && t.count % t.wide == 0),
        wide(ordered ? t.wide : t.count),
        row(wide * Tiles::kSide * kConvFilters) {}
  [[gnu::always_inline]] int64_t at(int64_t i) const {
    return Tiles::kSide * (i / wide * row + i % wide * kConvFilters);
  }
};

// t.v[place][tile][t.padded]: the tiles of x, transformed.
template <class Tiles>
void transform_tiles(const NarrowTiles& t) {
  constexpr int kNumbers = Tiles::kNumbers;
  const int64_t place = Sizes<Tiles>::kMost * t.padded;
  for (int64_t i = 0; i < t.count; i++) {
    const int64_t at = t.first + i;
    const int16_t* x = t.x + Tiles::kSide * (at / t.wide * t.row + at % t.wide * t.channels);
    int16_t* v = t.v + i * t.padded;
    for (int64_t c = 0; c < t.channels; c += kShorts) {
      transform_tile<Shorts, kNumbers, kNumbers>(
          [](const auto& from, auto& to) __attribute__((always_inline)) { Tiles::places(from, to); },
          [&](int j, int k) __attribute__((always_inline)) { return load_vector(x + j * t.row + k * t.channels + c); },
          [&](int j, int k, Shorts number)
              __attribute__((always_inline)) { store_vector<int16_t>(v + (j * kNumbers + k) * place + c, number); });
    }
  }
}

// Sums of tiles from `v` on by blocks of filters, as they are: of tile i and block b at to[b * sums + i * 16].
template <int kCount, int kBlocks>
[[gnu::always_inline]] inline void products(const NarrowTiles& t, const int16_t* v, const char* weight, uint32_t* to,
                                            int64_t sums_of_block) {
  AnyPairs::Sums sums[kBlocks][kCount];
  const char* x[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; i++) x[i] = reinterpret_cast<const char*>(v + i * t.padded);
  for (int64_t u = 0; u < t.units; u++, weight += kConvUnits) {
    const AnyPairs::Filters low(weight), high(weight + (kBlocks - 1) * t.block_bytes);
#pragma GCC unroll 16
    for (int i = 0; i < kCount; i++) {
      const AnyPairs::Unit unit = AnyPairs::unit(unit_at(x[i] + 4 * u));
      sums[0][i].add(unit, low);
      if constexpr (kBlocks == 2) sums[1][i].add(unit, high);
    }
  }
#pragma GCC unroll 2
  for (int b = 0; b < kBlocks; b++) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; i++) {
      __builtin_memcpy(to + b * sums_of_block + i * kConvFilters, &sums[b][i], sizeof sums[b][i]);
    }
  }
}

// What a block's sums are, as results, 16 side by side.
template <class Tiles>
void transform_sums(const NarrowTiles& t, const uint32_t* sums, const float* scale, const float* bias,
                    const Waiting<Tiles>& waiting, float* room) {
  constexpr int kSide = Tiles::kSide, kNumbers = Tiles::kNumbers;
  constexpr int64_t kPlace = Sizes<Tiles>::kPlace;
  for (int64_t i = 0; i < t.count; i++) {
    float* to = room + waiting.at(i);
    for (int64_t part = 0; part < kParts; part++) {
      const int64_t lane = part * kWords;
      const uint32_t* from = sums + i * kConvFilters + lane;
      const Floats by = load_vector(scale + lane), plus = load_vector(bias + lane);
      transform_tile<Words, kNumbers, kSide>(
          Tiles::results,
          [&](int j, int k) __attribute__((always_inline)) { return load_vector(from + (j * kNumbers + k) * kPlace); },
          [&](int j, int k, Words sum) __attribute__((always_inline)) {
            Floats y = __builtin_convertvector((Vector<int32_t>)Tiles::whole(sum, j, k), Floats) * by;
            y = y + plus;
            if (t.relu) y = y < 0 ? Floats{} : y;
            store_vector(to + j * waiting.row + k * kConvFilters + lane, y);
          });
    }
  }
}

// The tiles' results by 16 filters at most, to where they belong: what is beyond the image is left out.
template <class Tiles>
void put_tiles(const NarrowTiles& t, const Waiting<Tiles>& waiting, const float* room, int64_t filters, float* y) {
  constexpr int64_t kSide = Tiles::kSide;
  if (waiting.ordered) {
    const int64_t row = t.first / t.wide * kSide, there = t.out_h - row, rows = t.count / t.wide * kSide;
    return put(room, (rows < there ? rows : there) * t.out_w, filters, t.step, y + row * t.out_w);
  }
  for (int64_t i = 0; i < t.count;) {
    const int64_t row = (t.first + i) / t.wide * kSide, column = (t.first + i) % t.wide * kSide;
    const int64_t there = t.wide - column / kSide, tiles = there < t.count - i ? there : t.count - i;
    const int64_t count = column + kSide * tiles < t.out_w ? kSide * tiles : t.out_w - column;
    for (int64_t j = 0; j < kSide && row + j < t.out_h; j++) {
      put(room + j * waiting.row + waiting.at(i), count, filters, t.step, y + (row + j) * t.out_w + column);
    }
    i += tiles;
  }
}

// Where a filter's results go, so that they are there when they are written to.
template <class Tiles>
struct Places {
  static constexpr int64_t kSide = Tiles::kSide, kEach = 16 / kSide;
  int64_t at[(Tiles::kTiling.most + kEach - 1) / kEach * kSide], count = 0;
  explicit Places(const NarrowTiles& t) {
    for (int64_t i = 0; i < t.count; i += kEach) {
      const int64_t tile = t.first + i, first = (tile / t.wide * t.out_w + tile % t.wide) * kSide;
      for (int64_t j = 0; j < kSide; j++) at[count++] = first + j * t.out_w;
    }
  }
  [[gnu::always_inline]] void fetch(const float* y) const {
    for (int64_t i = 0; i < count; i++) __builtin_prefetch(y + at[i], 0, 2);
  }
};

template <class Tiles, int kBlocks>
void blocks(const NarrowTiles& t, const Places<Tiles>& places, int64_t first) {
  using Size = Sizes<Tiles>;
  alignas(64) uint32_t sums[kBlocks * Size::kSums];
  alignas(64) float room[Size::kResults + kPutSlack];
  const Waiting<Tiles> waiting(t);
  const char* weight = t.weight + first / kConvFilters * t.block_bytes;
  for (int64_t place = 0; place < Size::kPlaces; place++) {
    for (int64_t j = first + place; j < t.filters && j < first + kBlocks * kConvFilters; j += Size::kPlaces) {
      places.fetch(t.y + j * t.step);
    }
    side_by_side<AnyPairs::kWindows>(
        t.count, [&](auto count, int64_t i) __attribute__((always_inline)) {
          const int64_t at = place * Size::kMost + i;
          products<decltype(count)::value, kBlocks>(t, t.v + at * t.padded, weight + place * t.units * kConvUnits,
                                                    sums + at * kConvFilters, Size::kSums);
        });
  }
  for (int b = 0; b < kBlocks; b++) {
    const int64_t at = first + b * kConvFilters, left = t.filters - at, filters = left < 16 ? left : 16;
    float scale[kConvFilters] = {}, bias[kConvFilters] = {};
    for (int64_t j = 0; j < filters; j++) {
      scale[j] = t.scale[at + j] * t.x_scale, bias[j] = t.bias != nullptr ? t.bias[at + j] : 0;
    }
    transform_sums<Tiles>(t, sums + b * Size::kSums, scale, bias, waiting, room);
    put_tiles<Tiles>(t, waiting, room, filters, t.y + at * t.step);
  }
}

template <class Tiles>
void convolve(const NarrowTiles& t) {
  transform_tiles<Tiles>(t);
  const Places<Tiles> places(t);
  constexpr int64_t kAll = AnyPairs::kBlocks * kConvFilters;
  for (int64_t first = 0; first < t.filters; first += kAll) {
    if (t.filters - first > kConvFilters)
      blocks<Tiles, AnyPairs::kBlocks>(t, places, first);
    else
      blocks<Tiles, 1>(t, places, first);
  }
}
#endif

}  // namespace

void add_narrow_winograd(NarrowConvLoop& loop) {
#if defined(__AVX2__)
  loop.winograd[0] = convolve<SmallTiles>, loop.winograd[1] = convolve<LargeTiles>;
#else
  (void)loop;
#endif
}

}  // namespace cpu::PG_CPU_ISA
