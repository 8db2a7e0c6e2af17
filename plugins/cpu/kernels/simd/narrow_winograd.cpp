// SPDX-License-Identifier: Apache-2.0
// Filters of 3x3 that slide by one, over whole numbers, by tiles of 2x2 results (Lavin and Gray, "Fast algorithms for
// convolutional neural networks", 2016): 16 products take the place of 36. Filters are transformed by twice the usual
// matrix, so that all numbers stay whole and four times the result is exact: sums may wrap around on the way.
#include "narrow_conv.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

#if defined(__AVX2__)
using Shorts = Vector<int16_t>;
using Words = Vector<uint32_t>;
constexpr int64_t kShorts = kVectorLanes<int16_t>, kWords = kVectorLanes<int32_t>, kParts = kConvFilters / kWords;
constexpr int64_t kPlace = kConvTiles * kConvFilters, kSums = 16 * kPlace;  // sums of a place of all tiles; of a block

// t.v[place][tile][t.padded]: the tiles of x, transformed.
void transform_tiles(const NarrowTiles& t) {
  const int64_t place = kConvTiles * t.padded;
  for (int64_t i = 0; i < t.count; i++) {
    const int64_t at = t.first + i;
    const int16_t* x = t.x + 2 * (at / t.wide) * t.row + 2 * (at % t.wide) * t.channels;
    int16_t* v = t.v + i * t.padded;
    for (int64_t c = 0; c < t.channels; c += kShorts) {
      Shorts d[4][4], half[4][4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) d[j][k] = load_vector(x + j * t.row + k * t.channels + c);
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        half[0][k] = d[0][k] - d[2][k], half[1][k] = d[1][k] + d[2][k];
        half[2][k] = d[2][k] - d[1][k], half[3][k] = d[1][k] - d[3][k];
      }
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        int16_t* to = v + 4 * j * place + c;
        store_vector<int16_t>(to, half[j][0] - half[j][2]);
        store_vector<int16_t>(to + place, half[j][1] + half[j][2]);
        store_vector<int16_t>(to + 2 * place, half[j][2] - half[j][1]);
        store_vector<int16_t>(to + 3 * place, half[j][1] - half[j][3]);
      }
    }
  }
}

// Sums of tiles from `v` on by blocks of filters, as they are: of tile i and block b at to[b * kSums + i * 16].
template <int kCount, int kBlocks>
[[gnu::always_inline]] inline void products(const NarrowTiles& t, const int16_t* v, const char* weight, uint32_t* to) {
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
      __builtin_memcpy(to + b * kSums + i * kConvFilters, &sums[b][i], sizeof sums[b][i]);
    }
  }
}

// What a block's sums are, as results: room[row][column][16] of both rows of the tiles.
void transform_sums(const NarrowTiles& t, const uint32_t* sums, const float* scale, const float* bias, float* room) {
  constexpr int64_t kRow = 2 * kPlace;
  using Floats = Vector<float>;
  for (int64_t i = 0; i < t.count; i++) {
    for (int64_t part = 0; part < kParts; part++) {
      const int64_t lane = part * kWords;
      const uint32_t* from = sums + i * kConvFilters + lane;
      const Floats by = load_vector(scale + lane), plus = load_vector(bias + lane);
      Words half[2][4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        const Words a = load_vector(from + k * kPlace), b = load_vector(from + (4 + k) * kPlace);
        const Words c = load_vector(from + (8 + k) * kPlace), d = load_vector(from + (12 + k) * kPlace);
        half[0][k] = a + b + c, half[1][k] = b - c - d;
      }
#pragma GCC unroll 2
      for (int j = 0; j < 2; j++) {
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
          const Words four = k == 0 ? half[j][0] + half[j][1] + half[j][2] : half[j][1] - half[j][2] - half[j][3];
          Floats y = __builtin_convertvector((Vector<int32_t>)four >> 2, Floats) * by;
          y = y + plus;
          if (t.relu) y = y < 0 ? Floats{} : y;
          store_vector(room + j * kRow + (2 * i + k) * kConvFilters + lane, y);
        }
      }
    }
  }
}

// The tiles' results by 16 filters at most, to where they belong: what is beyond the image is left out.
void put_tiles(const NarrowTiles& t, const float* room, int64_t filters, float* y) {
  constexpr int64_t kRow = 2 * kPlace;
  for (int64_t i = 0; i < t.count;) {
    const int64_t row = (t.first + i) / t.wide * 2, column = (t.first + i) % t.wide * 2;
    const int64_t there = t.wide - column / 2, tiles = there < t.count - i ? there : t.count - i;
    const int64_t count = column + 2 * tiles < t.out_w ? 2 * tiles : t.out_w - column;
    for (int64_t j = 0; j < 2 && row + j < t.out_h; j++) {
      put(room + j * kRow + 2 * i * kConvFilters, count, filters, t.step, y + (row + j) * t.out_w + column);
    }
    i += tiles;
  }
}

// Where a filter's results go, so that they are there when they are written to.
[[gnu::always_inline]] inline void fetch(const NarrowTiles& t, const float* y) {
  for (int64_t i = 0; i < t.count; i += 8) {
    const int64_t at = t.first + i;
    const float* to = y + at / t.wide * 2 * t.out_w + at % t.wide * 2;
    __builtin_prefetch(to, 0, 2), __builtin_prefetch(to + t.out_w, 0, 2);
  }
}

template <int kBlocks>
void blocks(const NarrowTiles& t, int64_t first) {
  alignas(64) uint32_t sums[kBlocks * kSums];
  alignas(64) float room[4 * kPlace];
  const char* weight = t.weight + first / kConvFilters * t.block_bytes;
  for (int64_t place = 0; place < 16; place++) {
    for (int64_t j = first + place; j < t.filters && j < first + kBlocks * kConvFilters; j += 16) {
      fetch(t, t.y + j * t.step);
    }
    side_by_side<AnyPairs::kWindows>(
        t.count, [&](auto count, int64_t i) __attribute__((always_inline)) {
          const int64_t at = place * kConvTiles + i;
          products<decltype(count)::value, kBlocks>(t, t.v + at * t.padded, weight + place * t.units * kConvUnits,
                                                    sums + at * kConvFilters);
        });
  }
  for (int b = 0; b < kBlocks; b++) {
    const int64_t at = first + b * kConvFilters, left = t.filters - at, filters = left < 16 ? left : 16;
    float scale[kConvFilters] = {}, bias[kConvFilters] = {};
    for (int64_t j = 0; j < filters; j++) {
      scale[j] = t.scale[at + j] * t.x_scale, bias[j] = t.bias != nullptr ? t.bias[at + j] : 0;
    }
    transform_sums(t, sums + b * kSums, scale, bias, room);
    put_tiles(t, room, filters, t.y + at * t.step);
  }
}

void convolve(const NarrowTiles& t) {
  transform_tiles(t);
  constexpr int64_t kAll = AnyPairs::kBlocks * kConvFilters;
  for (int64_t first = 0; first < t.filters; first += kAll) {
    if (t.filters - first > kConvFilters)
      blocks<AnyPairs::kBlocks>(t, first);
    else
      blocks<1>(t, first);
  }
}
#endif

}  // namespace

void (*narrow_winograd())(const NarrowTiles& t) {
#if defined(__AVX2__)
  return convolve;
#else
  return nullptr;
#endif
}

}  // namespace cpu::PG_CPU_ISA
