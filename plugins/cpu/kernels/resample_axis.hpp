// SPDX-License-Identifier: Apache-2.0
// One axis of resample or of its transpose: what each new element is made of, and rows made by it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "linalg/numbers.hpp"
#include "perigee/kernels/resample.hpp"
#include "resample_row.hpp"
#include "simd.hpp"

namespace pg::cpu {

// Outputs [first, last) of an axis; of its transpose the axis' inputs are the outputs.
class ResampledRow {
 public:
  ResampledRow() = default;
  ResampledRow(const ResampledAxis& axis, bool transposed, int64_t first, int64_t last)
      : table_(merged(transposed ? transpose(axis, first, last) : axis.table(first, last))),
        source_(transposed ? axis.out : axis.in),
        narrow_(table_.weight.begin(), table_.weight.end()) {
    for (int64_t o = 0; o < count(); o++) {
      int64_t taps = end(o) - begin(o);
      taps_ = o == 0 || taps == taps_ ? taps : 0;
      if (taps > 0) reach_ = std::max(reach_, table_.index[end(o) - 1] - table_.index[begin(o)] + 1);
    }
    const int64_t width = ::cpu::simd->resample_width;
    if (width == 0 || reach_ == 0 || reach_ > kMostTaps || source_ < reach_ + width - 1) return;
    for (int64_t lanes = width; lanes > 1 && place_.empty(); lanes /= 2) make_blocks(width, lanes);
  }

  int64_t count() const { return static_cast<int64_t>(table_.begin.size()) - 1; }
  // Output o is the sum of weight[k] * x[index[k]] for k in [begin, end).
  int64_t begin(int64_t o) const { return table_.begin[static_cast<size_t>(o)]; }
  int64_t end(int64_t o) const { return table_.begin[static_cast<size_t>(o) + 1]; }
  const int64_t* index() const { return table_.index.data(); }
  template <class A>
  const A* weight() const {
    if constexpr (std::is_same_v<A, float>) {
      return narrow_.data();
    } else {
      return table_.weight.data();
    }
  }
  // How many elements of the source there are from the first to the last that an output is made of, at most.
  int64_t reach() const { return reach_; }

  // A row of the source made into the outputs.
  template <class A>
  void run(const A* x, A* y) const {
    if constexpr (std::is_same_v<A, float>) {
      if (!place_.empty()) {
        const ::cpu::RowBlocks blocks{count(),      lanes_,        static_cast<int32_t>(reach_), gaps_,
                                      base_.data(), place_.data(), block_weight_.data()};
        return ::cpu::simd->resample_row(blocks, x, y);
      }
    }
    switch (taps_) {
      case 1: return run_taps<1>(x, y);
      case 2: return run_taps<2>(x, y);
      case 4: return run_taps<4>(x, y);
      default: return run_taps<0>(x, y);
    }
  }

 private:
  static constexpr int64_t kMostTaps = 16;

  // kTaps 0: as many as each output has.
  template <int kTaps, class A>
  void run_taps(const A* x, A* y) const {
    const int64_t n = count(), *at = index();
    const A* w = weight<A>();
    for (int64_t o = 0; o < n; o++) {
      A sum{};
      const int64_t from = kTaps > 0 ? o * kTaps : begin(o), to = kTaps > 0 ? from + kTaps : end(o);
      for (int64_t k = from; k < to; k++) sum += w[k] * x[at[k]];
      y[o] = sum;
    }
  }

  // The tables of RowBlocks, where `lanes` outputs side by side are made of few enough elements.
  void make_blocks(int64_t width, int64_t lanes) {
    const int64_t n = count(), blocks = (n + lanes - 1) / lanes;
    std::vector<int32_t> base(static_cast<size_t>(blocks)), place(static_cast<size_t>(blocks * width), 0);
    // Where each output's elements begin; one of nothing stands where the one before it does.
    std::vector<int64_t> start(static_cast<size_t>(n), 0);
    for (int64_t o = 0; o < n; o++) {
      const auto i = static_cast<size_t>(o);
      if (begin(o) < end(o)) start[i] = std::min(index()[begin(o)], source_ - reach_);
      if (begin(o) == end(o) && o > 0) start[i] = start[i - 1];
    }
    for (int64_t b = 0; b < blocks; b++) {
      const int64_t from = std::min(start[static_cast<size_t>(b * lanes)], source_ - (width + reach_ - 1));
      base[static_cast<size_t>(b)] = static_cast<int32_t>(from);
      for (int64_t o = b * lanes, lane = 0; lane < lanes && o < n; o++, lane++) {
        const int64_t at = start[static_cast<size_t>(o)] - from;
        if (at >= width) return;
        place[static_cast<size_t>(b * width + lane)] = static_cast<int32_t>(at);
      }
    }
    block_weight_.assign(static_cast<size_t>(blocks * reach_ * width), 0.0F);
    for (int64_t o = 0; o < n; o++) {
      float* to = block_weight_.data() + o / lanes * reach_ * width + o % lanes;
      for (int64_t k = begin(o); k < end(o); k++)
        to[(index()[k] - start[static_cast<size_t>(o)]) * width] = weight<float>()[k];
      for (int64_t k = 0; k < reach_; k++) gaps_ |= to[k * width] == 0 ? 1 : 0;
    }
    base_ = std::move(base), place_ = std::move(place), lanes_ = static_cast<int32_t>(lanes);
  }

  // An element that an output is made of twice, at an end of the axis, counts once.
  static ResampleTable merged(const ResampleTable& table) {
    ResampleTable result;
    result.begin.reserve(table.begin.size());
    for (size_t o = 0; o + 1 < table.begin.size(); o++, result.end_output()) {
      for (auto k = static_cast<size_t>(table.begin[o]); k < static_cast<size_t>(table.begin[o + 1]); k++) {
        if (k > static_cast<size_t>(table.begin[o]) && table.index[k] == result.index.back()) {
          result.weight.back() += table.weight[k];
        } else {
          result.add(table.index[k], table.weight[k]);
        }
      }
    }
    return result;
  }
  // What inputs [first, last) go to, in the order of outputs.
  static ResampleTable transpose(const ResampledAxis& axis, int64_t first, int64_t last) {
    int64_t begin = first_output(axis, [&](const ResampleTable& t) { return t.index.back() >= first; });
    int64_t end = first_output(axis, [&](const ResampleTable& t) { return t.index.front() >= last; });
    ResampleTable table = axis.table(begin, std::max(begin, end)), result;
    std::vector<std::vector<std::pair<int64_t, double>>> uses(static_cast<size_t>(last - first));
    for (int64_t o = begin; o < end; o++) {
      for (int64_t k = table.begin[o - begin]; k < table.begin[o - begin + 1]; k++) {
        int64_t at = table.index[k];
        if (at >= first && at < last) uses[static_cast<size_t>(at - first)].push_back({o, table.weight[k]});
      }
    }
    for (const auto& list : uses) {
      for (auto [o, weight] : list) result.add(o, weight);
      result.end_output();
    }
    return result;
  }
  // The first output for which `holds`, of which all behind it do too; else their number.
  template <class Holds>
  static int64_t first_output(const ResampledAxis& axis, Holds&& holds) {
    int64_t low = 0, high = axis.out;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      holds(axis.table(middle, middle + 1)) ? high = middle : low = middle + 1;
    }
    return low;
  }

  ResampleTable table_;
  int64_t source_ = 0;
  std::vector<float> narrow_;
  int64_t taps_ = 0, reach_ = 0;  // taps_: how many elements all outputs are made of; 0 where they differ
  // Of RowBlocks; empty where rows are not made by them.
  int32_t lanes_ = 0, gaps_ = 0;
  std::vector<int32_t> base_, place_;
  std::vector<float> block_weight_;
};

}  // namespace pg::cpu
