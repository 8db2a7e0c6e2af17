// SPDX-License-Identifier: Apache-2.0
#include "conv/conv_gradients.hpp"

#include "conv/conv_parts.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

// Sums over the parts are kept by group, of parts that follow each other: neither depends on the threads, and so
// neither do the bits.
constexpr int64_t kMostGroups = 16;

// result[i], of `dtype`, = sum over group < groups of sums[group * step + i].
void add_groups(const float* sums, int64_t groups, int64_t step, int64_t count, uint32_t dtype, void* result) {
  with_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    parallel_for(count, ::cpu::kGrain / groups, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        float sum = 0;
        for (int64_t group = 0; group < groups; group++) sum += sums[group * step + i];
        static_cast<T*>(result)[i] = store<T>(static_cast<Accumulator<T>>(sum));
      }
    });
  });
}

}  // namespace

std::unique_ptr<ConvGradients> ConvGradients::make(const ConvShape& weight, bool with_dx, bool behind_relu) {
  const int64_t images = images_of_a_part(weight);
  if (images == 0) return nullptr;
  const ConvShape part = part_of(weight, images);
  ConvShape input = part;
  input.kind = ConvKind::kInputGradient, input.bias = false;
  std::vector<Slot> slots(static_cast<size_t>(std::min<int64_t>(weight.n / images, thread_count())));
  for (Slot& slot : slots) {
    slot.weight = make_whole_convolution(part);
    if (with_dx) slot.x = make_whole_convolution(input);
    if (slot.weight == nullptr || (with_dx && slot.x == nullptr)) return nullptr;
  }
  return std::unique_ptr<ConvGradients>(new ConvGradients(weight, images, behind_relu, std::move(slots)));
}

ConvGradients::ConvGradients(const ConvShape& s, int64_t images, bool behind_relu, std::vector<Slot> slots)
    : slots_(std::move(slots)),
      dtype_(s.dtype),
      parts_(s.n / images),
      groups_(std::min(parts_, kMostGroups)),
      weight_(s.weight.count()),
      channels_(s.o),
      dbias_at_((weight_ + 15) / 16 * 16),
      sums_(dbias_at_ + (s.bias ? (s.o + 15) / 16 * 16 : 0)),
      x_bytes_(images * s.c * s.in_count() * dtype_bytes(s.dtype)),
      y_count_(images * s.o * s.out_count()) {
  const Slot& slot = slots_[0];
  one_dy_ = with_dx() && slot.x->wanted_dy() == slot.weight->wanted_dy();
  plain_ = behind_relu && !(slot.weight->masks_dy() && (!with_dx() || slot.x->masks_dy()));
}

uint64_t ConvGradients::workspace() const {
  Scratch scratch;
  reserve(scratch);
  return scratch.bytes();
}

ConvGradients::Rooms ConvGradients::reserve(Scratch& scratch) const {
  const Slot& slot = slots_[0];
  auto larger = [&](auto&& of) { return std::max(of(*slot.weight), with_dx() ? of(*slot.x) : 0); };
  const uint64_t inner = larger([](const WholeConvolution& c) { return c.workspace(); });
  const uint64_t dy = larger([](const WholeConvolution& c) { return c.dy_bytes(); });
  const auto plain = static_cast<uint64_t>(plain_ ? y_count_ * dtype_bytes(dtype_) : 0);
  auto floats = [&](int64_t count) {
    return static_cast<float*>(scratch.take(static_cast<uint64_t>(count) * sizeof(float)));
  };
  Rooms rooms{scratch.take(packed_bytes()), floats(groups_ * sums_), {}};
  for (size_t i = 0; i < slots_.size(); i++)
    rooms.threads.push_back({scratch.take(inner), scratch.take(dy), scratch.take(plain), floats(sums_)});
  return rooms;
}

void ConvGradients::run(const Data& data) {
  Data d = data;
  Scratch scratch(d.workspace);
  const Rooms rooms = reserve(scratch);
  if (d.packed_weight == nullptr && packed_bytes() > 0) {
    pack(d.weight, rooms.filters);
    d.packed_weight = rooms.filters;
  }
  deal_out(slots_.size(), groups_, [&](size_t slot, int64_t group) { run_group(d, rooms, slot, group); });
  add_groups(rooms.sums, groups_, sums_, weight_, dtype_, d.dweight);
  if (d.dbias != nullptr) add_groups(rooms.sums + dbias_at_, groups_, sums_, channels_, dtype_, d.dbias);
}

void ConvGradients::run_group(const Data& d, const Rooms& rooms, size_t slot, int64_t group) {
  const int64_t first = parts_ * group / groups_, last = parts_ * (group + 1) / groups_;
  float *sums = rooms.sums + group * sums_, *more = rooms.threads[slot].more;
  for (int64_t i = first; i < last; i++) {
    run_part(d, rooms, slot, i, i == first ? sums : more);
    for (int64_t k = 0; i > first && k < sums_; k++) sums[k] += more[k];
  }
}

void ConvGradients::run_part(const Data& d, const Rooms& rooms, size_t slot, int64_t part, float* sums) {
  const Room& room = rooms.threads[slot];
  const int64_t y_bytes = y_count_ * dtype_bytes(dtype_);
  const void *dy = advance(d.dy, part * y_bytes), *y = advance(d.y, part * y_bytes);
  if (plain_) {
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      const T *from = static_cast<const T*>(dy), *where = static_cast<const T*>(y);
      auto* to = static_cast<T*>(room.plain);
      for (int64_t i = 0; i < y_count_; i++) to[i] = is_above_0(where[i]) ? from[i] : T{};
    });
    dy = room.plain, y = nullptr;
  }
  auto packed = [&](WholeConvolution& convolution) -> const void* {
    if (convolution.dy_bytes() == 0) return nullptr;
    convolution.pack_dy(dy, y, room.dy);
    return room.dy;
  };
  ConvData call{};
  call.y = dy, call.workspace = room.inner;
  call.x = advance(d.x, part * x_bytes_), call.result = sums, call.dbias = sums + dbias_at_;
  call.packed_dy = packed(*slots_[slot].weight);
  slots_[slot].weight->run(call);
  if (!with_dx()) return;
  call.weight = d.weight, call.packed_weight = d.packed_weight;
  call.result = static_cast<char*>(d.dx) + part * x_bytes_;
  if (!one_dy_) call.packed_dy = packed(*slots_[slot].x);
  slots_[slot].x->run(call);
}

}  // namespace pg::cpu
