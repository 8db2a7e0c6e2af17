// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d of whole numbers, by windows: a window is a few runs of neighbours in an image whose channels lie
// last.
#include <vector>

#include "kernels/quantized_conv2d.hpp"

namespace cpu::quantized_conv {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 15;  // of a filter: sums of products of bytes fit int32
constexpr int64_t kFewestFilters = 8;  // of a group: fewer would waste most of what is computed side by side

class WholeConvolution final : public QuantizedConvolution {
 public:
  explicit WholeConvolution(const Sizes& s)
      : s_(s),
        loop_(narrow_conv),
        images_(s, extent(s, 0), extent(s, 1)),
        element_(images_.element()),
        channels_(s.c / s.groups),
        outputs_(s.o / s.groups),
        blocks_((outputs_ + kConvFilters - 1) / kConvFilters) {
    joined_ = s.dilation[1] == 1 && s.groups == 1;
    length_ = joined_ ? s.kernel[1] * s.c : channels_;
    units_ = (length_ + loop_.unit - 1) / loop_.unit;
    for (int64_t i = 0; i < s.kernel[0]; i++) {
      for (int64_t j = 0; j < (joined_ ? 1 : s.kernel[1]); j++) {
        run_.push_back((i * s.dilation[0] * images_.wide() + j * s.dilation[1]) * s.c * element_);
      }
    }
  }
  static bool fits(const Sizes& s) {
    return narrow_conv.unit != 0 && s.activations != kAsIs && s.scales == 1 && s.o / s.groups >= kFewestFilters &&
           s.numbers() > 0 && s.numbers() <= kMostNumbers && s.image() > 0;
  }

  uint64_t packed_bytes() const override {
    return static_cast<uint64_t>(s_.groups * blocks_ * (block_bytes() + kConvFilters * 4));
  }
  // Blocks of filters [runs][units][16][unit], with zeros where there are no more numbers or filters; then their sums.
  void pack(const uint8_t* weight, const char*, char* out) const override {
    const int64_t all = s_.groups * blocks_;
    pg::parallel_for(all, std::max<int64_t>(1, kGrainCostly / block_bytes()), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        char* to = out + b * block_bytes();
        std::fill_n(to, block_bytes(), char{0});
        int32_t sums[kConvFilters] = {};
        const int64_t first = b % blocks_ * kConvFilters, count = std::min(kConvFilters, outputs_ - first);
        for (int64_t j = 0; j < count; j++) {
          const uint8_t* row = weight + (b / blocks_ * outputs_ + first + j) * s_.row_bytes();
          sums[j] = bytes() ? pack_filter(row, reinterpret_cast<int8_t*>(to) + 4 * j)
                            : pack_filter(row, reinterpret_cast<int16_t*>(to) + 2 * j);
        }
        std::memcpy(out + all * block_bytes() + b * kConvFilters * 4, sums, sizeof sums);
      }
    });
  }

  void run(const Operands& o, Scratch& scratch) override {
    const float* x = as_floats(s_.storage, o.x, s_.n * s_.image(), scratch);
    const float* scale = as_floats(s_.storage, o.scale, s_.o, scratch);
    const float* bias = s_.bias ? as_floats(s_.storage, o.bias, s_.o, scratch) : nullptr;
    auto* how = static_cast<WholeRow*>(scratch.take(static_cast<uint64_t>(s_.n) * sizeof(WholeRow)));
    auto* images = static_cast<char*>(scratch.take(static_cast<uint64_t>(s_.n * images_.bytes())));
    auto* filters = static_cast<char*>(scratch.take(packed_bytes()));
    float* y = s_.storage == sF32 ? reinterpret_cast<float*>(o.y) : floats(scratch, s_.n * s_.o * s_.plane());
    if (o.y == nullptr) return;
    if (o.packed == nullptr) pack(reinterpret_cast<const uint8_t*>(o.weight), o.scale, filters);
    const char* packed = o.packed != nullptr ? static_cast<const char*>(o.packed) : filters;
    whole_images(s_, o, x, how);
    images_.lay_out(x, how, images);
    const int64_t chunks = (s_.plane() + kConvChunk - 1) / kConvChunk, tasks = s_.n * chunks * s_.groups;
    const int64_t work = std::min(kConvChunk, s_.plane()) * outputs_ * s_.numbers();
    const FilterParts parts(outputs_, tasks, work, kThread);
    pg::parallel_for(tasks * parts.count(), std::max<int64_t>(1, kThread / std::max<int64_t>(1, work / parts.count())),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t n = begin; n < end; n++) {
                         const int64_t t = n / parts.count(), part = n % parts.count();
                         const int64_t i = t / (chunks * s_.groups), g = t / chunks % s_.groups;
                         NarrowConvTile tile{};
                         tile.x = images + i * images_.bytes();
                         tile.zero = images_.zero_of(how[i]), tile.x_scale = how[i].scale;
                         tile.filters = parts.size(part);
                         multiply(tile, g, t % chunks * kConvChunk, parts.first(part), packed, scale, bias,
                                  y + i * s_.o * s_.plane());
                       }
                     });
    if (s_.storage != sF32) convert_all(sF32, s_.storage, reinterpret_cast<char*>(y), o.y, s_.n * s_.o * s_.plane());
  }

 private:
  // What windows see of an axis of the image.
  static int64_t extent(const Sizes& s, int axis) {
    return ((axis == 0 ? s.out_h : s.out_w) - 1) * s.stride[axis] + (s.kernel[axis] - 1) * s.dilation[axis] + 1;
  }
  int64_t block_bytes() const { return static_cast<int64_t>(run_.size()) * units_ * kConvUnits; }
  bool bytes() const { return loop_.unit == 4; }

  template <class T>
  int32_t pack_filter(const uint8_t* row, T* to) const {
    constexpr int64_t kUnit = 4 / sizeof(T);
    const int64_t taps = s_.kernel[0] * s_.kernel[1], across = joined_ ? s_.kernel[1] : 1;
    int32_t sum = 0;
    for (int64_t c = 0; c < channels_; c++) {
      for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t at = c * taps + tap;
        const int32_t q = whole_number(s_, row, at);
        const int64_t run = tap / across, place = tap % across * channels_ + c;
        to[(run * units_ + place / kUnit) * kConvFilters * kUnit + place % kUnit] = static_cast<T>(q);
        sum += q;
      }
    }
    return sum;
  }

  // Windows from `first` on by t.filters of group g, from its filter `begin` on, which begins a block.
  void multiply(NarrowConvTile& t, int64_t g, int64_t first, int64_t begin, const char* packed, const float* scale,
                const float* bias, float* y) const {
    int64_t window[kConvChunk + kConvSlack];
    t.kept = std::min(kConvChunk, s_.plane() - first);
    int64_t row = first / s_.out_w, column = first % s_.out_w;
    for (int64_t i = 0; i < t.kept; i++) {
      window[i] = ((row * s_.stride[0] * images_.wide() + column * s_.stride[1]) * s_.c + g * channels_) * element_;
      if (++column == s_.out_w) row++, column = 0;
    }
    std::fill_n(window + t.kept, kConvSlack, window[t.kept - 1]);
    t.window = window, t.step = s_.plane(), t.relu = s_.relu;
    t.run = run_.data(), t.runs = static_cast<int64_t>(run_.size()), t.units = units_;
    const char* sums = packed + s_.groups * blocks_ * block_bytes();
    t.weight = packed + (g * blocks_ + begin / kConvFilters) * block_bytes(), t.block_bytes = block_bytes();
    t.sum = reinterpret_cast<const int32_t*>(sums) + g * blocks_ * kConvFilters + begin;
    const int64_t filter = g * outputs_ + begin;
    t.scale = scale + filter, t.bias = bias != nullptr ? bias + filter : nullptr;
    t.y = y + filter * s_.plane() + first;
    loop_.multiply(t);
  }

  Sizes s_;
  NarrowConvLoop loop_;
  WholeImages images_;
  int64_t element_, channels_, outputs_, blocks_, length_, units_;
  bool joined_;  // a row of a window is one run: its columns are neighbours
  std::vector<int64_t> run_;
};

}  // namespace

std::unique_ptr<QuantizedConvolution> make_whole(const Sizes& s) {
  return WholeConvolution::fits(s) ? std::make_unique<WholeConvolution>(s) : nullptr;
}

}  // namespace cpu::quantized_conv
