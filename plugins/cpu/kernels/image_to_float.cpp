// SPDX-License-Identifier: Apache-2.0
// image_to_float(x, scale, shift) -> y: bytes read once and numbers written once, also where the channels change
// places.
#include <algorithm>
#include <vector>

#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

struct ImageToFloat final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    for (const pg_tensor* t : {&call.in(0), &call.in(1), &call.in(2), &call.out(0)})
      if (!pg::is_contiguous(*t)) refuse(call);
  }
  ImageToFloat(const pg::KernelCall& call, pg::Plan&)
      : first_(call.attr<bool>("channels_first")), to_(storage_of(call.out(0))), given_(call.in(1).shape[0]) {
    const pg_tensor& x = call.in(0);
    channels_ = x.shape[x.rank - 1];
    plane_ = x.shape[x.rank - 3] * x.shape[x.rank - 2];
    for (uint32_t i = 0; i + 3 < x.rank; i++) pictures_ *= x.shape[i];
  }

  void launch(const pg_launch& launch) override {
    const int64_t pixels = pictures_ * plane_;
    if (pixels * channels_ == 0) return;
    const auto* x = pg::input<const uint8_t>(launch, 0);
    char* y = pg::output<char>(launch, 0);
    const std::vector<float> scale = numbers(pg::input<const float>(launch, 1)),
                             shift = numbers(pg::input<const float>(launch, 2));
    auto piece = [&](int64_t begin, int64_t end) {
      std::vector<float> narrow(to_ == sF32 ? 0 : static_cast<size_t>(kPixels * channels_));
      for (int64_t at = begin; at < end;) {
        const int64_t picture = at / plane_, i = at % plane_;
        const int64_t n = std::min({end - at, plane_ - i, kPixels});
        if (first_)
          planes(x + at * channels_, n, scale.data(), shift.data(), y, picture * channels_ * plane_ + i, narrow);
        else
          pixels_of(x + at * channels_, n, scale.data(), shift.data(), y, at * channels_, narrow);
        at += n;
      }
    };
    if (pixels * channels_ <= kGrain) return piece(0, pixels);
    pg::parallel_for(pixels, std::max<int64_t>(kPixels, kGrain / channels_), piece);
  }

 private:
  static constexpr int64_t kPixels = 512;  // at a time

  // One a number of a pixel, and of as many pixels as are made at a time where the channels stay last.
  std::vector<float> numbers(const float* given) const {
    std::vector<float> all(static_cast<size_t>(channels_ * (first_ ? 1 : kPixels)));
    for (size_t i = 0; i < all.size(); i++) all[i] = given[given_ == 1 ? 0 : i % static_cast<size_t>(channels_)];
    return all;
  }
  void planes(const uint8_t* x, int64_t n, const float* scale, const float* shift, char* y, int64_t at,
              std::vector<float>& narrow) const {
    if (to_ == sF32) return simd->pixel_planes(x, n, channels_, scale, shift, reinterpret_cast<float*>(y) + at, plane_);
    simd->pixel_planes(x, n, channels_, scale, shift, narrow.data(), n);
    for (int64_t c = 0; c < channels_; c++)
      convert(sF32, to_, narrow.data() + c * n, y + (at + c * plane_) * kStorageBytes[to_], n);
  }
  void pixels_of(const uint8_t* x, int64_t n, const float* scale, const float* shift, char* y, int64_t at,
                 std::vector<float>& narrow) const {
    if (to_ == sF32) return simd->byte_floats(x, n * channels_, scale, shift, reinterpret_cast<float*>(y) + at);
    simd->byte_floats(x, n * channels_, scale, shift, narrow.data());
    convert(sF32, to_, narrow.data(), y + at * kStorageBytes[to_], n * channels_);
  }

  bool first_;
  Storage to_;
  int64_t given_, channels_, plane_, pictures_ = 1;
};
PG_KERNEL("image_to_float", ImageToFloat);

}  // namespace
}  // namespace cpu
