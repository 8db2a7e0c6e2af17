// SPDX-License-Identifier: Apache-2.0
// When a plan is captured, and how what was captured is launched. How it is captured: capture_make.cpp.
#include "compile/capture.hpp"

#include <cstring>
#include <mutex>
#include <set>

#include "base/ambient.hpp"
#include "base/rng.hpp"
#include "tensor/dropped.hpp"
#include "tensor/tensor.hpp"

namespace perigee {
namespace {

constexpr uint32_t most_captures = 16;  // of a plan: its tensors lie elsewhere each time then, and it is not worth it

struct Registry {
  std::mutex mutex;
  std::set<Captured*> all;
};
Registry& registry() {
  static auto* made = new Registry();  // outlives what is released at exit
  return *made;
}

pg_tensor bytes_at(pg_address address, const int64_t* count) {
  static const int64_t one = 1;
  pg_tensor t{};
  t.size = PG_SIZE(pg_tensor, components);
  t.dtype_code = PG_UINT;
  t.dtype_bits = 8;
  t.rank = 1;
  t.shape = count;
  t.stride = &one;
  t.buffer = address.buffer;
  t.offset = address.offset;
  return t;
}

void copy_bytes(Device& device, pg_address target, pg_address source, int64_t count, uint32_t stream) {
  device.copy(bytes_at(target, &count), bytes_at(source, &count), stream, "copy");
}

}  // namespace

Captured::Captured() {
  std::lock_guard lock(registry().mutex);
  registry().all.insert(this);
}

Captured::~Captured() {
  {
    std::lock_guard lock(registry().mutex);
    registry().all.erase(this);
  }
  drop();
}

void Captured::end_all() {
  std::lock_guard lock(registry().mutex);
  for (Captured* each : registry().all) {
    each->drop();
    each->bar("the process ends");
  }
}

void Captured::bar(const std::string& why) {
  if (barred_.empty()) barred_ = why;
}

// Its memory goes back to the pools of its stream, behind all that was launched there.
void Captured::drop() {
  bool launched = false;
  for (const Piece& piece : pieces_) launched |= piece.plan != 0;
  if (launched && device_->plugin()->opened) {
    try {
      device_->record(stream_).wait();
    } catch (const std::exception&) {  // what failed is said when the stream is synchronised
    }
    pg_error error = pg::make_error();
    for (const Piece& piece : pieces_)
      if (piece.plan != 0 &&
          device_->table()->plan_destroy(device_->self(), device_->ordinal, piece.plan, &error) != PG_OK)
        device_->warn("plan_destroy", error);
  }
  pieces_.clear();
  frozen_.clear();
  rooms_.clear();
  block_ = nullptr;
  for (Stand& stand : stands_) stand.held = stand.own = nullptr;
}

bool Captured::run(Plan& plan, const CallMemory& memory, Running& running) {
  if (!barred_.empty() || !is_eligible(plan)) return false;
  if (plan.arena.get() != arena_.get()) {  // the second time shows which tensors stay where they are
    drop();
    stream_ = ambient().stream;
    arena_ = plan.arena;
    find_stands(plan);
    look(memory);
    return false;
  }
  if (!is_present(memory)) return false;  // launches one by one tell whose memory is missing
  if (!pieces_.empty() && (stale_ || !is_as_seen(memory) || has_frozen_changes(plan))) drop();
  if (pieces_.empty()) {
    if (captures_ == most_captures)
      bar("it was captured " + std::to_string(captures_) + " times, the last time because " + why_);
    else
      capture(plan, memory);
    if (!barred_.empty()) return false;
  }
  place_operands(plan);
  copy_in(memory);
  for (Piece& piece : pieces_) launch_piece(plan, piece, running);
  copy_out(memory);
  put_back(plan, memory);
  for (const PlanStep& step : plan.steps) note_step(plan, step);
  return true;
}

// Memory may be given back and taken again elsewhere while its storage stays (tensor/dropped.hpp).
Captured::Where Captured::where(const Tensor& x) {
  const Block* block = x.storage->block;
  return {x.storage.get(), x.offset, block != nullptr ? block->buffer : 0, block != nullptr ? block->offset : 0};
}

bool Captured::is_present(const CallMemory& memory) const {
  for (const Stand& stand : stands_)
    if (stand.outside && is_dropped(*memory.tensors[stand.base]->storage)) return false;
  return true;
}

// Where tensors from outside are now.
void Captured::look(const CallMemory& memory) {
  seen_.clear();
  for (const Stand& stand : stands_)
    if (stand.outside) seen_[stand.base] = where(*memory.tensors[stand.base]);
}

bool Captured::is_as_seen(const CallMemory& memory) {
  if (ambient().stream != stream_) return false;
  for (const Stand& stand : stands_) {
    if (!stand.outside || stand.moves) continue;
    if (where(*memory.tensors[stand.base]) == stand.at) continue;
    moving_.insert(stand.base);
    why_ = "a tensor that it was captured with lies elsewhere";
    return false;
  }
  return true;
}

bool Captured::has_frozen_changes(const Plan& plan) {
  bool found = false;
  for (uint32_t i = 0; i < frozen_.size(); i++) {
    if (frozen_[i].empty() || frozen_[i] == numbers_of(plan, plan.steps[i])) continue;
    const Launch& l = plan.launches[plan.steps[i].launch];
    cut_.insert(plan.steps[i].launch);
    why_ = std::string("a number of ") + l.signature->op->info->name + " has changed";
    found = true;
  }
  return found;
}

void Captured::place_operands(Plan& plan) {
  for (const Stand& stand : stands_)
    for (uint32_t o : stand.operands) {
      Tensor& x = *plan.operands[o].tensor;
      const int64_t offset = plan.operands[o].place.offset;
      lend(x, stand.moves ? stand.own : stand.held);
      x.offset = stand.moves ? offset - stand.low : offset + stand.at.offset;
    }
}

// As for launches one by one.
void Captured::put_back(Plan& plan, const CallMemory& memory) {
  for (const Stand& stand : stands_)
    for (uint32_t o : stand.operands) {
      Tensor& x = *plan.operands[o].tensor;
      const int64_t offset = plan.operands[o].place.offset;
      lend(x, stand.outside ? memory.tensors[stand.base]->storage : memory.storages[stand.base]);
      x.offset = offset + (stand.outside ? memory.tensors[stand.base]->offset : 0);
    }
}

void Captured::copy_in(const CallMemory& memory) {
  for (const Stand& stand : stands_) {
    if (!stand.outside) continue;
    const Tensor& x = *memory.tensors[stand.base];
    use_on(*x.storage, stream_, stand.written);
    if (!stand.moves) continue;
    pg_address from = x.storage->address();
    from.offset += static_cast<uint64_t>(x.offset + stand.low);
    copy_bytes(*device_, stand.own->address(), from, stand.high - stand.low, stream_);
  }
}

void Captured::copy_out(const CallMemory& memory) {
  for (const Stand& stand : stands_) {
    if (stand.outside || !stand.moves || !memory.storages[stand.base]) continue;
    use_on(*memory.storages[stand.base], stream_, true);
    copy_bytes(*device_, memory.storages[stand.base]->address(), stand.own->address(), stand.high, stream_);
  }
}

int32_t Captured::write(Entry& entry, pg_error& error) {
  void* block = image_.data() + entry.offset;
  if (entry.region != nullptr)
    return entry.kernel->by->compiler->write(entry.kernel->by->self, entry.kernel->prepared, &entry.launch, block,
                                             &error);
  const Signature& s = *entry.signature;
  return device_->plugin()->capture->write(s.kernel.self, s.kernel.index, s.prepared, &entry.launch, block, &error);
}

// Writes the numbers of this call to the piece's part of the block. False: they want other work than was captured, and
// nothing of this piece has happened.
bool Captured::renew(Plan& plan, Piece& piece, Running& running) {
  struct Drawn {
    int64_t elements;
    RngState state;
  };
  std::vector<Drawn> drawn;
  auto undo = [&] {
    for (; !drawn.empty(); drawn.pop_back()) undo_draw(drawn.back().elements, drawn.back().state);
  };
  const std::vector<uint8_t> before(image_.begin() + static_cast<ptrdiff_t>(piece.begin),
                                    image_.begin() + static_cast<ptrdiff_t>(piece.begin + piece.bytes));
  for (Entry& entry : piece.entries) {
    const Launch& l = plan.launches[plan.steps[entry.step].launch];
    const bool joined = entry.region != nullptr;
    if (joined) entry.region->read_numbers(plan);
    const std::vector<uint8_t>& attrs = joined ? entry.region->attrs : l.attrs;
    running = {l.item, joined ? nullptr : entry.signature->op};
    if (entry.written && entry.attrs == attrs) continue;
    entry.attrs = attrs;
    const bool draws = !joined && entry.signature->op->info->effect == PG_EFFECT_RANDOM;
    if (draws) {
      const Signature& s = *entry.signature;
      const int64_t elements = s.outputs.empty() ? 1 : s.outputs[0].meta->numel;
      const RngState state = draw(elements);
      drawn.push_back({elements, state});
      std::memcpy(entry.attrs.data() + s.op->seed_offset, &state.seed, sizeof state.seed);
      std::memcpy(entry.attrs.data() + s.op->offset_offset, &state.offset, sizeof state.offset);
    }
    if (entry.bytes == 0) continue;
    entry.launch.attrs = entry.attrs.data();
    pg_error error = pg::make_error();
    const int32_t code = write(entry, error);
    entry.written = code == PG_OK && !draws;
    if (code == PG_OK) continue;
    piece.written = false;  // the image is ahead of the block
    undo();
    if (code != PG_E_FAILED_PRECONDITION) pg::fail_as(code, error);
    cut_.insert(plan.steps[entry.step].launch);
    why_ = std::string("the numbers of ") + (joined ? entry.region->names : entry.signature->op->info->name) +
           " want other work than before";
    return false;
  }
  if (piece.bytes > 0 &&
      (!piece.written || std::memcmp(before.data(), image_.data() + piece.begin, piece.bytes) != 0)) {
    pg_address target = block_->address();
    target.offset += piece.begin;
    device_->upload(target, image_.data() + piece.begin, piece.bytes, stream_);
    piece.written = true;
  }
  return true;
}

void Captured::launch_piece(Plan& plan, Piece& piece, Running& running) {
  if (!piece.captured || !renew(plan, piece, running)) {
    for (uint32_t i = piece.first; i < piece.end; i++) launch_step(plan, plan.steps[i], running);
    stale_ |= piece.captured;
    return;
  }
  running = {plan.launches[plan.steps[piece.first].launch].item, nullptr};
  auto turn = device_->lock(stream_);
  const uint64_t handle = device_->stream(stream_);
  uint64_t first = 0;
  for (size_t i = 0; i < piece.names.size(); i++) {
    const uint64_t number = device_->sequence(piece.names[i].what, piece.names[i].origin);
    if (i == 0) first = number;
  }
  pg_error error = pg::make_error();
  const int32_t code =
      device_->table()->plan_launch(device_->self(), device_->ordinal, piece.plan, handle, first, &error);
  if (code != PG_OK) device_->fail(code, error, "launch of a captured plan");
}

std::string Captured::text() const {
  size_t pieces = 0, steps = 0, names = 0;
  for (const Piece& piece : pieces_)
    if (piece.captured) pieces++, steps += piece.end - piece.first, names += piece.names.size();
  uint64_t copied = 0;
  for (const Stand& stand : stands_)
    if (stand.moves) copied += static_cast<uint64_t>(stand.high - stand.low);
  std::string why = barred_.empty() ? why_ : barred_;
  for (char& c : why)
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '\'';
  return pg::format(
      "\"captures\":%u,\"pieces\":%zu,\"captured\":%zu,\"runtime\":%zu,\"copied\":%llu,\"capture_why\":\"%s\"",
      captures_, pieces, steps, image_.size(), static_cast<unsigned long long>(pieces_.empty() ? 0 : copied),
      why.c_str());
}

}  // namespace perigee
