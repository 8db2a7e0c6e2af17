// SPDX-License-Identifier: Apache-2.0
// What the ways of quantized_conv2d share: sizes, operands, images of whole numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/windows.hpp"
#include "linalg/dense.hpp"
#include "narrow_conv.hpp"
#include "narrow_numbers.hpp"
#include "storage.hpp"

namespace cpu::quantized_conv {

using pg::cpu::Scratch;

constexpr int64_t kThread = int64_t{1} << 19;  // multiplications that are worth a thread

struct Sizes {
  int64_t n, c, h, w, o, out_h, out_w;
  int64_t kernel[2], stride[2], dilation[2], padding[4] = {};
  int64_t groups, scales;  // scales of a filter
  int32_t format;
  Activations activations;
  bool bias, x_scale, relu;
  Storage storage;

  explicit Sizes(const pg::KernelCall& call)
      : n(call.in(0).shape[0]),
        c(call.in(0).shape[1]),
        h(call.in(0).shape[2]),
        w(call.in(0).shape[3]),
        o(call.out(0).shape[1]),
        out_h(call.out(0).shape[2]),
        out_w(call.out(0).shape[3]),
        groups(call.attr<int64_t>("groups")),
        scales(call.in(2).shape[1]),
        format(call.attr<int32_t>("format")),
        activations(static_cast<Activations>(call.attr<int32_t>("activations"))),
        bias(call.has(3)),
        x_scale(call.has(4)),
        relu(call.attr<int32_t>("activation") == 1),
        storage(storage_of(call.in(0))) {
    read(call, "kernel", kernel), read(call, "stride", stride), read(call, "dilation", dilation);
    const auto list = call.attr<pg_ints>("padding");
    for (int64_t i = 0; i < 4; i++) {
      padding[i] = list.value[list.count == 4 ? i : list.count == 2 ? i / 2 : 0];
    }
  }
  int64_t numbers() const { return c / groups * kernel[0] * kernel[1]; }  // of a filter
  int64_t row_bytes() const { return format == kInt4 ? numbers() / 2 : numbers(); }
  int64_t plane() const { return out_h * out_w; }
  int64_t image() const { return c * h * w; }

 private:
  static void read(const pg::KernelCall& call, const char* name, int64_t (&out)[2]) {
    const auto list = call.attr<pg_ints>(name);
    out[0] = list.value[0], out[1] = list.value[list.count - 1];
  }
};

struct Operands {
  const char *x, *weight, *scale, *bias, *x_scale, *x_zero;
  char* y;
  const void* packed;  // the filters as pack() wrote them, or NULL
};

// Filters of a group, divided among threads where there are fewer images and parts of them: ranges of whole blocks.
class FilterParts {
 public:
  // `tasks`: what there is to do for all filters, of `work` multiplications each, of which so many are worth a thread.
  FilterParts(int64_t filters, int64_t tasks, int64_t work, int64_t worth)
      : filters_(filters), pairs_((filters + 2 * kConvFilters - 1) / (2 * kConvFilters)) {
    const int64_t wanted = (pg::thread_count() + tasks - 1) / tasks;
    count_ = std::max<int64_t>(1, std::min({pairs_, wanted, work / worth}));
  }
  int64_t count() const { return count_; }
  int64_t first(int64_t part) const { return std::min(filters_, pairs_ * part / count_ * 2 * kConvFilters); }
  int64_t size(int64_t part) const { return first(part + 1) - first(part); }

 private:
  int64_t filters_, pairs_, count_;
};

class QuantizedConvolution {
 public:
  virtual ~QuantizedConvolution() = default;
  // Takes from `scratch` what it took without addresses at prepare.
  virtual void run(const Operands& o, Scratch& scratch) = 0;
  virtual uint64_t packed_bytes() const = 0;
  // What is kept of the filters from call to call, as long as they stay; their scales may change meanwhile.
  virtual void pack(const uint8_t* weight, const char* scale, char* out) const = 0;
};

inline float* floats(Scratch& scratch, int64_t count) {
  return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
}

inline void convert_all(Storage from, Storage to, const char* source, void* target, int64_t count) {
  pg::parallel_for(count, kGrain, [=](int64_t begin, int64_t end) {
    convert(from, to, source + begin * kStorageBytes[from], static_cast<char*>(target) + begin * kStorageBytes[to],
            end - begin);
  });
}

inline const float* as_floats(Storage storage, const char* data, int64_t count, Scratch& scratch) {
  if (storage == sF32) return reinterpret_cast<const float*>(data);
  float* room = floats(scratch, count);
  if (data != nullptr && room != nullptr) convert_all(storage, sF32, data, room, count);
  return room;
}

inline float number(Storage storage, const char* data) {
  float value = 0;
  convert(storage, sF32, data, &value, 1);
  return value;
}

// How each image becomes whole; shift is not used.
inline void whole_images(const Sizes& s, const Operands& o, const float* x, WholeRow* how) {
  const bool symmetric = s.activations == kRowsInt8;
  if (s.x_scale) {
    WholeRow all{number(s.storage, o.x_scale), 0, symmetric ? -127.0F : 0.0F, symmetric ? 127.0F : 255.0F, 0};
    if (!symmetric) {
      const float zero = std::nearbyint(number(s.storage, o.x_zero));
      all.zero = zero > 255 ? 255 : zero > 0 ? zero : 0;  // NaN too
    }
    std::fill_n(how, s.n, all);
    return;
  }
  pg::parallel_for(s.n, std::max<int64_t>(1, kGrainCostly / std::max<int64_t>(1, s.image())),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; i++) {
                       float low = 0, high = 0;
                       simd->narrow.extremes(x + i * s.image(), s.image(), &low, &high);
                       WholeRow& w = how[i];
                       w = {symmetric ? std::max(-low, high) / 127 : (high - low) / 255, 0, symmetric ? -127.0F : 0.0F,
                            symmetric ? 127.0F : 255.0F, 0};
                       if (w.scale == 0) w.scale = 1;
                       if (low != low) w.scale = low;
                       if (!symmetric) w.zero = low != low ? 0 : std::nearbyint(-(low / w.scale));
                     }
                   });
}

// Images as whole numbers with channels last and what is padded around them, `high` rows of `wide` pixels.
class WholeImages {
 public:
  WholeImages(const Sizes& s, int64_t high, int64_t wide)
      : s_(s), loop_(narrow_conv), high_(high), wide_(wide), element_(4 / loop_.unit) {}
  int64_t wide() const { return wide_; }
  int64_t element() const { return element_; }  // bytes of a number
  int64_t bytes() const { return high_ * wide_ * s_.c * element_ + kSlack; }

  // What the numbers that are multiplied are plus: unsigned bytes cannot be below 0, others are what they mean.
  int32_t zero_of(const WholeRow& how) const {
    return !is_bytes() ? 0 : s_.activations == kRowsInt8 ? 128 : static_cast<int32_t>(how.zero);
  }
  int32_t plus_of(const WholeRow& how) const {
    return is_bytes() ? (s_.activations == kRowsInt8 ? 128 : 0) : -static_cast<int32_t>(how.zero);
  }
  void lay_out(const float* x, const WholeRow* how, char* images) const {
    pg::parallel_for(
        s_.n * high_, std::max<int64_t>(1, kGrainCostly / (wide_ * s_.c)), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end;) {
            const int64_t image = i / high_, last = std::min(end, (image + 1) * high_);
            lay_out_rows(x + image * s_.image(), how[image], i % high_, last - i, images + image * bytes());
            i = last;
          }
        });
  }

 private:
  static constexpr int64_t kSlack = 64;  // bytes behind an image that what reads its last numbers may reach into

  bool is_bytes() const { return loop_.unit == 4; }

  // `count` rows from `first` on of an image with what is padded around it.
  void lay_out_rows(const float* x, const WholeRow& how, int64_t first, int64_t count, char* image) const {
    const int64_t left = std::min(s_.padding[2], wide_);
    const int64_t width = std::max<int64_t>(0, std::min(s_.w, wide_ - left));
    const int64_t pixel = s_.c * element_, row = wide_ * pixel;
    const int64_t above = std::clamp<int64_t>(s_.padding[0] - first, 0, count);  // rows that are padded
    const int64_t rows = std::clamp<int64_t>(s_.h + s_.padding[0] - first - above, 0, count - above);
    char *to = image + first * row, *there = to + above * row;
    const int zero = zero_of(how);
    auto fill = [zero](char* begin, char* end) { std::memset(begin, zero, static_cast<size_t>(end - begin)); };
    fill(to, there + (rows > 0 ? left * pixel : 0));
    if (width > 0 && rows > 0) {
      loop_.lay_out({x + (first + above - s_.padding[0]) * s_.w, s_.h * s_.w, s_.c, width, s_.w, rows, how,
                     plus_of(how), there + left * pixel, wide_ * s_.c});
    }
    for (int64_t i = 0; i < rows; i++) {  // right of a row and left of the next one
      char* right = there + i * row + (left + width) * pixel;
      fill(right, there + (i + 1) * row + (i + 1 < rows ? left * pixel : 0));
    }
    fill(there + rows * row, to + count * row);
    if (first + count == high_) std::memset(to + count * row, 0, kSlack);
  }

  Sizes s_;
  NarrowConvLoop loop_;
  int64_t high_, wide_, element_;
};

// Numbers of a weight's row, `at` from its beginning.
inline int32_t whole_number(const Sizes& s, const uint8_t* row, int64_t at) {
  if (s.format == kInt8) return static_cast<int8_t>(row[at]);
  return (at % 2 == 0 ? row[at / 2] & 15 : row[at / 2] >> 4) - 8;
}

// Of whole numbers: any windows; filters of 3x3 by tiles. NULL where that cannot be or does not pay.
std::unique_ptr<QuantizedConvolution> make_whole(const Sizes& s);
std::unique_ptr<QuantizedConvolution> make_winograd(const Sizes& s);

}  // namespace cpu::quantized_conv
