// SPDX-License-Identifier: Apache-2.0
// Describing regions to compilers, and launching what they made.
#include "fuse/region.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/log.hpp"
#include "base/profile.hpp"
#include "base/small_vector.hpp"
#include "call/packed.hpp"
#include "device/captured.hpp"
#include "tensor/dropped.hpp"

namespace perigee {
namespace {

constexpr size_t most_kernels = 8;  // of a region, for other sets of outputs
constexpr size_t most_inputs = 64;  // of a region whose cluster is not long

uint64_t aligned(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

struct RegionWorkspace {
  Device& device;
  Block* block = nullptr;
  ~RegionWorkspace() {
    if (block != nullptr) device.allocator.free(block);
  }
};

}  // namespace

void RegionView::draw(const Launches& list, const std::vector<uint8_t>& marked, Device& device) {
  std::vector<uint32_t> now(list.operands.size(), no_number);       // values, by operand
  std::map<std::pair<bool, uint32_t>, std::vector<uint32_t>> seen;  // operands that stand for values, by their memory
  std::vector<uint8_t> made;
  auto value_of = [&](uint32_t operand, bool fresh) {
    if (operand == no_number) return PG_VALUE_NONE;
    if (fresh || now[operand] == no_number) {
      const MemoryPlace& place = list.operands[operand].place;
      if (now[operand] == no_number) seen[{place.outside, place.base}].push_back(operand);
      now[operand] = static_cast<uint32_t>(operands.size());
      operands.push_back(operand);
      made.push_back(fresh);
    }
    return now[operand];
  };
  auto forget = [&](uint32_t written, bool itself) {
    const MemoryPlace& place = list.operands[written].place;
    auto known = seen.find({place.outside, place.base});
    if (known == seen.end()) return;
    const bool stays = !itself && now[written] != no_number;
    for (uint32_t o : known->second)
      if (itself || o != written) now[o] = no_number;
    known->second.assign(stays ? 1 : 0, written);
  };
  // What lies before the first of them and behind the last says nothing.
  const auto first = std::find(marked.begin(), marked.end(), 1) - marked.begin();
  const auto end = marked.rend() - std::find(marked.rbegin(), marked.rend(), 1);
  for (auto i = static_cast<uint32_t>(first); i < static_cast<uint32_t>(end); i++) {
    const Launch& l = list.launches[i];
    if (!marked[i]) {
      for (const auto* written : {&l.outputs, &l.raised})
        for (uint32_t o : *written)
          if (o != no_number) forget(o, true);
      continue;
    }
    launches.push_back(i);
    auto& numbered = numbers.emplace_back();
    for (uint32_t o : l.inputs) numbered.push_back(value_of(o, false));
    for (uint32_t o : l.outputs) {
      if (o != no_number) forget(o, false);
      numbered.push_back(value_of(o, true));
    }
  }
  for (size_t n = 0; n < launches.size(); n++) {
    const Launch& l = list.launches[launches[n]];
    pg_node node{};
    node.size = PG_SIZE(pg_node, attrs_offset);
    node.in_place = l.signature->in_place;
    node.op = l.signature->op->info;
    node.input_count = static_cast<uint32_t>(l.inputs.size());
    node.output_count = static_cast<uint32_t>(l.outputs.size());
    node.inputs = numbers[n].data();
    node.groups = l.signature->groups.data();
    node.outputs = numbers[n].data() + l.inputs.size();
    node.attrs = l.attrs.data();
    node.attrs_offset = attr_bytes;
    attr_bytes += aligned(l.attrs.size());
    nodes.push_back(node);
  }
  for (const pg_node& node : nodes) node_pointers.push_back(&node);
  for (uint32_t v = 0; v < operands.size(); v++) now[operands[v]] = v;  // whatever others wrote there later
  for (uint32_t v = 0; v < operands.size(); v++) {
    values.push_back(&list.operands[operands[v]].tensor->meta->view);
    constant.push_back(list.operands[operands[v]].constant);
    last.push_back(now[operands[v]]);
    if (!made[v]) inputs.push_back(v);
  }
  raw.size = PG_SIZE(pg_region, constant);
  raw.flags = list.frozen ? PG_REGION_FROZEN : 0;
  raw.constant = list.frozen ? constant.data() : nullptr;
  raw.device = device.ordinal;
  raw.value_count = static_cast<uint32_t>(values.size());
  raw.node_count = static_cast<uint32_t>(nodes.size());
  raw.values = values.data();
  raw.nodes = node_pointers.data();
  raw.input_count = static_cast<uint32_t>(inputs.size());
  raw.inputs = inputs.data();
}

RegionKernel::~RegionKernel() {
  if (prepared != nullptr && by->opened) by->compiler->release(by->self, prepared);
}

// Where an output may come to lie: where its operand is an input's, for it is written in place; else where an input of
// the same description lies that shares its memory with nobody.
static uint64_t overwrites_of(const Launches& list, const RegionView& view, uint32_t output) {
  const uint32_t to = view.operands[output];
  auto place = [&](uint32_t value) -> const MemoryPlace& { return list.operands[view.operands[value]].place; };
  uint64_t mask = 0;
  for (size_t i = 0; i < view.inputs.size() && i < 64; i++) {
    const uint32_t from = view.operands[view.inputs[i]];
    if (from == to) return uint64_t{1} << i;
    const Meta& meta = *list.operands[from].tensor->meta;
    bool alone = !place(view.inputs[i]).outside && place(view.inputs[i]).offset == 0 && meta.dense &&
                 &meta == list.operands[to].tensor->meta.get() && !place(output).outside && place(output).offset == 0;
    for (uint32_t v = 0; alone && v < view.operands.size(); v++)
      alone = v == view.inputs[i] || place(v).outside || place(v).base != place(view.inputs[i]).base;
    if (alone) mask |= uint64_t{1} << i;
  }
  return mask;
}

RegionKernel* Region::kernel_for(const Launches& list, const std::vector<uint8_t>& outlives) {
  std::vector<uint32_t> wanted;
  for (size_t i = 0; i < finals.size(); i++) {
    const MemoryPlace& place = list.operands[view.operands[finals[i]]].place;
    if (needed[i] || (!place.outside && outlives[place.base])) wanted.push_back(finals[i]);
  }
  for (auto k = kernels.begin(); k != kernels.end(); ++k) {
    if ((*k)->outputs != wanted) continue;
    std::rotate(kernels.begin(), k, k + 1);
    return kernels.front().get();
  }
  auto made = std::make_unique<RegionKernel>();
  made->by = by;
  made->outputs = std::move(wanted);
  for (uint32_t v : view.inputs) {
    made->input_views.push_back(view.values[v]);
    made->input_operands.push_back(view.operands[v]);
  }
  for (uint32_t v : made->outputs) {
    made->output_views.push_back(view.values[v]);
    made->output_operands.push_back(view.operands[v]);
    made->overwrites.push_back(overwrites_of(list, view, v));
  }
  if (!made->outputs.empty() && (view.inputs.size() <= most_inputs || is_long)) {
    pg_region piece = view.raw;
    piece.output_count = static_cast<uint32_t>(made->outputs.size());
    piece.outputs = made->outputs.data();
    piece.overwrites = made->overwrites.data();
    pg_prepared prepared{};
    prepared.size = PG_SIZE(pg_prepared, pack_bytes);
    pg_error error = pg::make_error();
    const int32_t code = by->compiler->compile(by->self, &piece, &prepared, &error);
    if (code == PG_OK) {
      made->prepared = prepared.kernel;
      made->workspace = prepared.workspace;
      if (by->compiler->pack != nullptr) made->pack_bytes = prepared.pack_bytes[0];
      if (by->compiler->describe != nullptr) made->description = by->compiler->describe(by->self, made->prepared);
    } else if (code != PG_E_NOT_SUPPORTED) {
      write_log(PG_LOG_WARNING, "plugin '" + by->name + "': compile: " + pg::message_of(code, error));
    }
  }
  if (kernels.size() == most_kernels) kernels.pop_back();
  kernels.insert(kernels.begin(), std::move(made));
  return kernels.front().get();
}

bool RegionKernel::is_packed(const Launches& list) const {
  if (!filled) return false;
  for (const Source& s : sources) {
    const Tensor& x = *list.operands[s.operand].tensor;
    if (x.storage.get() != s.storage.get() || x.offset != s.offset ||
        s.storage->version.load(std::memory_order_relaxed) != s.version)
      return false;
  }
  return true;
}

void RegionKernel::pack(const Launches& list, Device& device, const pg_launch& launch) {
  if (!packed) packed = allocate(device, pack_bytes);
  filled = false;
  sources.clear();
  use_on(*packed, device.synchronous ? 0 : ambient().stream, true);
  pg_error error = pg::make_error();
  pg::check(by->compiler->pack(by->self, prepared, &launch, packed->address(), &error), error);
  for (uint32_t o : input_operands) {
    if (!list.operands[o].constant) continue;
    const Tensor& x = *list.operands[o].tensor;
    sources.push_back({o, x.storage, x.storage->version.load(std::memory_order_relaxed), x.offset});
  }
  filled = true;
}

void Region::read_numbers(const Launches& list) {
  for (size_t n = 0; n < view.launches.size(); n++) {
    const Launch& l = list.launches[view.launches[n]];
    const uint32_t fixed = view.nodes[n].op->static_size;
    if (l.attrs.size() > fixed)
      std::memcpy(attrs.data() + view.nodes[n].attrs_offset + fixed, l.attrs.data() + fixed, l.attrs.size() - fixed);
  }
}

void Region::launch(Launches& list, RegionKernel& kernel) {
  read_numbers(list);
  SmallVector<pg_address, 8> in(kernel.input_operands.size()), out(kernel.output_operands.size());
  const uint32_t stream = device->synchronous ? 0 : ambient().stream;
  auto address = [&](uint32_t operand, bool writes) {
    Tensor& x = *list.operands[operand].tensor;
    if (!device->synchronous) use_on(*x.storage, stream, writes);
    return present_address(x);
  };
  for (size_t i = 0; i < in.size(); i++) in[i] = address(kernel.input_operands[i], false);
  for (size_t i = 0; i < out.size(); i++) out[i] = address(kernel.output_operands[i], true);
  RegionWorkspace scratch{*device};
  pg_launch launch{};
  launch.size = PG_SIZE(pg_launch, extents);
  launch.device = device->ordinal;
  auto turn = device->lock(stream);
  launch.stream = device->stream(stream);
  launch.sequence = device->sequence(names, ambient().origin);
  launch.input_count = static_cast<uint32_t>(in.size());
  launch.output_count = static_cast<uint32_t>(out.size());
  launch.inputs = kernel.input_views.data();
  launch.outputs = kernel.output_views.data();
  launch.input = in.data();
  launch.output = out.data();
  launch.attrs = attrs.data();
  pg_address packed[kPackedInputs] = {};
  if (kernel.pack_bytes > 0) {
    if (!kernel.is_packed(list)) kernel.pack(list, *device, launch);
    packed[0] = kernel.packed->address();
    launch.packed = packed;
    if (!device->synchronous) use_on(*kernel.packed, stream, false);
  }
  if (ambient().capture != nullptr) [[unlikely]] {
    if (kernel.workspace > 0) launch.workspace = ambient().capture->workspace(kernel.workspace);
    return ambient().capture->launch(*this, kernel, launch);
  }
  if (kernel.workspace > 0) {
    scratch.block = device->allocator.alloc(kernel.workspace, stream);
    launch.workspace = {scratch.block->buffer, scratch.block->offset};
  }
  pg_error error = pg::make_error();
  ProfileSpan span;
  const int32_t code = kernel.by->compiler->launch(kernel.by->self, kernel.prepared, &launch, &error);
  if (code != PG_OK) {
    if ((error.flags & PG_ERROR_DEVICE_LOST) != 0) device->fail(code, error, names);
    error.where[sizeof error.where - 1] = '\0';
    const std::string where = error.where[0] != '\0' ? error.where : names;
    throw pg::Error(code, where + ": " + pg::message_of(code, error), error.native, error.flags);
  }
  if (span.on()) [[unlikely]] {
    uint64_t bytes = 0;
    for (const auto* touched : {&kernel.input_operands, &kernel.output_operands})
      for (uint32_t o : *touched) bytes += static_cast<uint64_t>(list.operands[o].tensor->meta->bytes);
    span.done(device->synchronous ? ProfileKind::kernel : ProfileKind::launch, "region", device->id, bytes, names,
              launch.sequence);
  }
}

}  // namespace perigee
