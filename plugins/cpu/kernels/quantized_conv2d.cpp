// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d(x [n, c, h, w], weight, scale [o, groups of a row], bias? [o], x_scale?, x_zero_point?) -> [n, o,
// h', w']. Whole numbers that have a scale a filter are multiplied as such; all else is widened and convolved as
// floats.
#include <array>
#include <cstring>

#include "conv/conv.hpp"
#include "kernels/quantized_conv2d.hpp"

namespace cpu::quantized_conv {
namespace {

// Filters are kept as floats, behind the bytes of the scales that they were multiplied by: of other ones they do not
// hold.
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
  uint64_t packed_bytes() const override {
    const uint64_t own = convolution_->packed_bytes();
    return pg::cpu::scratch_bytes(scale_bytes()) + (own != 0 ? own : weight_bytes());
  }
  void pack(const uint8_t* weight, const char* scale, char* out) const override {
    std::memcpy(out, scale, scale_bytes());
    const auto floats = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(s_.o * s_.scales));
    convert(s_.storage, sF32, scale, floats.get(), s_.o * s_.scales);
    char* filters = out + pg::cpu::scratch_bytes(scale_bytes());
    if (convolution_->packed_bytes() == 0) return widen_all(weight, floats.get(), filters);
    const auto room = std::make_unique_for_overwrite<char[]>(weight_bytes());
    widen_all(weight, floats.get(), room.get());
    convolution_->pack(room.get(), filters);
  }
  void run(const Operands& o, Scratch& scratch) override {
    const bool narrow = storage_ != s_.storage;
    const int64_t results = s_.n * s_.o * s_.plane();
    const char* x = s_.activations == kAsIs ? o.x : made_whole(o, scratch);
    auto* scale = floats(scratch, s_.o * s_.scales);
    const char* bias = !s_.bias  ? nullptr
                       : !narrow ? o.bias
                                 : reinterpret_cast<const char*>(as_floats(s_.storage, o.bias, s_.o, scratch));
    auto* weight = static_cast<char*>(scratch.take(weight_bytes()));
    char* y = narrow ? reinterpret_cast<char*>(floats(scratch, results)) : o.y;
    void* workspace = scratch.take(convolution_->workspace());
    if (o.y == nullptr) return;
    pg::cpu::ConvData d{};
    d.x = x, d.weight = weight, d.bias = bias, d.result = y, d.workspace = workspace;
    if (o.packed != nullptr && std::memcmp(o.packed, o.scale, scale_bytes()) == 0) {
      const void* filters = static_cast<const char*>(o.packed) + pg::cpu::scratch_bytes(scale_bytes());
      (convolution_->packed_bytes() != 0 ? d.packed_weight : d.weight) = filters;
    } else {
      convert_all(s_.storage, sF32, o.scale, scale, s_.o * s_.scales);
      widen_all(reinterpret_cast<const uint8_t*>(o.weight), scale, weight);
    }
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
  uint64_t scale_bytes() const { return static_cast<uint64_t>(s_.o * s_.scales * kStorageBytes[s_.storage]); }
  uint64_t weight_bytes() const { return static_cast<uint64_t>(s_.o * s_.numbers() * kStorageBytes[storage_]); }
  void widen_all(const uint8_t* weight, const float* scale, char* out) const {
    pg::parallel_for(
        s_.o, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, s_.numbers())), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) {
            widen(weight + i * s_.row_bytes(), scale + i * s_.scales, out + i * s_.numbers() * kStorageBytes[storage_]);
          }
        });
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
  if (auto way = make_winograd(s)) return way;
  if (auto way = make_whole(s)) return way;
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
    way_->pack(pg::input<const uint8_t>(launch, 1), pg::input<const char>(launch, 2), pg::host_pointer<char>(target));
  }

 private:
  std::unique_ptr<QuantizedConvolution> way_;
};
PG_KERNEL("quantized_conv2d", QuantizedConv2d, 0, 1u << 1);

}  // namespace
}  // namespace cpu::quantized_conv
