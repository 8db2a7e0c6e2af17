// SPDX-License-Identifier: Apache-2.0
// quantized_conv2d of whole numbers by filters of 3x3 that slide by one, by tiles of results: where the processor
// multiplies bytes no faster than floats, which go Winograd's way too.
#include <limits>

#include "kernels/quantized_conv2d.hpp"

namespace cpu::quantized_conv {
namespace {

constexpr int64_t kPad = 32;  // channels of a transformed tile: a multiple of a vector's

// How long a way takes, where a unit of x times one of a block takes narrow_conv.cost: as measured, with AVX-512 and
// AVX2.
class Cost {
 public:
  explicit Cost(const Sizes& s) : s_(s), blocks_(up(s.o, kConvFilters)) {}
  int64_t whole() const {
    const int64_t units = 3 * up(3 * s_.c, 2) * blocks_;
    return s_.n * (windows(s_.plane()) * units * narrow_conv.cost + up(s_.plane(), kConvChunk) * reading(units));
  }
  int64_t tiles(const ConvTiling& tiling) const {
    const int64_t tiles = up(s_.out_h, tiling.side) * up(s_.out_w, tiling.side);
    const int64_t units = tiling.places() * up(s_.c, 2) * blocks_;
    const int64_t transforms = tiling.places() * (2 * up(s_.c, kPad) + 6 * blocks_);
    return s_.n * (windows(tiles) * units * narrow_conv.cost + up(tiles, tiling.most) * reading(units) +
                   tiles * transforms * narrow_conv.cost);
  }

 private:
  static constexpr int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }
  static constexpr int64_t windows(int64_t n) { return up(n, 4) * 4; }  // so many are computed side by side
  // Filters from the second cache, or from where larger ones are.
  static constexpr int64_t reading(int64_t units) { return units * kConvUnits <= kNear ? 3 * units : 13 * units / 2; }
  static constexpr int64_t kNear = int64_t{1} << 19;

  const Sizes& s_;
  int64_t blocks_;
};

class WinogradConvolution final : public QuantizedConvolution {
 public:
  WinogradConvolution(const Sizes& s, const ConvTiling& tiling, void (*convolve)(const NarrowTiles&))
      : s_(s),
        tiling_(tiling),
        convolve_(convolve),
        high_((s.out_h + tiling.side - 1) / tiling.side),
        wide_((s.out_w + tiling.side - 1) / tiling.side),
        padded_((s.c + kPad - 1) / kPad * kPad),
        units_((s.c + 1) / 2),
        blocks_((s.o + kConvFilters - 1) / kConvFilters),
        chunks_((high_ * wide_ + tiling.most - 1) / tiling.most),
        filters_(s.o, s.n * chunks_, std::min(tiling.most, high_ * wide_) * tiling.places() * s.c * s.o, kThread),
        parts_(std::min<int64_t>(s.n * chunks_ * filters_.count(), pg::thread_count())),
        images_(s, tiling.side * high_ + 2, tiling.side * wide_ + 2) {}
  static bool fits(const Sizes& s) {
    if (narrow_conv.winograd[0] == nullptr || s.activations == kAsIs || s.scales != 1 || s.groups != 1) return false;
    for (int i = 0; i < 2; i++) {
      if (s.kernel[i] != 3 || s.stride[i] != 1 || s.dilation[i] != 1) return false;
    }
    return s.o >= kConvFilters / 2 && s.image() > 0;
  }
  // Whether what the sums are multiples of fits int32: of as many products as there are.
  static bool holds(const Sizes& s, const ConvTiling& tiling) {
    const int64_t x = s.activations == kRowsInt8 ? 127 : 255, w = s.format == kInt4 ? 8 : 128;
    return s.numbers() * x * w <= std::numeric_limits<int32_t>::max() / (tiling.side == 2 ? 4 : 64);
  }

  uint64_t packed_bytes() const override { return static_cast<uint64_t>(blocks_ * block_bytes()); }
  // Blocks of filters [places][units][16][2], transformed, with zeros where there are none.
  void pack(const uint8_t* weight, const char*, char* out) const override {
    pg::parallel_for(blocks_, std::max<int64_t>(1, kGrainCostly / block_bytes()), [&](int64_t begin, int64_t end) {
      std::fill(out + begin * block_bytes(), out + end * block_bytes(), char{0});
      for (int64_t j = begin * kConvFilters; j < std::min(end * kConvFilters, s_.o); j++) {
        auto* to = reinterpret_cast<int16_t*>(out + j / kConvFilters * block_bytes()) + j % kConvFilters * 2;
        for (int64_t c = 0; c < s_.c; c++) {
          int16_t places[kMostPlaces];
          transform(weight + j * s_.row_bytes(), 9 * c, places);
          for (int64_t i = 0; i < tiling_.places(); i++) {
            to[(i * units_ + c / 2) * kConvFilters * 2 + c % 2] = places[i];
          }
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
    if (o.packed == nullptr) pack(reinterpret_cast<const uint8_t*>(o.weight), o.scale, filters);
    whole_images(s_, o, x, how);
    images_.lay_out(x, how, images);
    const int64_t each = filters_.count(), tasks = s_.n * chunks_ * each;
    const int64_t work = s_.n * high_ * wide_ * tiling_.places() * s_.c * s_.o / parts_;
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
        t.first = task / each % chunks_ * tiling_.most, t.count = std::min(tiling_.most, high_ * wide_ - t.first);
        t.y = y + (i * s_.o + first) * s_.plane();
        convolve_(t);
      }
    });
    if (s_.storage != sF32) convert_all(sF32, s_.storage, reinterpret_cast<char*>(y), o.y, s_.n * s_.o * s_.plane());
  }

 private:
  static constexpr int64_t kMostPlaces = 36;

  int64_t block_bytes() const { return tiling_.places() * units_ * kConvUnits; }
  int64_t tile_numbers() const { return tiling_.places() * tiling_.most * padded_; }

  // G g G^T of the nine numbers g from `at` on, where G is the usual matrix with rows times what makes them whole.
  void transform(const uint8_t* row, int64_t at, int16_t (&out)[kMostPlaces]) const {
    static constexpr int32_t kSmall[][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    static constexpr int32_t kLarge[][3] = {{6, 0, 0}, {-1, -1, -1}, {-1, 1, -1}, {1, 2, 4}, {1, -2, 4}, {0, 0, 6}};
    const auto* g = tiling_.side == 2 ? kSmall : kLarge;
    for (int64_t i = 0; i < tiling_.numbers(); i++) {
      int32_t half[3] = {};
      for (int64_t k = 0; k < 3; k++) {
        for (int64_t j = 0; j < 3; j++) half[k] += g[i][j] * whole_number(s_, row, at + 3 * j + k);
      }
      for (int64_t j = 0; j < tiling_.numbers(); j++) {
        out[i * tiling_.numbers() + j] =
            static_cast<int16_t>(g[j][0] * half[0] + g[j][1] * half[1] + g[j][2] * half[2]);
      }
    }
  }

  Sizes s_;
  ConvTiling tiling_;
  void (*convolve_)(const NarrowTiles& t);
  int64_t high_, wide_, padded_, units_, blocks_, chunks_;
  FilterParts filters_;
  int64_t parts_;
  WholeImages images_;
};

}  // namespace

std::unique_ptr<QuantizedConvolution> make_winograd(const Sizes& s) {
  if (!WinogradConvolution::fits(s)) return nullptr;
  const Cost cost(s);
  int64_t least = cost.whole();
  int found = -1;
  for (int i = 0; i < 2; i++) {
    if (!WinogradConvolution::holds(s, kConvTilings[i]) || cost.tiles(kConvTilings[i]) >= least) continue;
    least = cost.tiles(kConvTilings[i]), found = i;
  }
  if (found < 0) return nullptr;
  return std::make_unique<WinogradConvolution>(s, kConvTilings[found], narrow_conv.winograd[found]);
}

}  // namespace cpu::quantized_conv
