// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/narrow_conv.cpp is asked for: convolutions of whole numbers by small ones, exact.
//
// An image lies with channels last and what is padded around it. The numbers that a window sees are then a few runs of
// neighbours (a row of the window each), and results of many windows times 16 filters are sums over runs: of each a
// unit of x, which is 4 bytes, is multiplied by 16 units of filters.
#pragma once

#include <cstdint>

#include "narrow_rows.hpp"

namespace cpu {

constexpr int64_t kConvFilters = 16;  // of a block, which are computed side by side
constexpr int64_t kConvUnits = 64;    // bytes of a unit of each of them
constexpr int64_t kConvChunk = 96;    // windows that are computed at a time, at most
constexpr int64_t kConvSlack = 12;    // places for windows behind a chunk's last one: it is computed again

struct NarrowConvTile {
  const char* x;          // the image
  const int64_t* window;  // [kept + kConvSlack] bytes from x on to the first number of each window
  const int64_t* run;     // [runs] bytes from a window's first number on to each of its runs
  int64_t runs, units;    // units of each run
  const char* weight;     // blocks of [runs][units][16][numbers of a unit], `block_bytes` each
  int64_t block_bytes;
  const int32_t* sum;         // [filters]: of each one's numbers
  int32_t zero;               // what x's numbers are taken plus
  float x_scale;              // what sums are multiplied by, beside
  const float *scale, *bias;  // [filters]; bias may be NULL
  int64_t filters;            // those that are there: the last block may have fewer
  bool relu;
  float* y;  // of window i and filter j y[j * step + i], for `kept` windows
  int64_t step, kept;
};

// Rows of an image of floats as whole numbers with channels last: what WholeRow says plus `plus`.
struct NarrowImage {
  const float* x;  // of channel c and row i from x[c * line + i * x_row] on
  int64_t line, channels, width, x_row, rows;
  WholeRow how;
  int32_t plus;
  void* out;    // rows of [width][channels] numbers of the loop
  int64_t row;  // numbers from one of them to the next
};

// Tiles of 3x3 filters that slide by one: `side` x `side` results each, of numbers in as many rows and columns and two
// more, which are transformed to as many places.
struct ConvTiling {
  int64_t side, most;  // so many tiles at a time, at most
  constexpr int64_t numbers() const { return side + 2; }
  constexpr int64_t places() const { return numbers() * numbers(); }
};
constexpr ConvTiling kConvTilings[] = {{2, 24}, {4, 12}};

// A few tiles by all filters.
struct NarrowTiles {
  const int16_t* x;  // the image, as lay_out wrote it, with 64 bytes behind it: rows of `row` numbers
  int64_t row, channels;
  int64_t first, count, wide;  // tiles, of which `wide` are in a row
  int64_t out_h, out_w;
  int16_t* v;             // [places][most][padded], scratch; padded is a multiple of 32
  int64_t padded, units;  // (channels + 1) / 2 units
  const char* weight;     // blocks of [places][units][16][2] int16_t, `block_bytes` each: filters, transformed
  int64_t block_bytes;
  float x_scale;
  const float *scale, *bias;  // [filters]; bias may be NULL
  int64_t filters;
  bool relu;
  float* y;  // a filter's results from y[filter * step] on
  int64_t step;
};

struct NarrowConvLoop {
  int64_t unit = 0;  // numbers of a unit: 4 (unsigned bytes by signed ones), 2 (int16_t); 0: there is no such loop
  int64_t cost = 0;  // instructions that multiply one by a block
  void (*multiply)(const NarrowConvTile& t) = nullptr;
  void (*lay_out)(const NarrowImage& image) = nullptr;
  // By tiles, as kConvTilings has them; NULL: `multiply` takes less time.
  void (*winograd[2])(const NarrowTiles& t) = {};
};

// Those of this processor; set with the table of simd.hpp.
extern NarrowConvLoop narrow_conv;

}  // namespace cpu
