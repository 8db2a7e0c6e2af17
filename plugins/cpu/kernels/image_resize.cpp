// SPDX-License-Identifier: Apache-2.0
// image_resize(x, box) -> y: columns first, then rows. Bytes in whole numbers (kernels/simd/image_rows.cpp), floats in
// float64, with what is between the axes in float32. A table of weights an axis, made where it runs: rectangles are
// contents, and so differ from call to call.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

enum ImageFilter { kNearestPixel, kBilinear, kBicubic, kLanczos, kArea };
constexpr double kReach[] = {0, 1, 2, 3, 0.5};

double sinc(double d) {
  if (d == 0) return 1;
  d *= std::numbers::pi;
  return std::sin(d) / d;
}
double weigh(int filter, double d) {
  constexpr double a = -0.5;
  const double far = std::fabs(d);
  switch (filter) {
    case kBilinear: return far < 1 ? 1 - far : 0;
    case kBicubic:
      if (far < 1) return ((a + 2) * far - (a + 3)) * far * far + 1;
      return far < 2 ? (((far - 5) * far + 8) * far - 4) * a : 0;
    case kLanczos: return d >= -3 && d < 3 ? sinc(d) * sinc(d / 3) : 0;
    default: return d > -0.5 && d <= 0.5 ? 1 : 0;
  }
}

double wide(double v) { return v; }
double wide(float v) { return v; }
double wide(pg::f16 v) { return pg::to_float(v); }
double wide(pg::bf16 v) { return pg::to_float(v); }
template <class T>
T narrowed(double v) {
  if constexpr (std::is_same_v<T, pg::f16>) {
    return pg::to_f16(static_cast<float>(v));
  } else if constexpr (std::is_same_v<T, pg::bf16>) {
    return pg::to_bf16(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

// New pixels of an axis: of which old ones, and how much of each.
class PixelTable {
 public:
  PixelTable(int filter, bool antialias, int64_t in, int64_t out, double begin, double extent)
      : first_(static_cast<size_t>(out)), count_(static_cast<size_t>(out)) {
    const double step = extent / static_cast<double>(out), wide = antialias ? std::max(step, 1.0) : 1;
    const bool moves_only = filter == kNearestPixel || (step == 1 && begin == std::floor(begin));
    const double support = kReach[filter] * wide, narrow = 1 / wide;
    most_ = moves_only ? 1 : static_cast<int32_t>(std::ceil(support)) * 2 + 1;
    weight_.resize(static_cast<size_t>(out * most_));
    double place = begin + step * 0.5;  // a step at a time, as Pillow goes: the last bits count at a pixel's edge
    for (int64_t o = 0; o < out; o++, place += step) {
      const double centre = begin + (static_cast<double>(o) + 0.5) * step;
      double* weight = &weight_[static_cast<size_t>(o * most_)];
      if (moves_only) {
        add(o, std::clamp<int64_t>(static_cast<int64_t>(place), 0, in - 1), 1);
        weight[0] = 1;
        continue;
      }
      const int64_t from = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
      const int64_t to = std::min(static_cast<int64_t>(centre + support + 0.5), in);
      double total = 0;
      for (int64_t k = from; k < to; k++)
        total += weight[k - from] = weigh(filter, (static_cast<double>(k) - centre + 0.5) * narrow);
      for (int64_t k = from; k < to; k++) weight[k - from] /= total;
      add(o, from, to - from);
    }
  }
  // The weights of bytes.
  PixelTaps taps() {
    if (units_.empty()) {
      units_.reserve(weight_.size());
      for (double w : weight_) {
        const double scaled = w * (1 << kPixelBits);
        units_.push_back(static_cast<int32_t>(w < 0 ? scaled - 0.5 : scaled + 0.5));
      }
    }
    return {outputs(), most_, first_.data(), count_.data(), units_.data()};
  }
  int64_t outputs() const { return static_cast<int64_t>(first_.size()); }
  int32_t first(int64_t o) const { return first_[static_cast<size_t>(o)]; }
  int32_t count(int64_t o) const { return count_[static_cast<size_t>(o)]; }
  const double* weight(int64_t o) const { return &weight_[static_cast<size_t>(o * most_)]; }
  // The old pixels that any new one is made of.
  int64_t begin() const { return *std::min_element(first_.begin(), first_.end()); }
  int64_t end() const {
    int64_t end = 0;
    for (int64_t o = 0; o < outputs(); o++) end = std::max<int64_t>(end, first(o) + count(o));
    return end;
  }

 private:
  void add(int64_t o, int64_t from, int64_t count) {
    first_[static_cast<size_t>(o)] = static_cast<int32_t>(from);
    count_[static_cast<size_t>(o)] = static_cast<int32_t>(count);
  }
  std::vector<int32_t> first_, count_, units_;
  std::vector<double> weight_;
  int32_t most_;
};

struct Tables {
  PixelTable rows, columns;
};

struct ImageResize final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    const Storage s = storage_of(call.in(0));
    if (s != storage_of(call.out(0)) || (s != sU8 && !is_float(s))) refuse(call);
    for (const pg_tensor* t : {&call.in(0), &call.out(0)})
      if (!pg::is_contiguous(*t)) refuse(call);
    if (call.has(1) && !pg::is_contiguous(call.in(1))) refuse(call);
    for (uint32_t i = 0; i < 2; i++)
      if (call.in(0).shape[call.in(0).rank - 3 + i] > INT32_MAX) pg::fail_support("a picture has too long a side");
  }
  ImageResize(const pg::KernelCall& call, pg::Plan&)
      : storage_(storage_of(call.in(0))),
        filter_(call.attr<int32_t>("filter")),
        antialias_(call.attr<bool>("antialias")) {
    const pg_tensor &x = call.in(0), &y = call.out(0);
    for (uint32_t i = 0; i + 3 < x.rank; i++) pictures_ *= x.shape[i];
    rows_ = x.shape[x.rank - 3], columns_ = x.shape[x.rank - 2], channels_ = x.shape[x.rank - 1];
    new_rows_ = y.shape[x.rank - 3], new_columns_ = y.shape[x.rank - 2];
    if (!call.has(1)) return;
    box_ = storage_of(call.in(1));
    boxes_ = call.in(1).rank == 2 ? pictures_ : 1;
  }

  void launch(const pg_launch& launch) override {
    if (pictures_ * channels_ == 0) return;
    std::vector<Tables> tables;
    std::vector<double> box(static_cast<size_t>(4 * boxes_));
    if (boxes_ > 0) convert(box_, sF64, pg::input(launch, 1), box.data(), 4 * boxes_);
    for (int64_t i = 0; i < boxes_; i++) tables.push_back(tables_of(&box[static_cast<size_t>(4 * i)]));
    const double whole[] = {0, 0, static_cast<double>(rows_), static_cast<double>(columns_)};
    if (boxes_ == 0) tables.push_back(tables_of(whole));
    if (storage_ == sU8) return run_bytes(tables, launch);
    visit(storage_, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_integral_v<T>) run_floats<T>(tables, launch);
    });
  }

 private:
  Tables tables_of(const double* box) const {
    const bool fits = box[0] >= 0 && box[1] >= 0 && box[2] > 0 && box[3] > 0 &&
                      box[0] + box[2] <= static_cast<double>(rows_) && box[1] + box[3] <= static_cast<double>(columns_);
    if (!fits) {
      pg::fail_argument(
          pg::format("image_resize: box {%g, %g, %g, %g} is not inside of a picture of %lld x %lld; "
                     "expected top, left, height, width",
                     box[0], box[1], box[2], box[3], static_cast<long long>(rows_), static_cast<long long>(columns_)));
    }
    return {table_of(rows_, new_rows_, box[0], box[2]), table_of(columns_, new_columns_, box[1], box[3])};
  }
  // Rectangles have their edges in float32, as Pillow's have.
  PixelTable table_of(int64_t in, int64_t out, double from, double extent) const {
    const auto begin = static_cast<float>(from), end = static_cast<float>(from + extent);
    return {filter_, antialias_, in, out, begin, end - begin};
  }

  // Calls body(picture, begin, end) for all `rows` of all pictures, shared among threads where that pays.
  template <class Body>
  void share(int64_t rows, int64_t row_cost, Body&& body) const {
    auto piece = [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end;) {
        const int64_t picture = at / rows, last = std::min(end, (picture + 1) * rows);
        body(picture, at - picture * rows, last - picture * rows);
        at = last;
      }
    };
    const int64_t all = pictures_ * rows;
    if (all * row_cost <= kGrain) return piece(0, all);
    pg::parallel_for(all, std::max<int64_t>(2, kGrain / std::max<int64_t>(row_cost, 1)), piece);
  }

  void run_bytes(std::vector<Tables>& tables, const pg_launch& launch) const {
    const auto* x = pg::input<const uint8_t>(launch, 0);
    auto* y = pg::output<uint8_t>(launch, 0);
    struct Taps {
      PixelTaps rows, columns;
      int64_t begin, end;
    };
    std::vector<Taps> taps;
    int64_t most = 0;
    for (Tables& t : tables) {
      taps.push_back({t.rows.taps(), t.columns.taps(), t.rows.begin(), t.rows.end()});
      most = std::max(most, taps.back().end - taps.back().begin);
    }
    auto of = [&](int64_t picture) -> const Taps& { return taps[taps.size() == 1 ? 0 : static_cast<size_t>(picture)]; };
    const int64_t width = new_columns_ * channels_, old_width = columns_ * channels_;
    const auto between = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(pictures_ * most * width));
    share(most, width * of(0).columns.most, [&](int64_t picture, int64_t begin, int64_t end) {
      const Taps& t = of(picture);
      end = std::min(end, t.end - t.begin);
      if (begin >= end) return;
      simd->pixel_rows(t.columns, x + (picture * rows_ + t.begin + begin) * old_width, old_width, end - begin, columns_,
                       channels_, &between[static_cast<size_t>((picture * most + begin) * width)]);
    });
    share(new_rows_, width * of(0).rows.most, [&](int64_t picture, int64_t begin, int64_t end) {
      const Taps& t = of(picture);
      for (int64_t o = begin; o < end; o++) {
        const uint8_t* from = &between[static_cast<size_t>((picture * most + t.rows.first[o] - t.begin) * width)];
        simd->pixel_column(t.rows.weight + o * t.rows.most, t.rows.count[o], from, width, width,
                           y + (picture * new_rows_ + o) * width);
      }
    });
  }

  template <class T>
  void run_floats(const std::vector<Tables>& tables, const pg_launch& launch) const {
    using Between = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto* x = pg::input<const T>(launch, 0);
    T* y = pg::output<T>(launch, 0);
    auto of = [&](int64_t picture) -> const Tables& {
      return tables[tables.size() == 1 ? 0 : static_cast<size_t>(picture)];
    };
    const int64_t width = new_columns_ * channels_;
    std::vector<Between> between(static_cast<size_t>(pictures_ * rows_ * width));
    share(rows_, width * 4, [&](int64_t picture, int64_t begin, int64_t end) {
      const PixelTable& t = of(picture).columns;
      for (int64_t r = begin; r < end; r++) {
        const T* from = x + (picture * rows_ + r) * columns_ * channels_;
        Between* to = &between[static_cast<size_t>((picture * rows_ + r) * width)];
        for (int64_t o = 0; o < new_columns_; o++) {
          for (int64_t c = 0; c < channels_; c++)
            to[o * channels_ + c] = static_cast<Between>(total(t, o, from + t.first(o) * channels_ + c, channels_));
        }
      }
    });
    share(new_rows_, width * 4, [&](int64_t picture, int64_t begin, int64_t end) {
      const PixelTable& t = of(picture).rows;
      for (int64_t o = begin; o < end; o++) {
        const Between* from = &between[static_cast<size_t>((picture * rows_ + t.first(o)) * width)];
        T* to = y + (picture * new_rows_ + o) * width;
        for (int64_t i = 0; i < width; i++) to[i] = narrowed<T>(total(t, o, from + i, width));
      }
    });
  }
  template <class T>
  static double total(const PixelTable& t, int64_t o, const T* from, int64_t step) {
    const double* weight = t.weight(o);
    double sum = 0;
    for (int32_t k = 0; k < t.count(o); k++) sum += weight[k] * wide(from[k * step]);
    return sum;
  }

  Storage storage_, box_ = sF64;
  int filter_;
  bool antialias_;
  int64_t pictures_ = 1, rows_, columns_, channels_, new_rows_, new_columns_, boxes_ = 0;
};
PG_KERNEL("image_resize", ImageResize);

}  // namespace
}  // namespace cpu
