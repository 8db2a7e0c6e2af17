// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.hpp"

#include "memory/layout.hpp"

namespace perigee {
namespace {

constexpr uint32_t no_slot = PreparedRun::none;

struct Planner {
  const PreparedRun& p;
  const JoinedSteps* joined;
  struct Memory : Lifetime {
    Device* device = nullptr;
    bool wanted = true;
  };
  std::vector<Memory> memories{};
  std::vector<uint32_t> last{};       // by slot: the step that reads it last
  std::vector<uint32_t> memory_of{};  // by slot
  std::vector<MetaRef> whole{};       // by slot: of values that are all of their memory

  void leave_out(uint32_t slot) {
    if (slot != no_slot && memory_of[slot] != no_slot) memories[memory_of[slot]].wanted = false;
  }

  void add_view(uint32_t step) {
    const uint32_t source = p.inputs(p.steps[step])[0];
    if (source == no_slot || memory_of[source] == no_slot) return;
    Memory& m = memories[memory_of[source]];
    for (uint32_t slot : p.outputs(p.steps[step])) {
      if (slot == no_slot) continue;
      if (last[slot] == no_slot) m.wanted = false;
      memory_of[slot] = memory_of[source];
      m.last = std::max(m.last, last[slot]);
    }
  }

  // Whether a step may write where its first input lies, which nobody reads afterwards: schemas promise that for
  // elementwise operators that can be called in place.
  bool takes_over(uint32_t step, const Signature& s) const {
    const uint32_t traits = s.op->info->traits;
    auto inputs = p.inputs(p.steps[step]);
    if (!(traits & PG_OP_ELEMENTWISE) || !(traits & PG_OP_IN_PLACE) || s.outputs.size() != 1 || inputs.empty() ||
        inputs[0] == no_slot)
      return false;
    const uint32_t from = memory_of[inputs[0]];
    if (from == no_slot || !memories[from].wanted || memories[from].last != step) return false;
    if (whole[inputs[0]].get() != s.outputs[0].meta.get() || !s.outputs[0].meta->dense) return false;
    for (uint32_t slot : inputs)  // the same memory seen in another way would change while it is read
      if (slot != no_slot && slot != inputs[0] && memory_of[slot] == from) return false;
    return true;
  }

  void add_plain(uint32_t step, const Signature& s) {
    auto outputs = p.outputs(p.steps[step]);
    const bool over = takes_over(step, s);
    for (uint32_t i = 0; i < outputs.size() && i < s.outputs.size(); i++) {
      const uint32_t slot = outputs[i];
      const MetaRef& meta = s.outputs[i].meta;
      if (slot == no_slot || last[slot] == no_slot || s.outputs[i].absent || meta->bytes <= 0) continue;
      whole[slot] = meta;
      if (over) {
        memory_of[slot] = memory_of[p.inputs(p.steps[step])[0]];
        memories[memory_of[slot]].last = last[slot];
        continue;
      }
      add_memory(slot, *meta, step, s.device);
    }
  }

  void add_memory(uint32_t slot, const Meta& meta, uint32_t step, Device* device) {
    memory_of[slot] = static_cast<uint32_t>(memories.size());
    Memory& m = memories.emplace_back();
    m.bytes = static_cast<uint64_t>(meta.bytes);
    m.first = step;
    m.last = last[slot];
    m.device = device;
  }

  // What a piece makes has its place from the first of its steps on; it may be that of what is read by nobody after the
  // last.
  void add_piece(const JoinedSteps::Piece& piece) {
    const RegionKernel& kernel = *piece.kernel;
    uint64_t free = ~uint64_t{0};  // inputs that no output has taken yet
    for (size_t k = 0; k < kernel.output_operands.size(); k++) {
      const uint32_t slot = kernel.output_operands[k];
      const Tensor& made = *joined->described(slot);
      if (last[slot] == no_slot || !made.device->synchronous) continue;
      whole[slot] = made.meta;
      for (size_t j = 0; j < kernel.input_operands.size() && j < 64 && memory_of[slot] == no_slot; j++) {
        const uint64_t bit = uint64_t{1} << j;
        const uint32_t source = kernel.input_operands[j], from = memory_of[source];
        if (!(kernel.overwrites[k] & free & bit) || from == no_slot || !memories[from].wanted) continue;
        if (memories[from].last != piece.last || whole[source].get() != made.meta.get() || !made.meta->dense) continue;
        memory_of[slot] = from;
        memories[from].last = last[slot];
        free &= ~bit;
      }
      if (memory_of[slot] == no_slot) add_memory(slot, *made.meta, piece.first, made.device);
    }
  }

  // Whether a step is told of with others.
  bool add_joined(uint32_t step) {
    if (joined == nullptr || joined->role(step) == JoinedSteps::Role::alone) return false;
    const JoinedSteps::Piece* piece = joined->piece(step);
    if (joined->role(step) == JoinedSteps::Role::first && piece != nullptr) add_piece(*piece);
    return true;
  }

  void run(const std::vector<const Signature*>& known) {
    last.assign(p.slot_count, no_slot);
    memory_of.assign(p.slot_count, no_slot);
    whole.resize(p.slot_count);
    for (uint32_t i = 0; i < p.steps.size(); i++) {
      if (joined != nullptr) {
        for (uint32_t slot : joined->ends()[i]) last[slot] = i;
      } else {
        for (uint32_t slot : p.ends(p.steps[i])) last[slot] = i;
      }
    }
    for (uint32_t i = 0; i < p.steps.size(); i++) {
      if (add_joined(i)) continue;
      if (known[i] == nullptr) {
        for (uint32_t slot : p.inputs(p.steps[i])) leave_out(slot);
      } else if (known[i]->how == How::view) {
        add_view(i);
      } else {
        add_plain(i, *known[i]);
      }
    }
  }
};

std::string joined_text(const JoinedSteps& joined, uint32_t step) {
  const JoinedSteps::Piece* piece = joined.piece(step);
  if (piece == nullptr) return ", wanted by nobody";
  if (joined.role(step) != JoinedSteps::Role::last) return pg::format(", within step %u", piece->last + 1);
  return pg::format(", as one kernel of %zu steps by %s", piece->region->view.nodes.size(),
                    piece->region->by->name.c_str());
}

}  // namespace

void RunArena::lay_out(const PreparedRun& p, const std::vector<const Signature*>& known, const JoinedSteps* joined) {
  clear();
  Planner planner{p, joined};
  planner.run(known);
  std::vector<Lifetime> list;
  std::vector<uint32_t> index(planner.memories.size(), no_slot);
  Device* device = nullptr;
  for (size_t i = 0; i < planner.memories.size(); i++) {
    const Planner::Memory& m = planner.memories[i];
    if (device == nullptr) device = m.device;
    if (!m.wanted || m.device != device) continue;
    index[i] = static_cast<uint32_t>(list.size());
    list.push_back(m);
  }
  if (list.empty()) return;
  for (const Lifetime& l : list) separate += placed_bytes(l.bytes);
  bound = live_at_once(list);
  bytes = place_lifetimes(list);
  block_ = StorageRef::adopt(new Storage());
  block_->device = device;
  block_->bytes = bytes;
  tensors_.resize(p.slot_count);
  for (uint32_t slot = 0; slot < p.slot_count; slot++) {
    const uint32_t memory = planner.memory_of[slot];
    if (memory == no_slot || index[memory] == no_slot || !planner.whole[slot]) continue;
    tensors_[slot] = make_tensor(planner.whole[slot], block_, static_cast<int64_t>(list[index[memory]].offset), device);
  }
}

std::string RunArena::text(const Graph& g, const PreparedRun& p, const std::vector<const Signature*>& known,
                           const JoinedSteps* joined, bool laid_out, uint64_t moved) const {
  uint32_t kernels = 0, views = 0, copies = 0, placed = 0, regions = 0;
  std::string lines;
  for (size_t i = 0; i < p.steps.size(); i++) {
    const PreparedRun::Step& step = p.steps[i];
    const bool view = !step.move && known[i] != nullptr && known[i]->how == How::view;
    const bool alone = joined == nullptr || joined->role(static_cast<uint32_t>(i)) == JoinedSteps::Role::alone;
    const bool region = !alone && joined->role(static_cast<uint32_t>(i)) == JoinedSteps::Role::last;
    if (alone) (step.move ? copies : view ? views : kernels)++;
    if (region && joined->piece(static_cast<uint32_t>(i)) != nullptr) kernels++, regions++;
    lines += "  ";
    if (step.move) {
      lines += "copy to " + step.place->name;
    } else {
      const GraphNode& n = g.nodes[step.node];
      lines += n.name + (n.control ? "" : std::string(" (") + n.op->info->name + ")");
      if (step.place != nullptr) lines += " on " + step.place->name;
      if (view) lines += ", a view";
      if (!alone) lines += joined_text(*joined, static_cast<uint32_t>(i));
    }
    for (uint32_t slot : p.outputs(step)) {
      const Tensor* t = slot != no_slot ? at(slot) : nullptr;
      if (t == nullptr) continue;
      placed++;
      lines +=
          pg::format(", %lld bytes at %lld", static_cast<long long>(t->meta->bytes), static_cast<long long>(t->offset));
    }
    lines += "\n";
  }
  auto count = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::string memory = laid_out ? pg::format("memory %llu bytes for %u values, %llu live at once, %llu without reuse",
                                             count(bytes), placed, count(bound), count(separate))
                                : std::string("memory is laid out when sizes come a second time");
  const std::string several = regions > 0 ? pg::format(" (%u of several steps)", regions) : std::string();
  return pg::format("%zu steps: %u kernels%s, %u views, %u copies between devices of %llu bytes; ", p.steps.size(),
                    kernels, several.c_str(), views, copies, count(moved)) +
         memory + "\n" + lines;
}

void RunArena::allocate() {
  if (bytes > 0) block_->block = block_->device->allocator.alloc(bytes, 0, {"session:run"});
}

void RunArena::release() {
  if (bytes > 0 && block_->block != nullptr) block_->device->allocator.free(std::exchange(block_->block, nullptr));
}

}  // namespace perigee
