// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d(x [n, c, h, w], weight, scale [o, groups of a row], bias? [o], x_scale?, x_zero_point?) -> [n, o,
// h', w']. Whole numbers that have a scale a filter are multiplied as such; all else is widened and convolved as
// floats.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "conv/conv.hpp"
#include "kernels/windows.hpp"
#include "narrow_conv.hpp"
#include "narrow_numbers.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

using pg::cpu::Scratch;

constexpr int64_t kThread = int64_t{1} << 18;       // multiplications that are worth a thread
constexpr int64_t kMostNumbers = int64_t{1} << 15;  // of a filter: sums of products of bytes fit int32
constexpr int64_t kFewestFilters = 8;  // of a group: fewer would waste most of what is computed side by side
constexpr int64_t kSlack = 64;         // bytes behind an image that its last unit may reach into

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

class QuantizedConvolution {
 public:
  virtual ~QuantizedConvolution() = default;
  // Takes from `scratch` what it took without addresses at prepare.
  virtual void run(const Operands& o, Scratch& scratch) = 0;
  virtual uint64_t packed_bytes() const { return 0; }
  virtual void pack(const uint8_t* weight, char* out) const { (void)weight, (void)out; }
};

float* floats(Scratch& scratch, int64_t count) {
  return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
}

void convert_all(Storage from, Storage to, const char* source, void* target, int64_t count) {
  pg::parallel_for(count, kGrain, [=](int64_t begin, int64_t end) {
    convert(from, to, source + begin * kStorageBytes[from], static_cast<char*>(target) + begin * kStorageBytes[to],
            end - begin);
  });
}

const float* as_floats(Storage storage, const char* data, int64_t count, Scratch& scratch) {
  if (storage == sF32) return reinterpret_cast<const float*>(data);
  float* room = floats(scratch, count);
  if (data != nullptr && room != nullptr) convert_all(storage, sF32, data, room, count);
  return room;
}

float number(Storage storage, const char* data) {
  float value = 0;
  convert(storage, sF32, data, &value, 1);
  return value;
}

// How each image becomes whole; shift is not used.
void whole_images(const Sizes& s, const Operands& o, const float* x, WholeRow* how) {
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

// ---- whole numbers ----

class WholeConvolution final : public QuantizedConvolution {
 public:
  explicit WholeConvolution(const Sizes& s)
      : s_(s),
        loop_(narrow_conv),
        element_(4 / loop_.unit),
        channels_(s.c / s.groups),
        outputs_(s.o / s.groups),
        blocks_((outputs_ + kConvFilters - 1) / kConvFilters) {
    for (int i = 0; i < 2; i++)
      padded_[i] = ((i == 0 ? s.out_h : s.out_w) - 1) * s.stride[i] + (s.kernel[i] - 1) * s.dilation[i] + 1;
    joined_ = s.dilation[1] == 1 && s.groups == 1;
    length_ = joined_ ? s.kernel[1] * s.c : channels_;
    units_ = (length_ + loop_.unit - 1) / loop_.unit;
    for (int64_t i = 0; i < s.kernel[0]; i++) {
      for (int64_t j = 0; j < (joined_ ? 1 : s.kernel[1]); j++) {
        run_.push_back((i * s.dilation[0] * padded_[1] + j * s.dilation[1]) * s.c * element_);
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
  void pack(const uint8_t* weight, char* out) const override {
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
    const int64_t image_bytes = padded_[0] * padded_[1] * s_.c * element_ + kSlack;
    auto* images = static_cast<char*>(scratch.take(static_cast<uint64_t>(s_.n * image_bytes)));
    auto* filters = static_cast<char*>(scratch.take(packed_bytes()));
    float* y = s_.storage == sF32 ? reinterpret_cast<float*>(o.y) : floats(scratch, s_.n * s_.o * s_.plane());
    if (o.y == nullptr) return;
    if (o.packed == nullptr) pack(reinterpret_cast<const uint8_t*>(o.weight), filters);
    const char* packed = o.packed != nullptr ? static_cast<const char*>(o.packed) : filters;
    whole_images(s_, o, x, how);
    pg::parallel_for(s_.n * padded_[0], std::max<int64_t>(1, kGrainCostly / (padded_[1] * s_.c)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end;) {
                         const int64_t image = i / padded_[0], last = std::min(end, (image + 1) * padded_[0]);
                         lay_out_rows(x + image * s_.image(), how[image], i % padded_[0], last - i,
                                      images + image * image_bytes);
                         i = last;
                       }
                     });
    const int64_t chunks = (s_.plane() + kConvChunk - 1) / kConvChunk, tasks = s_.n * chunks * s_.groups;
    const int64_t work = kConvChunk * outputs_ * s_.numbers();
    pg::parallel_for(
        tasks, std::max<int64_t>(1, kThread / std::max<int64_t>(1, work)), [&](int64_t begin, int64_t end) {
          for (int64_t t = begin; t < end; t++) {
            const int64_t i = t / (chunks * s_.groups), g = t / chunks % s_.groups;
            NarrowConvTile tile{};
            tile.x = images + i * image_bytes;
            tile.zero = zero_of(how[i]), tile.x_scale = how[i].scale;
            multiply(tile, g, t % chunks * kConvChunk, packed, scale, bias, y + (i * s_.o + g * outputs_) * s_.plane());
          }
        });
    if (s_.storage != sF32) convert_all(sF32, s_.storage, reinterpret_cast<char*>(y), o.y, s_.n * s_.o * s_.plane());
  }

 private:
  int64_t block_bytes() const { return static_cast<int64_t>(run_.size()) * units_ * kConvUnits; }
  bool bytes() const { return loop_.unit == 4; }
  // What the numbers that are multiplied are plus: unsigned bytes cannot be below 0, others are what they mean.
  int32_t zero_of(const WholeRow& how) const {
    return !bytes() ? 0 : s_.activations == kRowsInt8 ? 128 : static_cast<int32_t>(how.zero);
  }
  int32_t plus_of(const WholeRow& how) const {
    return bytes() ? (s_.activations == kRowsInt8 ? 128 : 0) : -static_cast<int32_t>(how.zero);
  }

  template <class T>
  int32_t pack_filter(const uint8_t* row, T* to) const {
    constexpr int64_t kUnit = 4 / sizeof(T);
    const int64_t taps = s_.kernel[0] * s_.kernel[1], across = joined_ ? s_.kernel[1] : 1;
    int32_t sum = 0;
    for (int64_t c = 0; c < channels_; c++) {
      for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t at = c * taps + tap;
        const int32_t q =
            s_.format == kInt8 ? static_cast<int8_t>(row[at]) : (at % 2 == 0 ? row[at / 2] & 15 : row[at / 2] >> 4) - 8;
        const int64_t run = tap / across, place = tap % across * channels_ + c;
        to[(run * units_ + place / kUnit) * kConvFilters * kUnit + place % kUnit] = static_cast<T>(q);
        sum += q;
      }
    }
    return sum;
  }

  // `count` rows from `first` on of an image with what is padded around it.
  void lay_out_rows(const float* x, const WholeRow& how, int64_t first, int64_t count, char* image) const {
    const int64_t left = std::min(s_.padding[2], padded_[1]);
    const int64_t width = std::max<int64_t>(0, std::min(s_.w, padded_[1] - left));
    const int64_t pixel = s_.c * element_, row = padded_[1] * pixel;
    const int64_t above = std::clamp<int64_t>(s_.padding[0] - first, 0, count);  // rows that are padded
    const int64_t rows = std::clamp<int64_t>(s_.h + s_.padding[0] - first - above, 0, count - above);
    char *to = image + first * row, *there = to + above * row;
    const int zero = zero_of(how);
    auto fill = [zero](char* begin, char* end) { std::memset(begin, zero, static_cast<size_t>(end - begin)); };
    fill(to, there + (rows > 0 ? left * pixel : 0));
    if (width > 0 && rows > 0) {
      loop_.lay_out({x + (first + above - s_.padding[0]) * s_.w, s_.h * s_.w, s_.c, width, s_.w, rows, how,
                     plus_of(how), there + left * pixel, padded_[1] * s_.c});
    }
    for (int64_t i = 0; i < rows; i++) {  // right of a row and left of the next one
      char* right = there + i * row + (left + width) * pixel;
      fill(right, there + (i + 1) * row + (i + 1 < rows ? left * pixel : 0));
    }
    fill(there + rows * row, to + count * row);
    if (first + count == padded_[0]) std::memset(to + count * row, 0, kSlack);
  }

  // Windows from `first` on by the filters of group g.
  void multiply(NarrowConvTile& t, int64_t g, int64_t first, const char* packed, const float* scale, const float* bias,
                float* y) const {
    int64_t window[kConvChunk + kConvSlack];
    t.kept = std::min(kConvChunk, s_.plane() - first);
    int64_t row = first / s_.out_w, column = first % s_.out_w;
    for (int64_t i = 0; i < t.kept; i++) {
      window[i] = ((row * s_.stride[0] * padded_[1] + column * s_.stride[1]) * s_.c + g * channels_) * element_;
      if (++column == s_.out_w) row++, column = 0;
    }
    std::fill_n(window + t.kept, kConvSlack, window[t.kept - 1]);
    t.window = window, t.step = s_.plane(), t.relu = s_.relu;
    t.run = run_.data(), t.runs = static_cast<int64_t>(run_.size()), t.units = units_;
    const char* sums = packed + s_.groups * blocks_ * block_bytes();
    t.weight = packed + g * blocks_ * block_bytes(), t.block_bytes = block_bytes();
    t.sum = reinterpret_cast<const int32_t*>(sums) + g * blocks_ * kConvFilters;
    t.filters = outputs_, t.scale = scale + g * outputs_, t.bias = bias != nullptr ? bias + g * outputs_ : nullptr;
    t.y = y + first;
    loop_.multiply(t);
  }

  Sizes s_;
  NarrowConvLoop loop_;
  int64_t element_, channels_, outputs_, blocks_, padded_[2], length_, units_;
  bool joined_;  // a row of a window is one run: its columns are neighbours
  std::vector<int64_t> run_;
};

// ---- floats ----

class FloatConvolution final : public QuantizedConvolution {
 public:
  explicit FloatConvolution(const Sizes& s) : s_(s), storage_(s.activations == kAsIs ? s.storage : sF32) {
    pg::cpu::ConvShape shape{};
    shape.kind = pg::cpu::ConvKind::kForward;
    shape.dtype = storage_ == sF32 ? PG_F32 : storage_ == sBF16 ? PG_BF16 : PG_F16;
    shape.n = s.n, shape.c = s.c, shape.o = s.o, shape.groups = s.groups;
    const int64_t in[] = {1, s.h, s.w}, out[] = {1, s.out_h, s.out_w};
    for (int i = 0; i < 3; i++) {
      shape.in[i] = in[i], shape.out[i] = out[i];
      shape.kernel[i] = i == 0 ? 1 : s.kernel[i - 1], shape.stride[i] = i == 0 ? 1 : s.stride[i - 1];
      shape.dilation[i] = i == 0 ? 1 : s.dilation[i - 1], shape.padding[i] = i == 0 ? 0 : s.padding[2 * i - 2];
    }
    shape.x = dense({s.n, s.c, s.h, s.w}), shape.y = dense({s.n, s.o, s.out_h, s.out_w});
    shape.weight = dense({s.o, s.c / s.groups, s.kernel[0], s.kernel[1]});
    shape.bias = s.bias, shape.bias_stride = 1, shape.relu = s.relu;
    convolution_ = pg::cpu::make_convolution(shape);
  }
  void run(const Operands& o, Scratch& scratch) override {
    const bool narrow = storage_ != s_.storage;
    const int64_t element = kStorageBytes[storage_], results = s_.n * s_.o * s_.plane();
    const char* x = s_.activations == kAsIs ? o.x : made_whole(o, scratch);
    const float* scale = as_floats(s_.storage, o.scale, s_.o * s_.scales, scratch);
    const char* bias = !s_.bias  ? nullptr
                       : !narrow ? o.bias
                                 : reinterpret_cast<const char*>(as_floats(s_.storage, o.bias, s_.o, scratch));
    auto* weight = static_cast<char*>(scratch.take(static_cast<uint64_t>(s_.o * s_.numbers() * element)));
    char* y = narrow ? reinterpret_cast<char*>(floats(scratch, results)) : o.y;
    void* workspace = scratch.take(convolution_->workspace());
    if (o.y == nullptr) return;
    pg::parallel_for(s_.o, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s_.numbers())),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; i++) {
                         widen(reinterpret_cast<const uint8_t*>(o.weight) + i * s_.row_bytes(), scale + i * s_.scales,
                               weight + i * s_.numbers() * element);
                       }
                     });
    pg::cpu::ConvData d{};
    d.x = x, d.weight = weight, d.bias = bias, d.result = y, d.workspace = workspace;
    convolution_->run(d);
    if (narrow) convert_all(sF32, s_.storage, y, o.y, results);
  }

 private:
  static pg::cpu::ConvOperand dense(const std::array<int64_t, 4>& shape) {
    pg::cpu::ConvOperand t;
    t.rank = 4;
    for (int64_t step = 1, i = 3; i >= 0; step *= shape[static_cast<size_t>(i)], i--) {
      t.shape[i] = shape[static_cast<size_t>(i)], t.stride[i] = step;
    }
    return t;
  }
  void widen(const uint8_t* from, const float* scale, char* out) const {
    constexpr int64_t kPiece = 256;
    const int64_t size = s_.numbers() / s_.scales;
    for (int64_t g = 0; g < s_.scales; g++) {
      for (int64_t p = 0; p < size; p += kPiece) {
        const int64_t n = std::min(kPiece, size - p), first = g * size + p;
        if (storage_ == sF32) {
          widen_numbers(s_.format, from, first, n, scale[g], reinterpret_cast<float*>(out) + first);
          continue;
        }
        float piece[kPiece];
        widen_numbers(s_.format, from, first, n, scale[g], piece);
        convert(sF32, storage_, piece, out + first * kStorageBytes[storage_], n);
      }
    }
  }
  const char* made_whole(const Operands& o, Scratch& scratch) const {
    const int64_t image = s_.image();
    const float* x = as_floats(s_.storage, o.x, s_.n * image, scratch);
    float* out = floats(scratch, s_.n * image);
    auto* how = static_cast<WholeRow*>(scratch.take(static_cast<uint64_t>(s_.n) * sizeof(WholeRow)));
    if (o.y == nullptr) return nullptr;
    whole_images(s_, o, x, how);
    pg::parallel_for(s_.n, std::max<int64_t>(1, kGrainCostly / std::max<int64_t>(1, image)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; i++) fake(x + i * image, image, how[i], out + i * image);
                     });
    return reinterpret_cast<const char*>(out);
  }
  static void fake(const float* x, int64_t n, WholeRow how, float* out) {
    constexpr int64_t kPiece = 512;
    int8_t q[kPiece];
    if (how.high > 127) how.shift = 128;
    const float zero = how.zero - how.shift;
    for (int64_t at = 0; at < n; at += kPiece) {
      const int64_t count = std::min(kPiece, n - at);
      simd->narrow.to_whole(x + at, count, how, q);
      for (int64_t i = 0; i < count; i++) out[at + i] = (static_cast<float>(q[i]) - zero) * how.scale;
    }
  }

  Sizes s_;
  Storage storage_;
  std::unique_ptr<pg::cpu::Convolution> convolution_;
};

std::unique_ptr<QuantizedConvolution> choose(const Sizes& s) {
  if (s.n * s.o * s.plane() == 0) return nullptr;
  if (WholeConvolution::fits(s)) return std::make_unique<WholeConvolution>(s);
  return std::make_unique<FloatConvolution>(s);
}

class QuantizedConv2d final : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) { require_narrow_call(call); }
  QuantizedConv2d(const pg::KernelCall& call, pg::Plan& plan) : way_(choose(Sizes(call))) {
    if (way_ == nullptr) return;
    Scratch scratch;
    way_->run({}, scratch);
    plan.workspace = scratch.bytes();
    plan.pack_bytes[1] = way_->packed_bytes();
  }
  void launch(const pg_launch& launch) override {
    if (way_ == nullptr) return;
    auto in = [&](uint32_t i) { return pg::input<const char>(launch, i); };
    Scratch scratch(pg::host_pointer(launch.workspace));
    const void* packed = launch.packed != nullptr ? pg::host_pointer<const void>(launch.packed[1]) : nullptr;
    way_->run({in(0), in(1), in(2), in(3), in(4), in(5), pg::output<char>(launch, 0), packed}, scratch);
  }
  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    way_->pack(pg::input<const uint8_t>(launch, 1), pg::host_pointer<char>(target));
  }

 private:
  std::unique_ptr<QuantizedConvolution> way_;
};
PG_KERNEL("quantized_conv2d", QuantizedConv2d, 0, 1u << 1);

}  // namespace
}  // namespace cpu
