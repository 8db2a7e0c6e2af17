// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/resample.hpp: which elements of an axis a resampled one is made of, and with which weights. One table
// serves every device and both directions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "perigee/kernels/hd.hpp"

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
PG_HD double cubic_weight(double distance) {
  constexpr double a = -0.75;
  double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// floor(o size / n): where output o of n begins that shares `size` elements out. The product may be above int64.
PG_HD int64_t share_begin(int64_t o, int64_t size, int64_t n) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(static_cast<Wide>(o) * size / n);
}
// ceil((o + 1) size / n): where it ends.
PG_HD int64_t share_end(int64_t o, int64_t size, int64_t n) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>((static_cast<Wide>(o + 1) * size + n - 1) / n);
}

// An axis of `in` elements made into one of `out`. `scale`: input elements an output element; 0: in / out. The centres
// of the outer elements fall on each other with align_corners, else the outer edges do. What lies outside is the
// nearest element inside. Elements only move forward: what output o + 1 is made of does not lie before what o is made
// of.
struct ResampledAxis {
  Resampling mode;
  int64_t in, out;
  bool align_corners;
  double scale;

  // Of outputs [first, last).
  ResampleTable table(int64_t first, int64_t last) const {
    ResampleTable table;
    table.begin.reserve(static_cast<size_t>(last - first) + 1);  // refuses what there is no memory for, at once
    const double each = step();
    for (int64_t o = first; o < last; o++, table.end_output())
      visit(o, each, [&](int64_t at, double weight) { table.add(at, weight); });
    return table;
  }
  ResampleTable table() const { return table(0, out); }

  // Input elements an output element.
  PG_HD double step() const {
    if (align_corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    return scale > 0 ? scale : static_cast<double>(in) / static_cast<double>(out);
  }
  // use(index, weight) for what output o is made of, in rising order.
  template <class Use>
  PG_HD void visit(int64_t o, double step, Use&& use) const {
    if (mode == Resampling::kArea) {
      int64_t begin = share_begin(o, in, out), end = share_end(o, in, out);
      for (int64_t at = begin; at < end; at++) use(at, 1 / static_cast<double>(end - begin));
      return;
    }
    double place = static_cast<double>(o) * step;
    if (mode != Resampling::kNearest && !align_corners) place = (static_cast<double>(o) + 0.5) * step - 0.5;
    // A step of one's own may lead farther than an integer does; all beyond the end is the last element.
    place = place < static_cast<double>(in) ? place : static_cast<double>(in);
    if (mode == Resampling::kNearest) return use(inside(static_cast<int64_t>(place)), 1.0);
    if (mode == Resampling::kLinear) place = place > 0.0 ? place : 0.0;
    auto low = static_cast<int64_t>(std::floor(place));
    double part = place - static_cast<double>(low);
    if (mode == Resampling::kLinear) {
      use(inside(low), 1 - part);
      if (part > 0) use(inside(low + 1), part);
    } else {
      for (int64_t k = -1; k <= 2; k++) use(inside(low + k), cubic_weight(part - static_cast<double>(k)));
    }
  }
  // The first and the last of these elements.
  PG_HD void span(int64_t o, double step, int64_t& first, int64_t& last) const {
    if (mode == Resampling::kArea) {
      first = share_begin(o, in, out), last = share_end(o, in, out) - 1;
      return;
    }
    first = in, last = -1;
    visit(o, step, [&](int64_t at, double) {
      first = at < first ? at : first;
      last = at > last ? at : last;
    });
  }

 private:
  PG_HD int64_t inside(int64_t at) const { return at < 0 ? 0 : at >= in ? in - 1 : at; }
};

}  // namespace pg
