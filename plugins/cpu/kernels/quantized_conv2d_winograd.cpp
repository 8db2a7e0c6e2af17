// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d of whole numbers by filters of 3x3 that slide by one, by tiles of results: where the processor
// multiplies bytes no faster than floats, which go Winograd's way too.
#include "kernels/quantized_conv2d.hpp"

namespace cpu::quantized_conv {
namespace {

constexpr int64_t kFewestTiles = 8;      // for which reading transformed filters, which are larger, pays
constexpr int64_t kFewestChannels = 12;  // of x: what is transformed for them is to be used often
constexpr int64_t kMostChannels = 1800;  // four times the result fits int32
constexpr int64_t kPad = 32;             // channels of a transformed tile: a multiple of a vector's

class WinogradConvolution final : public QuantizedConvolution {
 public:
  explicit WinogradConvolution(const Sizes& s)
      : s_(s),
        loop_(narrow_conv),
        high_((s.out_h + 1) / 2),
        wide_((s.out_w + 1) / 2),
        padded_((s.c + kPad - 1) / kPad * kPad),
        units_((s.c + 1) / 2),
        blocks_((s.o + kConvFilters - 1) / kConvFilters),
        chunks_((high_ * wide_ + kConvTiles - 1) / kConvTiles),
        filters_(s.o, s.n * chunks_, std::min(kConvTiles, high_ * wide_) * 16 * s.c * s.o, kThread),
        parts_(std::min<int64_t>(s.n * chunks_ * filters_.count(), pg::thread_count())),
        images_(s, 2 * high_ + 2, 2 * wide_ + 2) {}
  static bool fits(const Sizes& s) {
    if (narrow_conv.winograd == nullptr || s.activations == kAsIs || s.scales != 1 || s.groups != 1) return false;
    for (int i = 0; i < 2; i++) {
      if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1) return false;
    }
    return s.c >= kFewestChannels && s.c <= kMostChannels && s.o >= kConvFilters / 2 && s.image() > 0 &&
           s.n * ((s.out_h + 1) / 2) * ((s.out_w + 1) / 2) >= kFewestTiles;
  }

  uint64_t packed_bytes() const override { return static_cast<uint64_t>(blocks_ * block_bytes()); }
  // Blocks of filters [16 places][units][16][2], transformed, with zeros where there are none.
  void pack(const uint8_t* weight, char* out) const override {
    pg::parallel_for(blocks_, std::max<int64_t>(1, kGrainCostly / block_bytes()), [&](int64_t begin, int64_t end) {
      std::fill(out + begin * block_bytes(), out + end * block_bytes(), char{0});
      for (int64_t j = begin * kConvFilters; j < std::min(end * kConvFilters, s_.o); j++) {
        auto* to = reinterpret_cast<int16_t*>(out + j / kConvFilters * block_bytes()) + j % kConvFilters * 2;
        for (int64_t c = 0; c < s_.c; c++) {
          int16_t places[16];
          transform(weight + j * s_.row_bytes(), 9 * c, places);
          for (int64_t i = 0; i < 16; i++) to[(i * units_ + c / 2) * kConvFilters * 2 + c % 2] = places[i];
        }
      }
    });
  }

  void run(const Operands& o, Scratch& scratch) override {
    const float* x = as_floats(s_.storage, o.x, s_.n * s_.image(), scratch);
    const float* scale = as_floats(s_.storage, o.scale, s_.o, scratch);
    const float* bias = s_.bias ? as_floats(s_.storage, o.bias, s_.o, scratch) : nullptr;
    auto* how = static_cast<WholeRow*>(scratch.take(static_cast<uint64_t>(s_.n) * sizeof(WholeRow)));
    auto* images = static_cast<char*>(scratch.take(static_cast<uint64_t>(s_.n * images_.bytes())));
    auto* tiles = static_cast<int16_t*>(scratch.take(static_cast<uint64_t>(parts_ * tile_numbers() * 2)));
    auto* filters = static_cast<char*>(scratch.take(packed_bytes()));
    float* y = s_.storage == sF32 ? reinterpret_cast<float*>(o.y) : floats(scratch, s_.n * s_.o * s_.plane());
    if (o.y == nullptr) return;
    if (o.packed == nullptr) pack(reinterpret_cast<const uint8_t*>(o.weight), filters);
    whole_images(s_, o, x, how);
    images_.lay_out(x, how, images);
    const int64_t each = filters_.count(), tasks = s_.n * chunks_ * each;
    const int64_t work = s_.n * high_ * wide_ * 16 * s_.c * s_.o / parts_;
    pg::parallel_for(parts_, std::max<int64_t>(1, kThread / work), [&](int64_t begin, int64_t end) {
      NarrowTiles t{};
      t.row = images_.wide() * s_.c, t.channels = s_.c, t.wide = wide_, t.out_h = s_.out_h, t.out_w = s_.out_w;
      t.v = tiles + begin * tile_numbers(), t.padded = padded_, t.units = units_;
      const char* weight = o.packed != nullptr ? static_cast<const char*>(o.packed) : filters;
      t.block_bytes = block_bytes();
      t.relu = s_.relu, t.step = s_.plane();
      for (int64_t task = tasks * begin / parts_; task < tasks * end / parts_; task++) {
        const int64_t i = task / each / chunks_, first = filters_.first(task % each);
        t.x = reinterpret_cast<const int16_t*>(images + i * images_.bytes()), t.x_scale = how[i].scale;
        t.weight = weight + first / kConvFilters * block_bytes(), t.filters = filters_.size(task % each);
        t.scale = scale + first, t.bias = bias != nullptr ? bias + first : nullptr;
        t.first = task / each % chunks_ * kConvTiles, t.count = std::min(kConvTiles, high_ * wide_ - t.first);
        t.y = y + (i * s_.o + first) * s_.plane();
        loop_.winograd(t);
      }
    });
    if (s_.storage != sF32) convert_all(sF32, s_.storage, reinterpret_cast<char*>(y), o.y, s_.n * s_.o * s_.plane());
  }

 private:
  int64_t block_bytes() const { return 16 * units_ * kConvUnits; }
  int64_t tile_numbers() const { return 16 * kConvTiles * padded_; }

  // Four times G g G^T of the nine numbers g from `at` on.
  void transform(const uint8_t* row, int64_t at, int16_t (&out)[16]) const {
    int32_t half[4][3];
    for (int64_t k = 0; k < 3; k++) {
      const int32_t a = whole_number(s_, row, at + k), b = whole_number(s_, row, at + 3 + k);
      const int32_t c = whole_number(s_, row, at + 6 + k);
      half[0][k] = 2 * a, half[1][k] = a + b + c, half[2][k] = a - b + c, half[3][k] = 2 * c;
    }
    for (int64_t i = 0; i < 4; i++) {
      const int32_t a = half[i][0], b = half[i][1], c = half[i][2];
      const int32_t all[4] = {2 * a, a + b + c, a - b + c, 2 * c};
      for (int64_t k = 0; k < 4; k++) out[4 * i + k] = static_cast<int16_t>(all[k]);
    }
  }

  Sizes s_;
  NarrowConvLoop loop_;
  int64_t high_, wide_, padded_, units_, blocks_, chunks_;
  FilterParts filters_;
  int64_t parts_;
  WholeImages images_;
};

}  // namespace

std::unique_ptr<QuantizedConvolution> make_winograd(const Sizes& s) {
  return WinogradConvolution::fits(s) ? std::make_unique<WinogradConvolution>(s) : nullptr;
}

}  // namespace cpu::quantized_conv
