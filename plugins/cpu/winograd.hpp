// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/winograd.cpp and winograd_gradient.cpp are asked for: convolutions of float32 by filters of 3x3
// that slide by one, by tiles of results, of images that keep at least eight channels side by side.
#pragma once

#include <cstdint>

namespace cpu {

constexpr int64_t kWinogradChannels = 8;  // side by side
constexpr int64_t kWinogradFilters = 16;  // of a block of transformed filters
constexpr int64_t kWinogradApart = 16;    // floats between places, so that theirs do not fall on the same cache lines

// Tiles of `side` x `side` results: of numbers in as many rows and columns and two more, which become as many places.
struct WinogradTiling {
  int64_t side;
  constexpr int64_t numbers() const { return side + 2; }
  constexpr int64_t places() const { return numbers() * numbers(); }
};
constexpr WinogradTiling kWinogradTilings[] = {{2}, {4}};

// Images of float32: a multiple of eight channels, pixels of rows that follow each other. Steps are in floats.
struct WinogradImages {
  int64_t height = 0, width = 0, channels = 0;
  int64_t image = 0, eight = 0, pixel = 0;  // from one image, eight channels and pixel to the next
};

// A few tiles by some filters.
struct WinogradTiles {
  WinogradImages in, out;
  const float* x;
  float* y;
  int64_t top, left;             // zeros before x
  int64_t high, wide;            // tiles of an image
  int64_t first, count;          // tiles, those of all images one behind the other
  int64_t filter, filter_count;  // those to compute, from a block's first on
  const float* weight;           // transformed: [places][blocks][channels][16], places `weight_step` apart
  int64_t weight_step;
  const float* bias;  // [filters], or NULL
  bool add, relu;     // y is added to; what is below 0 becomes 0
  float* v;           // room for [places][count][channels], places kWinogradApart more apart
  float* sums;        // the same for the filters, blocks of which are whole
};

// Filters of 3x3 to be transformed: of filter o and channel c nine numbers from weight[o * filter_step + c *
// channel_step] on; `turned`: the last one first. Blocks [first, last).
struct WinogradFilters {
  const float* weight;
  int64_t channels, filters, channel_step, filter_step;
  bool turned;
  int64_t first, last;
  float* to;
  int64_t to_step;  // from a place to the next
};

// The gradient of filters: [places][channels][filters] sums over tiles, of which some by some filters are added up.
struct WinogradGradient {
  WinogradImages in, out;  // x and dy
  const float *x, *dy;
  int64_t top, left, high, wide, first, count;  // as above
  int64_t filter, filter_count;                 // a multiple of 16 and one of 8
  float *v, *w;  // room for [places][count][channels + kWinogradApart], and for filters, whose blocks are whole
  float* sums;   // [places][channels][blocks of filters]
  bool add;      // to what is there
  float* dbias;  // of these filters: sums of dy; or NULL
};
// What becomes of the sums: the number k of nine of a filter and a channel lies at dweight[filter * filter_step +
// channel * channel_step + k * number_step].
struct WinogradGradientEnd {
  const float* sums;
  int64_t channels, filter, filter_count;
  float* dweight;
  int64_t filter_step, channel_step, number_step;
};

struct WinogradLoop {
  void (*convolve)(const WinogradTiles& t) = nullptr;  // NULL: there is no such loop
  void (*transform)(const WinogradFilters& f) = nullptr;
  void (*add_gradient)(const WinogradGradient& g) = nullptr;
  void (*end_gradient)(const WinogradGradientEnd& g) = nullptr;
};
struct WinogradLoops {
  WinogradLoop tiling[2];  // as kWinogradTilings has them
};

// Those of this processor; set with the table of simd.hpp.
extern WinogradLoops winograd_loops;

}  // namespace cpu
