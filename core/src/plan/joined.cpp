// SPDX-License-Identifier: Apache-2.0
#include "plan/joined.hpp"

#include <algorithm>

namespace perigee {
namespace {

// What is only described is no input of a kernel.
void leave_descriptions_out(const Signature& s, std::vector<uint32_t>& inputs) {
  uint32_t flat = 0;
  for (uint32_t i = 0; i < s.op->info->input_count; i++)
    for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
      if ((s.op->info->inputs[i]->flags & PG_INPUT_META) != 0) inputs[flat] = no_number;
}

}  // namespace

JoinedSteps::JoinedSteps(const PreparedRun& p, const std::vector<KnownStep>& known)
    : roles_(p.steps.size(), Role::alone), piece_of_(p.steps.size(), none), left_out_(p.slot_count, 0) {
  if (std::count_if(known.begin(), known.end(), [](const KnownStep& k) { return k.joins; }) < 2) return;
  describe(p, known);
  list(p, known);
  regions_ = cut_regions(launches_);
  take(p);
  leave_views_out(p, known);
  if (!pieces_.empty()) move_ends(p);
}

// Where slots lie, and what they hold as far as single calls know it.
void JoinedSteps::describe(const PreparedRun& p, const std::vector<KnownStep>& known) {
  launches_.operands.resize(p.slot_count);
  for (uint32_t slot = 0; slot < p.slot_count; slot++) launches_.operands[slot].place.base = slot;
  auto outside = [&](uint32_t slot) {
    if (slot != none) launches_.operands[slot].place.outside = true;
  };
  for (const PreparedRun::Feed& f : p.feeds) outside(f.slot);
  for (const PreparedRun::Source& v : p.variables) outside(v.slot);
  for (const PreparedRun::Constant& c : p.constants) outside(c.slot);
  described_.resize(p.slot_count);
  auto is = [&](uint32_t slot, const MetaRef& meta, Device& device) {
    if (slot != none && meta && !described_[slot]) described_[slot] = make_tensor(meta, nullptr, 0, &device);
  };
  for (size_t i = 0; i < p.steps.size(); i++) {
    const PreparedRun::Step& step = p.steps[i];
    const KnownStep& k = known[i];
    auto in = p.inputs(step), out = p.outputs(step);
    // In the memory of what is written, where nobody else reads that; by input: what is seen of it afterwards.
    std::vector<uint32_t> seen(in.begin(), in.end());
    for (const PreparedRun::Write& w : p.writes_of(step)) {
      seen[w.input] = w.slot;
      const uint32_t from = in[w.input];
      if (from == none || w.slot == none || launches_.operands[from].place.outside) continue;
      launches_.operands[w.slot].place = launches_.operands[from].place;
    }
    for (const KnownStep::Shared& s : *k.shared) {
      if (out[s.output] == none || seen[s.input] == none) continue;
      MemoryPlace& place = launches_.operands[out[s.output]].place;
      place = launches_.operands[seen[s.input]].place;
      place.offset += s.offset;
    }
    if (k.signature == nullptr) continue;
    for (size_t j = 0; j < in.size(); j++) is(in[j], k.signature->inputs[j], *k.signature->device);
    for (size_t j = 0; j < out.size() && j < k.signature->outputs.size(); j++)
      is(out[j], k.signature->outputs[j].meta, *k.signature->device);
  }
  for (uint32_t slot = 0; slot < p.slot_count; slot++) launches_.operands[slot].tensor = described_[slot];
}

// Views are no launches: they reach for no memory.
void JoinedSteps::list(const PreparedRun& p, const std::vector<KnownStep>& known) {
  for (uint32_t i = 0; i < p.steps.size(); i++) {
    const PreparedRun::Step& step = p.steps[i];
    const KnownStep& k = known[i];
    if (k.signature != nullptr && k.signature->how == How::view) continue;
    Launch& l = launches_.launches.emplace_back();
    step_of_.push_back(i);
    auto in = p.inputs(step), out = p.outputs(step);
    l.inputs.assign(in.begin(), in.end());
    l.outputs.assign(out.begin(), out.end());
    for (const PreparedRun::Bound& b : p.bounds_of(step)) l.inputs.push_back(b.slot);
    for (const PreparedRun::Write& w : p.writes_of(step)) {
      if (in[w.input] != none) l.raised.push_back(in[w.input]);
      if (w.slot != none) l.raised.push_back(w.slot);
    }
    if (!k.joins) continue;
    leave_descriptions_out(*k.signature, l.inputs);
    l.signature = SignatureRef::share(const_cast<Signature*>(k.signature));
    l.outputs.resize(l.signature->outputs.size(), none);  // hidden ones that nobody asked for
    l.attrs.assign(k.attrs, k.attrs + l.signature->op->info->attr_size);
  }
}

std::vector<uint8_t> JoinedSteps::outliving(const PreparedRun& p) const {
  std::vector<uint8_t> outlives(p.slot_count, 0);
  auto taken = [&](uint32_t slot) {
    const MemoryPlace& place = launches_.operands[slot].place;
    if (!place.outside) outlives[place.base] = 1;
  };
  for (const PreparedRun::Taken& f : p.fetches) taken(f.slot);
  for (const PreparedRun::Commit& c : p.commits) taken(c.taken.slot);
  return outlives;
}

void JoinedSteps::take(const PreparedRun& p) {
  const std::vector<uint8_t> outlives = outliving(p);
  for (const auto& region : regions_) {
    RegionKernel* kernel = region->kernel_for(launches_, outlives);
    if (kernel->prepared == nullptr && !kernel->outputs.empty()) continue;  // one by one
    const std::vector<uint32_t>& list = region->view.launches;
    const auto number = static_cast<uint32_t>(pieces_.size());
    pieces_.push_back({region.get(), kernel, step_of_[list.front()], step_of_[list.back()]});
    for (uint32_t l : list) {
      const uint32_t step = step_of_[l];
      roles_[step] = Role::inner;
      if (!kernel->outputs.empty()) piece_of_[step] = number;
      for (uint32_t slot : launches_.launches[l].outputs)
        if (slot != none) left_out_[slot] = 1;
    }
    roles_[pieces_.back().first] = Role::first;
    roles_[pieces_.back().last] = Role::last;
    for (uint32_t slot : kernel->output_operands) left_out_[slot] = 0;
  }
}

// Nobody reads views of what nobody wants.
void JoinedSteps::leave_views_out(const PreparedRun& p, const std::vector<KnownStep>& known) {
  for (uint32_t i = 0; i < p.steps.size(); i++) {
    if (known[i].signature == nullptr || known[i].signature->how != How::view) continue;
    const uint32_t source = p.inputs(p.steps[i])[0];
    if (source == none || !left_out_[source]) continue;
    roles_[i] = Role::inner;
    for (uint32_t slot : p.outputs(p.steps[i]))
      if (slot != none) left_out_[slot] = 1;
  }
}

// What a piece reads is read where its last step stands.
void JoinedSteps::move_ends(const PreparedRun& p) {
  std::vector<uint32_t> last(p.slot_count, none);
  for (uint32_t i = 0; i < p.steps.size(); i++)
    for (uint32_t slot : p.ends(p.steps[i])) last[slot] = i;
  for (uint32_t i = 0; i < p.steps.size(); i++) {
    if (roles_[i] == Role::alone || piece_of_[i] == none) continue;
    for (auto slots : {p.inputs(p.steps[i]), p.outputs(p.steps[i])})
      for (uint32_t slot : slots)
        if (slot != none && last[slot] != none) last[slot] = std::max(last[slot], pieces_[piece_of_[i]].last);
  }
  ends_.resize(p.steps.size());
  for (uint32_t slot = 0; slot < p.slot_count; slot++)
    if (last[slot] != none) ends_[last[slot]].push_back(slot);
}

void JoinedSteps::launch(const Piece& piece, const std::vector<TensorRef>& values) {
  struct Held {
    Launches& launches;
    const std::vector<TensorRef>& described;
    const RegionKernel& kernel;
    void hold(const std::vector<TensorRef>& tensors) {
      for (const auto* list : {&kernel.input_operands, &kernel.output_operands})
        for (uint32_t slot : *list) launches.operands[slot].tensor = tensors[slot];
    }
    ~Held() { hold(described); }
  } held{launches_, described_, *piece.kernel};
  held.hold(values);
  piece.region->launch(launches_, *piece.kernel);
}

}  // namespace perigee
