// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "conv/winograd_tiles.hpp"
#include "linalg/work.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

using ::cpu::kWinogradApart;
using ::cpu::kWinogradFilters;

constexpr int64_t kNearBytes = int64_t{4} << 20;    // sums over tiles that are added to in a cache
constexpr int64_t kNearTiles = 48, kFarTiles = 96;  // at a time, of such sums and of others

}  // namespace

std::optional<WinogradSlopes> WinogradSlopes::make(const ConvShape& s) {
  if (!s.weight.dense() && !s.weight.channels_last()) return std::nullopt;
  const auto tiling = s.kind == ConvKind::kWeightGradient ? find_winograd_tiling(s, false) : std::nullopt;
  if (!tiling) return std::nullopt;
  return WinogradSlopes(s, *tiling);
}

WinogradSlopes::WinogradSlopes(const ConvShape& s, int tiling)
    : loop_(&::cpu::winograd_loops.tiling[tiling]),
      tiling_(::cpu::kWinogradTilings[tiling]),
      in_(blocked_images(s.in, s.c)),
      out_(blocked_images(s.out, s.o)),
      top_(s.padding[1]),
      left_(s.padding[2]),
      high_((out_.height + tiling_.side - 1) / tiling_.side),
      wide_((out_.width + tiling_.side - 1) / tiling_.side),
      tiles_(s.n * high_ * wide_),
      blocks_((s.o + kWinogradFilters - 1) / kWinogradFilters),
      filter_step_(s.weight.stride[0]),
      channel_step_(s.weight.stride[1]),
      number_step_(s.weight.stride[3]) {
  const int64_t places = tiling_.places(), most = places * s.c * s.o * 4 <= kNearBytes ? kNearTiles : kFarTiles;
  const int64_t chunks = std::max<int64_t>(1, (tiles_ + most / 2) / most);
  most_ = (tiles_ + chunks - 1) / chunks;
  // Each part transforms all tiles of x, and of its filters those of dy.
  const bool one = s.alone || work_of({tiles_, places, s.c, s.o}) <= onednn::kSmallWork;
  parts_ = one ? 1 : std::min<int64_t>(blocks_, thread_count());
}

int64_t WinogradSlopes::filters_of(int64_t part) const {
  return std::min(out_.channels, blocks_ * part / parts_ * kWinogradFilters);
}

WinogradSlopes::Room WinogradSlopes::reserve(Scratch& scratch) const {
  const int64_t filters = (blocks_ + parts_ - 1) / parts_ * kWinogradFilters, places = tiling_.places();
  auto floats = [&](int64_t count) {
    return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
  };
  Room room{};
  room.v = floats(places * most_ * (in_.channels + kWinogradApart));
  room.w = floats(places * most_ * (filters + kWinogradApart));
  room.sums = floats(places * (in_.channels * filters + kWinogradApart));
  return room;
}

uint64_t WinogradSlopes::workspace() const {
  Scratch scratch;
  for (int64_t i = 0; i < parts_; i++) reserve(scratch);
  return scratch.bytes();
}

void WinogradSlopes::run(const Call& call) const {
  Scratch scratch(call.workspace);
  std::vector<Room> rooms;
  for (int64_t i = 0; i < parts_; i++) rooms.push_back(reserve(scratch));
  if (parts_ == 1) return run_part(call, rooms[0], 0);
  parallel_for(parts_, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; part++) run_part(call, rooms[static_cast<size_t>(part)], part);
  });
}

void WinogradSlopes::run_part(const Call& call, const Room& room, int64_t part) const {
  ::cpu::WinogradGradient g{};
  g.in = in_, g.out = out_, g.x = call.x, g.dy = call.dy;
  g.top = top_, g.left = left_, g.high = high_, g.wide = wide_;
  g.filter = filters_of(part), g.filter_count = filters_of(part + 1) - g.filter;
  g.v = room.v, g.w = room.w, g.sums = room.sums;
  if (call.dbias != nullptr) g.dbias = call.dbias + g.filter;
  for (g.first = 0; g.first < tiles_; g.first += most_, g.add = true) {
    g.count = std::min(most_, tiles_ - g.first);
    loop_->add_gradient(g);
  }
  loop_->end_gradient(
      {room.sums, in_.channels, g.filter, g.filter_count, call.dweight, filter_step_, channel_step_, number_step_});
}

}  // namespace pg::cpu
