// SPDX-License-Identifier: Apache-2.0
// Which launches of a list may be one: what compilers claim, cut where moving a launch back to the last one of its
// piece would change what is read.
#include <algorithm>
#include <map>

#include "base/log.hpp"
#include "base/profile.hpp"
#include "fuse/region.hpp"

namespace perigee {
namespace {

constexpr size_t most_nodes = 48;  // of a region: what is compiled for each set of outputs stays small

using Memory = std::pair<bool, uint32_t>;  // outside, and the slot or tensor

struct Access {
  uint32_t operand = no_number;  // the one by which a region reaches it
  bool read = false, written = false;
};

Memory memory_of(const Launches& list, uint32_t operand) {
  const MemoryPlace& place = list.operands[operand].place;
  return {place.outside, place.base};
}

// Calls f(operand, whether it is written).
template <class F>
void each_access(const Launch& l, const F& f) {
  for (uint32_t o : l.inputs)
    if (o != no_number) f(o, false);
  for (const auto* written : {&l.outputs, &l.raised})
    for (uint32_t o : *written)
      if (o != no_number) f(o, true);
}

// Whether a launch computes its results from its inputs, and nothing else happens.
bool is_node(const Launches& list, const Launch& l, const Device& device, const LoadedPlugin& compiler) {
  if (!l.signature || l.signature->device != &device) return false;
  const Signature& s = *l.signature;
  if (s.how == How::kernel) {
    if (s.op->info->effect != PG_EFFECT_NONE || s.writes || s.dynamic || (s.packs && !list.frozen) ||
        !s.densify.empty() || s.kernel.plugin != &compiler)
      return false;
  } else if (s.how != How::cast && s.how != How::clone) {
    return false;
  }
  if (l.outputs.empty() || l.outputs[0] == no_number) return false;
  if (s.in_place && (l.inputs.empty() || l.inputs[0] != l.outputs[0])) return false;
  for (size_t k = 0; k < l.outputs.size(); k++) {
    if (l.outputs[k] == no_number) continue;
    if (list.operands[l.outputs[k]].tensor->meta->numel == 0) return false;
    for (size_t j = 0; j < k; j++)
      if (l.outputs[j] != no_number && memory_of(list, l.outputs[j]) == memory_of(list, l.outputs[k])) return false;
  }
  for (size_t i = 0; i < l.inputs.size(); i++) {
    if (l.inputs[i] == no_number) continue;  // absent, or only described
    for (uint32_t out : l.outputs)
      if (out != no_number && l.inputs[i] != out && memory_of(list, l.inputs[i]) == memory_of(list, out)) return false;
  }
  return true;
}

// Launches that are gathered, to run where the last of them stands.
struct Open {
  uint32_t cluster = 0;
  bool is_long = false;
  const LoadedPlugin* by = nullptr;
  std::vector<uint32_t> launches;
  std::map<Memory, Access> memory;
  bool writes_outside = false;

  bool takes(const Launches& list, const Launch& l) const {
    bool fits = is_long || launches.size() < most_nodes;
    each_access(l, [&](uint32_t o, bool writes) {
      auto known = memory.find(memory_of(list, o));
      if (known == memory.end()) return;
      // Seen in another way, what is written must have happened everywhere before it is read.
      if (known->second.operand != o && (writes || known->second.written)) fits = false;
    });
    return fits;
  }
  void add(const Launches& list, uint32_t launch) {
    launches.push_back(launch);
    each_access(list.launches[launch], [&](uint32_t o, bool writes) {
      auto [it, fresh] = memory.try_emplace(memory_of(list, o), Access{o, false, false});
      if (!fresh && it->second.operand != o) it->second.operand = no_number;  // in several ways
      (writes ? it->second.written : it->second.read) = true;
      writes_outside |= writes && list.operands[o].place.outside;
    });
  }
  // Whether these may not run behind a launch that they came before.
  bool must_precede(const Launches& list, const Launch& l, bool may_fail) const {
    if (may_fail && writes_outside) return true;  // had it failed, the writes would be missed
    bool found = false;
    each_access(l, [&](uint32_t o, bool writes) {
      auto known = memory.find(memory_of(list, o));
      found |= known != memory.end() && (writes || known->second.written);
    });
    return found;
  }
};

struct Cluster {
  const LoadedPlugin* by = nullptr;
  bool is_long = false;
};

// By launch: a number for each cluster of any compiler, 0 for what nobody claims. Who is asked first wins.
void claim(const Launches& list, Device& device, std::vector<uint32_t>& clusters, std::vector<Cluster>& owners) {
  for (const LoadedPlugin* plugin : find_compilers(device.type)) {
    std::vector<uint8_t> offered(list.launches.size(), 0);
    for (size_t i = 0; i < offered.size(); i++)
      offered[i] = clusters[i] == 0 && is_node(list, list.launches[i], device, *plugin);
    RegionView view;
    view.draw(list, offered, device);
    if (view.nodes.size() < 2) continue;
    std::vector<uint32_t> claimed(view.nodes.size(), 0);
    pg_error error = pg::make_error();
    const int32_t code = plugin->compiler->claim(plugin->self, &view.raw, claimed.data(), &error);
    if (code != PG_OK) {
      write_log(PG_LOG_WARNING, "plugin '" + plugin->name + "': claim: " + pg::message_of(code, error));
      continue;
    }
    std::map<uint32_t, uint32_t> numbers;
    for (size_t n = 0; n < claimed.size(); n++) {
      if (claimed[n] == 0) continue;
      auto [it, fresh] = numbers.try_emplace(claimed[n], static_cast<uint32_t>(owners.size()));
      if (fresh) owners.push_back({plugin, (claimed[n] & PG_CLUSTER_LONG) != 0});
      clusters[view.launches[n]] = it->second;
    }
  }
}

// How often launches reach for memory.
using Touches = std::map<Memory, uint32_t>;

void count_touches(const Launches& list, const Launch& l, Touches& touches) {
  each_access(l, [&](uint32_t o, bool) { touches[memory_of(list, o)]++; });
}

std::unique_ptr<Region> make_region(const Launches& list, const Open& piece, const Touches& all) {
  auto made = std::make_unique<Region>();
  Region& r = *made;
  Device& device = *list.launches[piece.launches.front()].signature->device;
  r.by = piece.by;
  r.is_long = piece.is_long;
  r.device = &device;
  r.end = piece.launches.back();
  std::vector<uint8_t> mine(list.launches.size(), 0);
  for (uint32_t i : piece.launches) mine[i] = 1;
  r.view.draw(list, mine, device);
  Touches own;
  for (uint32_t i : piece.launches) count_touches(list, list.launches[i], own);
  for (uint32_t v = 0; v < r.view.operands.size(); v++) {
    const bool input = std::find(r.view.inputs.begin(), r.view.inputs.end(), v) != r.view.inputs.end();
    if (input || r.view.last[v] != v) continue;
    const Memory memory = memory_of(list, r.view.operands[v]);
    r.finals.push_back(v);
    r.needed.push_back(memory.first || all.at(memory) > own.at(memory));  // others touch it
  }
  r.attrs.assign(r.view.attr_bytes, 0);
  std::string names;
  for (size_t n = 0; n < r.view.nodes.size(); n++) {
    const Launch& l = list.launches[r.view.launches[n]];
    std::copy(l.attrs.begin(), l.attrs.end(), r.attrs.begin() + static_cast<ptrdiff_t>(r.view.nodes[n].attrs_offset));
    names += (names.empty() ? "" : " ") + std::string(r.view.nodes[n].op->name);
    r.raised.insert(r.raised.end(), l.raised.begin(), l.raised.end());
  }
  r.names = interned(names);
  return made;
}

}  // namespace

std::vector<std::unique_ptr<Region>> cut_regions(const Launches& list) {
  std::vector<std::unique_ptr<Region>> regions;
  std::vector<Device*> devices;
  for (const Launch& l : list.launches)
    if (l.signature && std::find(devices.begin(), devices.end(), l.signature->device) == devices.end())
      devices.push_back(l.signature->device);
  std::vector<uint32_t> clusters(list.launches.size(), 0);
  std::vector<Cluster> owners(1);
  for (Device* device : devices) claim(list, *device, clusters, owners);
  Touches all;
  for (const Launch& l : list.launches) count_touches(list, l, all);
  std::vector<Open> open;
  auto close = [&](const Open& piece) {
    if (piece.launches.size() > 1) regions.push_back(make_region(list, piece, all));
  };
  for (uint32_t i = 0; i < list.launches.size(); i++) {
    const Launch& l = list.launches[i];
    const uint32_t cluster = clusters[i];
    bool joined = false;
    std::erase_if(open, [&](Open& piece) {
      if (cluster != 0 && piece.cluster == cluster && piece.takes(list, l)) {
        joined = true;
        return false;
      }
      const bool ends = (cluster != 0 && piece.cluster == cluster) || piece.must_precede(list, l, cluster == 0);
      if (ends) close(piece);
      return ends;
    });
    if (cluster == 0) continue;
    if (!joined) open.push_back({cluster, owners[cluster].is_long, owners[cluster].by, {}, {}, false});
    for (Open& piece : open)
      if (piece.cluster == cluster) piece.add(list, i);
  }
  for (const Open& piece : open) close(piece);
  return regions;
}

}  // namespace perigee
