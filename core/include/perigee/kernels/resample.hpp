// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/resample.hpp: which elements of an axis a resampled one is made of, and with which weights. One table
// serves every device and both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace pg {

enum class Resampling { kNearest, kLinear, kCubic, kArea };

// Output o is the sum of weight[k] * x[index[k]] for k in [begin[o], begin[o + 1]).
struct ResampleTable {
  std::vector<int64_t> begin{0}, index;
  std::vector<double> weight;

  void add(int64_t at, double w) { index.push_back(at), weight.push_back(w); }
  void end_output() { begin.push_back(static_cast<int64_t>(index.size())); }
};

// Keys' cubic convolution kernel with a = -0.75 ("Cubic convolution interpolation for digital image processing", 1981).
inline double cubic_weight(double distance) {
  constexpr double a = -0.75;
  double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// From an axis of `in` elements to one of `out`. `scale`: input elements an output element; 0: in / out. The centres of
// the outer elements fall on each other with align_corners, else the outer edges do. What lies outside is the nearest
// element inside.
inline ResampleTable resample_table(Resampling mode, int64_t in, int64_t out, bool align_corners, double scale) {
  ResampleTable table;
  if (!(scale > 0)) scale = static_cast<double>(in) / static_cast<double>(out);
  if (align_corners) scale = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  for (int64_t o = 0; o < out; o++, table.end_output()) {
    auto inside = [&](int64_t at) { return std::min(std::max<int64_t>(at, 0), in - 1); };
    double place = static_cast<double>(o) * scale;
    if (mode == Resampling::kNearest) {
      table.add(inside(static_cast<int64_t>(place)), 1);
      continue;
    }
    if (mode == Resampling::kArea) {
      int64_t first = o * in / out, last = ((o + 1) * in + out - 1) / out;
      for (int64_t at = first; at < last; at++) table.add(at, 1 / static_cast<double>(last - first));
      continue;
    }
    if (!align_corners) place = (static_cast<double>(o) + 0.5) * scale - 0.5;
    if (mode == Resampling::kLinear) place = std::max(place, 0.0);
    auto low = static_cast<int64_t>(std::floor(place));
    double part = place - static_cast<double>(low);
    if (mode == Resampling::kLinear) {
      table.add(inside(low), 1 - part);
      if (part > 0) table.add(inside(low + 1), part);
    } else {
      for (int64_t k = -1; k <= 2; k++) table.add(inside(low + k), cubic_weight(part - static_cast<double>(k)));
    }
  }
  return table;
}

}  // namespace pg
