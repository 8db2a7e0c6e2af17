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

constexpr int64_t kConvFilters = 16;  // that are computed side by side

struct NarrowConvTile {
  const char* x;              // the image
  const int64_t* window;      // [count] bytes from x on to the first number of each window
  int64_t count;              // of windows: a multiple of NarrowConvLoop::windows
  const int64_t* run;         // [runs] bytes from a window's first number on to each of its runs
  int64_t runs, units;        // units of each run
  const int8_t* weight;       // [runs][units][16][numbers of a unit]
  const int32_t* sum;         // [16]: of each filter's numbers
  int32_t zero;               // what x's numbers are taken plus
  float x_scale;              // what sums are multiplied by, beside
  const float *scale, *bias;  // [filters]; bias may be NULL
  int64_t filters;            // of the 16 that are there
  bool relu;
  float* room;  // [count][16]
  float* y;     // of window i and filter j y[j * step + i], for the first `kept` windows
  int64_t step, kept;
};

struct NarrowConvLoop {
  int64_t unit = 0;     // numbers of a unit: 4 (unsigned bytes), 2 (int16_t); 0: the processor has no such loop
  int64_t windows = 1;  // that are computed side by side
  void (*multiply)(const NarrowConvTile& t) = nullptr;
  // A row of `channels` lines of `width` floats, `step` apart, as whole numbers with channels last. They are what
  // WholeRow says plus `plus`.
  void (*lay_out)(const float* x, int64_t step, int64_t channels, int64_t width, const WholeRow& how, int32_t plus,
                  void* out) = nullptr;
};

// Those of this processor; set with the table of simd.hpp.
extern NarrowConvLoop narrow_conv;

}  // namespace cpu
