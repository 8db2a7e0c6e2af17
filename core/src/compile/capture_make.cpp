// SPDX-License-Identifier: Apache-2.0
// Capturing a plan: where its operands lie while it is captured, which steps are, and the capture itself.
#include <algorithm>
#include <cstring>

#include "base/ambient.hpp"
#include "compile/capture.hpp"

namespace perigee {
namespace {

constexpr uint32_t fewest_steps = 2;  // of a piece: one alone is as well launched as it is
constexpr uint64_t alignment = 16;    // of what launches read in the block

bool is_absent(const Tensor& x) { return x.meta->numel == 0; }

// Bytes behind the first element up to the end of the last.
int64_t extent_of(const Meta& meta) {
  int64_t last = 0;
  for (uint32_t i = 0; i < meta.rank; i++) last += (meta.shape[i] - 1) * meta.stride[i];
  return (last + 1) * pg::dtype_bytes(meta.dtype);
}

}  // namespace

std::vector<uint8_t> numbers_of(const Plan& plan, const PlanStep& step) {
  std::vector<uint8_t> bytes;
  auto add = [&](uint32_t launch) {
    const Launch& l = plan.launches[launch];
    if (l.signature) bytes.insert(bytes.end(), l.attrs.begin() + l.signature->op->info->static_size, l.attrs.end());
  };
  if (step.region == nullptr) add(step.launch);
  for (size_t n = 0; step.region != nullptr && n < step.region->view.launches.size(); n++)
    add(step.region->view.launches[n]);
  return bytes;
}

bool Captured::is_eligible(const Plan& plan) {
  if (!plan.arena || plan.steps.size() < fewest_steps) return false;
  if (device_ == nullptr) {
    for (const Launch& l : plan.launches)
      if (l.signature && device_ == nullptr) device_ = l.signature->device;
    if (device_ == nullptr || device_->synchronous || device_->absent || device_->plugin()->capture == nullptr)
      bar("its device captures nothing");
  }
  return barred_.empty();
}

// What of the memory from outside the arena launches meet.
void Captured::find_stands(const Plan& plan) {
  stands_.clear();
  std::map<std::pair<bool, uint32_t>, size_t> known;
  auto writes = [&](const std::vector<uint32_t>& list) {
    for (uint32_t o : list)
      if (o != no_number && plan.operands[o].place.outside) {
        auto found = known.find({true, plan.operands[o].place.base});
        if (found != known.end()) stands_[found->second].written = true;
      }
  };
  for (uint32_t o : plan.loose) {
    const Operand& operand = plan.operands[o];
    if (is_absent(*operand.tensor)) continue;
    const MemoryPlace& place = operand.place;
    auto [it, fresh] = known.try_emplace({place.outside, place.base}, stands_.size());
    if (fresh) {
      Stand& stand = stands_.emplace_back();
      stand.outside = place.outside;
      stand.base = place.base;
      stand.low = place.outside ? place.offset : 0;
      stand.high = place.outside ? place.offset : static_cast<int64_t>(plan.slots[place.base].bytes);
    }
    Stand& stand = stands_[it->second];
    stand.operands.push_back(o);
    if (!place.outside) continue;
    stand.low = std::min(stand.low, place.offset);
    stand.high = std::max(stand.high, place.offset + extent_of(*operand.tensor->meta));
  }
  for (const Launch& l : plan.launches) {
    writes(l.outputs);
    writes(l.raised);
  }
}

bool Captured::is_capturable(const Plan& plan, uint32_t number) const {
  const PlanStep& step = plan.steps[number];
  if (cut_.contains(step.launch)) return false;
  if (step.region != nullptr)
    return step.region->device == device_ && step.kernel->by->compiler->measure != nullptr &&
           step.kernel->pack_bytes == 0 && step.kernel->by->self == device_->self();
  const Launch& l = plan.launches[step.launch];
  if (!l.signature) return plan.operands[l.outputs[0]].tensor->device == device_;
  const Signature& s = *l.signature;
  if (s.device != device_) return false;
  switch (s.how) {
    case How::kernel: break;
    case How::clone:
    case How::cast:
    case How::copy:
    case How::fill: return true;
    default: return false;
  }
  return !s.packs && !s.dynamic && (s.workspace == 0 || l.workspace != no_number) &&
         s.kernel.self == device_->plugin()->self;
}

// What is written must stay where it is; so does what was at one place the last time and this time. All else is copied
// to and from memory of its own.
void Captured::make_room(const CallMemory& memory) {
  for (Stand& stand : stands_) {
    stand.moves = true;
    if (stand.outside) {
      const Tensor& x = *memory.tensors[stand.base];
      const auto seen = seen_.find(stand.base);
      stand.at = where(x);
      const bool stays = seen != seen_.end() && seen->second == stand.at;
      stand.moves = !stand.written && (!stays || moving_.contains(stand.base));
      if (!stand.moves) stand.held = x.storage;
    }
    if (stand.moves) stand.own = allocate(*device_, static_cast<uint64_t>(stand.high - stand.low), "pg.compile");
  }
}

// Asks each launch how much it reads of its numbers. Those of random operators change each time.
void Captured::measure(Plan& plan) {
  measured_.clear();
  measuring_ = true;
  Running running;
  for (step_ = 0; step_ < plan.steps.size(); step_++) {
    if (!is_capturable(plan, step_)) continue;
    const PlanStep& step = plan.steps[step_];
    const Launch& l = plan.launches[step.launch];
    if (step.region == nullptr && (!l.signature || l.signature->how != How::kernel)) continue;
    unsupported_ = false;
    launch_step(plan, step, running);
    const bool draws = step.region == nullptr && l.signature->op->info->effect == PG_EFFECT_RANDOM;
    if (!unsupported_ && (measured_.back().bytes > 0 || !draws)) continue;
    cut_.insert(step.launch);
    measured_.pop_back();
  }
  measuring_ = false;
}

void Captured::divide(Plan& plan) {
  const auto steps = static_cast<uint32_t>(plan.steps.size());
  size_t next = 0;
  uint64_t bytes = 0;
  frozen_.resize(steps);
  for (uint32_t i = 0; i < steps;) {
    Piece& piece = pieces_.emplace_back();
    piece.first = i;
    piece.begin = bytes;
    const bool capturable = is_capturable(plan, i);
    while (i < steps && is_capturable(plan, i) == capturable) i++;
    piece.end = i;
    piece.captured = capturable && piece.end - piece.first >= fewest_steps;
    for (; next < measured_.size() && measured_[next].step < piece.end; next++) {
      if (!piece.captured) continue;
      Entry& entry = measured_[next];
      entry.offset = bytes;
      bytes += (entry.bytes + alignment - 1) / alignment * alignment;
      piece.entries.push_back(std::move(entry));
    }
    piece.bytes = bytes - piece.begin;
    for (uint32_t k = piece.first; piece.captured && k < piece.end; k++) frozen_[k] = numbers_of(plan, plan.steps[k]);
    for (const Entry& entry : piece.entries)
      if (entry.bytes > 0) frozen_[entry.step].clear();
  }
  measured_.clear();
  image_.assign(bytes, 0);
  if (bytes > 0) block_ = allocate(*device_, bytes, "pg.compile");
}

// While a capture is prepared, asks about the launch; then captures it.
void Captured::launch(Signature& s, const pg_launch& launch) {
  const pg_capture& table = *device_->plugin()->capture;
  pg_error error = pg::make_error();
  if (!measuring_) {
    const pg_address at = block_of_next();
    pg::check(table.launch(s.kernel.self, s.kernel.index, s.prepared, &launch, at, &error), error);
    return;
  }
  Entry& entry = note_entry(launch);
  entry.signature = SignatureRef::share(&s);
  const int32_t code = table.measure(s.kernel.self, s.kernel.index, s.prepared, &launch, &entry.bytes, &error);
  unsupported_ = code == PG_E_NOT_SUPPORTED;
  if (!unsupported_) pg::check(code, error);
  if (s.op->info->attr_size == s.op->info->static_size) entry.bytes = 0;
}

void Captured::launch(Region& region, RegionKernel& kernel, const pg_launch& launch) {
  const pg_compiler& table = *kernel.by->compiler;
  pg_error error = pg::make_error();
  if (!measuring_) {
    const pg_address at = block_of_next();
    pg::check(table.launch_captured(kernel.by->self, kernel.prepared, &launch, at, &error), error);
    return;
  }
  Entry& entry = note_entry(launch);
  entry.region = &region;
  entry.kernel = &kernel;
  const int32_t code = table.measure(kernel.by->self, kernel.prepared, &launch, &entry.bytes, &error);
  unsupported_ = code == PG_E_NOT_SUPPORTED;
  if (!unsupported_) pg::check(code, error);
}

Captured::Entry& Captured::note_entry(const pg_launch& launch) {
  Entry& entry = measured_.emplace_back();
  entry.step = step_;
  entry.in.assign(launch.input, launch.input + launch.input_count);
  entry.out.assign(launch.output, launch.output + launch.output_count);
  entry.launch = launch;
  entry.launch.input = entry.in.data();  // stay where they are when the entry is moved
  entry.launch.output = entry.out.data();
  entry.launch.packed = nullptr;
  return entry;
}

// Where what is captured now finds its numbers.
pg_address Captured::block_of_next() {
  Entry& entry = into_->entries[entry_++];
  if (entry.step != step_) pg::fail(PG_E_INTERNAL, "a launch of the plan is not where it was");
  if (entry.bytes == 0) return {0, 0};
  pg_address at = block_->address();
  at.offset += entry.offset;
  return at;
}

pg_address Captured::workspace(uint64_t bytes) {
  StorageRef& room = rooms_[step_];
  if (!room) room = allocate(*device_, bytes, "pg.compile");
  return room->address();
}

uint64_t Captured::sequence(const char* what, const char* origin) {
  if (measuring_) return 0;
  into_->names.push_back({what, origin != nullptr ? origin : ambient().origin});
  return into_->names.size() - 1;
}

void Captured::capture_piece(Plan& plan, Piece& piece) {
  const pg_device& table = *device_->table();
  into_ = &piece;
  entry_ = 0;
  auto turn = device_->lock(stream_);
  const uint64_t handle = device_->stream(stream_);
  pg_error error = pg::make_error();
  if (int32_t code = table.capture_begin(device_->self(), device_->ordinal, handle, &error); code != PG_OK)
    throw pg::Error(code, pg::message_of(code, error));
  Running running;
  try {
    Scoped<CaptureLog*> log(ambient().capture, this);
    for (step_ = piece.first; step_ < piece.end; step_++) launch_step(plan, plan.steps[step_], running);
  } catch (const pg::Error& e) {
    uint64_t made = 0;
    if (table.capture_end(device_->self(), device_->ordinal, handle, &made, &error) == PG_OK)
      table.plan_destroy(device_->self(), device_->ordinal, made, &error);
    throw pg::Error(e.code, (running.op != nullptr ? std::string(running.op->info->name) + ": " : "") + e.what());
  }
  if (int32_t code = table.capture_end(device_->self(), device_->ordinal, handle, &piece.plan, &error); code != PG_OK) {
    piece.plan = 0;
    throw pg::Error(code, pg::message_of(code, error));
  }
}

void Captured::capture(Plan& plan, const CallMemory& memory) {
  stream_ = ambient().stream;
  captures_++;
  stale_ = false;
  try {
    make_room(memory);
    place_operands(plan);
    {
      Scoped<CaptureLog*> log(ambient().capture, this);
      measure(plan);
    }
    divide(plan);
    for (Piece& piece : pieces_)
      if (piece.captured) capture_piece(plan, piece);
    if (std::none_of(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.captured; }))
      pg::fail(PG_E_NOT_SUPPORTED, "no two launches that follow each other can be captured");
  } catch (const pg::Error& e) {
    measuring_ = false;
    put_back(plan, memory);
    drop();
    bar(e.what());
  }
}

}  // namespace perigee
