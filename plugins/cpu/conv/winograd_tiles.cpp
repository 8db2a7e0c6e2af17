// SPDX-License-Identifier: Apache-2.0
#include "conv/winograd_tiles.hpp"

#include <algorithm>
#include <limits>

#include "conv/conv_parts.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

using ::cpu::kWinogradApart;
using ::cpu::kWinogradChannels;
using ::cpu::kWinogradFilters;
using ::cpu::WinogradTiling;

constexpr int64_t kRowsTogether = 6;                // tiles whose products are summed side by side
constexpr int64_t kNearBytes = int64_t{4} << 20;    // transformed filters that are read from a cache
constexpr int64_t kNearTiles = 24, kFarTiles = 48;  // at a time, by such filters and by others
constexpr int64_t kMostBytes = int64_t{256} << 20;  // of transformed filters
constexpr int64_t kFilterGrain = int64_t{1} << 14;  // numbers of filters that are worth a thread

int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// How long a way takes, in multiplications of the direct way, as measured with AVX2 (README.md).
class Cost {
 public:
  Cost(const ConvShape& s, bool packed)
      : slopes_(s.kind == ConvKind::kWeightGradient),
        packed_(packed),
        images_(static_cast<double>(s.n)),
        size_(s.kind == ConvKind::kInputGradient ? s.in : s.out),
        pairs_(static_cast<double>(s.c * s.o)),
        eights_(static_cast<double>(up(s.c, kWinogradChannels) + up(s.o, kWinogradChannels))) {}
  double of_direct() const { return images_ * static_cast<double>(size_[1] * size_[2]) * 9 * pairs_; }
  double of(const WinogradTiling& tiling) const {
    const double tiles = images_ * static_cast<double>(up(size_[1], tiling.side) * up(size_[2], tiling.side));
    const auto places = static_cast<double>(tiling.places());
    const double bytes = places * pairs_ * sizeof(float);
    if (bytes > kMostBytes) return std::numeric_limits<double>::infinity();
    const bool near = bytes <= kNearBytes;
    const double times = std::max(1.0, tiles / (near ? kNearTiles : kFarTiles));  // that filters are read
    const double filters = (slopes_ ? 2 : 1) * (near ? 1 : 5) * times + (packed_ ? 0 : 12);
    return places * (1.1 * tiles * pairs_ + 60 * tiles * eights_ + filters * pairs_);
  }

 private:
  bool slopes_, packed_;
  double images_;
  const int64_t* size_;
  double pairs_, eights_;
};

}  // namespace

::cpu::WinogradImages blocked_images(const int64_t (&size)[3], int64_t channels) {
  const int64_t plane = size[1] * size[2];
  return {size[1], size[2], channels, channels * plane, kWinogradChannels * plane, kWinogradChannels};
}

void lie_channels_last(::cpu::WinogradImages& images) {
  images.eight = kWinogradChannels, images.pixel = images.channels;
}

std::optional<int> find_winograd_tiling(const ConvShape& s, bool packed) {
  if (::cpu::winograd_loops.tiling[0].convolve == nullptr) return std::nullopt;
  if (!s.suits_winograd() || s.c % kWinogradChannels != 0 || s.o % kWinogradChannels != 0) return std::nullopt;
  if (s.x.count() == 0 || s.y.count() == 0) return std::nullopt;
  const Cost cost(s, packed);
  const double small = cost.of(::cpu::kWinogradTilings[0]);
  // Larger tiles take more memory for filters, and round to more.
  const double large = cost.of(::cpu::kWinogradTilings[1]) / 0.85;
  if (std::min(small, large) > 0.9 * cost.of_direct()) return std::nullopt;
  return small <= large ? 0 : 1;
}

std::optional<Winograd> Winograd::make(const ConvShape& s, bool packed) {
  const auto tiling = s.kind != ConvKind::kWeightGradient ? find_winograd_tiling(s, packed) : std::nullopt;
  if (!tiling) return std::nullopt;
  return Winograd(s, *tiling);
}

Winograd::Winograd(const ConvShape& s, int tiling)
    : loop_(&::cpu::winograd_loops.tiling[tiling]), tiling_(::cpu::kWinogradTilings[tiling]), alone_(s.alone) {
  const bool forward = s.kind == ConvKind::kForward;
  turned_ = !forward;
  in_ = blocked_images(forward ? s.in : s.out, forward ? s.c : s.o);
  out_ = blocked_images(forward ? s.out : s.in, forward ? s.o : s.c);
  top_ = forward ? s.padding[1] : 2 - s.padding[1], left_ = forward ? s.padding[2] : 2 - s.padding[2];
  high_ = up(out_.height, tiling_.side), wide_ = up(out_.width, tiling_.side), tiles_ = s.n * high_ * wide_;
  blocks_ = up(out_.channels, kWinogradFilters);
  const bool near = static_cast<int64_t>(weight_bytes()) <= kNearBytes;
  const int64_t most = near ? kNearTiles : kFarTiles;
  chunks_ = std::max<int64_t>(1, (tiles_ + most / 2) / most);
  most_ = std::min(tiles_, up(up(tiles_, chunks_), kRowsTogether) * kRowsTogether), chunks_ = up(tiles_, most_);
  const int64_t work = tiles_ * tiling_.places() * in_.channels * out_.channels;
  threads_ = alone_ || work <= onednn::kSmallWork ? 1 : thread_count();
  // Few tiles: filters are shared out too, whose tiles are transformed as often.
  parts_ = threads_ == 1 || chunks_ >= 4 * threads_ ? 1 : std::min(blocks_, up(2 * threads_, chunks_));
  threads_ = std::min(threads_, chunks_ * parts_);
}

int64_t Winograd::weight_step() const { return blocks_ * in_.channels * kWinogradFilters + kWinogradApart; }

uint64_t Winograd::weight_bytes() const {
  return static_cast<uint64_t>(tiling_.places() * weight_step()) * sizeof(float);
}

void Winograd::transform(const float* weight, float* to) const {
  ::cpu::WinogradFilters f{};
  f.weight = weight, f.channels = in_.channels, f.filters = out_.channels;
  f.channel_step = turned_ ? 9 * out_.channels : 9, f.filter_step = turned_ ? 9 : 9 * in_.channels, f.turned = turned_;
  f.to = to, f.to_step = weight_step();
  auto blocks = [&](int64_t begin, int64_t end) {
    ::cpu::WinogradFilters some = f;
    some.first = begin, some.last = end;
    loop_->transform(some);
  };
  if (alone_) return blocks(0, blocks_);
  parallel_for(blocks_, std::max<int64_t>(1, kFilterGrain / (9 * in_.channels * kWinogradFilters)), blocks);
}

uint64_t Winograd::room(int64_t channels) const {
  return static_cast<uint64_t>(tiling_.places() * (most_ * channels + kWinogradApart)) * sizeof(float);
}

uint64_t Winograd::workspace() const {
  Scratch scratch;
  for (int64_t i = 0; i < threads_; i++) {
    scratch.take(room(in_.channels));
    scratch.take(room(up(blocks_, parts_) * kWinogradFilters));
  }
  return scratch.bytes();
}

void Winograd::run(const Call& call) const {
  Scratch scratch(call.workspace);
  struct Room {
    float *v, *sums;
  };
  std::vector<Room> rooms;
  for (int64_t i = 0; i < threads_; i++) {
    auto* v = static_cast<float*>(scratch.take(room(in_.channels)));
    rooms.push_back({v, static_cast<float*>(scratch.take(room(up(blocks_, parts_) * kWinogradFilters)))});
  }
  ::cpu::WinogradTiles all{};
  all.in = in_, all.out = out_, all.x = call.x, all.y = call.y, all.top = top_, all.left = left_;
  all.high = high_, all.wide = wide_, all.weight = call.weight, all.weight_step = weight_step();
  all.bias = call.bias, all.add = call.add, all.relu = call.relu;
  auto work = [&](size_t slot, int64_t task) {
    ::cpu::WinogradTiles t = all;
    const int64_t part = task % parts_, first = blocks_ * part / parts_, last = blocks_ * (part + 1) / parts_;
    t.first = task / parts_ * most_, t.count = std::min(most_, tiles_ - t.first);
    t.filter = first * kWinogradFilters, t.filter_count = std::min(last * kWinogradFilters, out_.channels) - t.filter;
    t.v = rooms[slot].v, t.sums = rooms[slot].sums;
    loop_->convolve(t);
  };
  if (threads_ > 1) return deal_out(static_cast<size_t>(threads_), chunks_ * parts_, work);
  for (int64_t task = 0; task < chunks_ * parts_; task++) work(0, task);
}

}  // namespace pg::cpu
