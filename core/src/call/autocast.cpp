// SPDX-License-Identifier: Apache-2.0
#include "call/autocast.hpp"

#include <mutex>

#include "call/promote.hpp"
#include "graph/graph.hpp"
#include "perigee/plugin.h"
#include "tensor/kept.hpp"
#include "tensor/watch.hpp"

namespace perigee {
namespace {

bool is_plain_float(uint32_t dtype) { return dtype == PG_F32 || dtype == PG_F16 || dtype == PG_BF16; }

// Where the call is likely to run: placement comes later, and casts take place where the inputs are.
const Device* likely_device(Tensor* const* inputs, uint32_t count) {
  if (ambient().device >= 0) return &device(ambient().device);
  const Device* found = nullptr;
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i] == nullptr) continue;
    if (inputs[i]->meta->rank > 0) return inputs[i]->device;
    if (found == nullptr) found = inputs[i]->device;
  }
  return found;
}

bool is_read(uint32_t flags) { return (flags & (PG_INPUT_META | PG_INPUT_MUTATES)) == 0; }

// The dtype that the class asks for; 0: none. Inputs of other dtypes than 16 and 32 bit floats keep an operator as it
// is.
uint32_t wanted_dtype(uint32_t numeric, uint32_t low, Tensor* const* inputs, uint32_t count) {
  if (numeric == PG_NUMERIC_FLOAT32) return PG_F32;
  uint32_t widest = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i] == nullptr) continue;
    uint32_t dtype = inputs[i]->meta->dtype;
    if (!is_differentiable(dtype)) continue;
    if (!is_plain_float(dtype)) return 0;
    widest = promote_dtypes(widest, dtype);
  }
  return numeric == PG_NUMERIC_LOWER ? low : numeric == PG_NUMERIC_WIDEST ? widest : 0;
}

bool is_parameter(const Tensor& x) { return x.node && x.node->kind == NodeKind::leaf; }

TensorRef cast_input(Tensor& x, uint32_t dtype, Graph* graph) {
  if (graph == nullptr || x.is_graph()) return emit_cast(x, dtype);
  return emit_cast(*graph_capture(*graph, x), dtype);
}

// The kept cast of `x`, if there is one. Lets go of those of an older version, so that training does not hold what an
// evaluation before it has cast.
TensorRef find_kept(const Tensor& x, uint32_t dtype, uint64_t version) {
  std::vector<Kept::Cast> stale;  // let go of outside of the lock
  std::lock_guard guard(kept_mutex());
  Kept* kept = x.storage->kept;
  if (kept == nullptr) return nullptr;
  if (kept->cast_version != version) {
    stale.swap(kept->casts);
    kept->cast_version = version;
  }
  for (Kept::Cast& c : kept->casts)
    if (c.dtype == dtype && c.meta.get() == x.meta.get() && c.offset == x.offset) return c.cast;
  return nullptr;
}

void keep_cast(const Tensor& x, uint32_t dtype, uint64_t version, const TensorRef& cast) {
  constexpr size_t most = 8;  // a weight and a few views of it
  std::lock_guard guard(kept_mutex());
  Kept& kept = kept_of(*x.storage);
  if (kept.casts.empty()) kept.cast_version = version;
  if (kept.cast_version == version && kept.casts.size() < most) kept.casts.push_back({dtype, x.meta, x.offset, cast});
}

}  // namespace

TensorRef CastCache::get(Tensor& x, uint32_t dtype, Graph* graph) {
  uint64_t version = x.is_graph() ? x.value : x.storage->version.load(std::memory_order_relaxed);
  const bool needed = ambient().grad_enabled, plain = graph == nullptr && !x.is_graph();
  if (plain && !needed) {
    if (TensorRef kept = find_kept(x, dtype, version)) {
      if (ambient().launches != nullptr) ambient().launches->kept(x, *kept);
      return kept;
    }
  }
  Entry& e = entries_[{&x, dtype, graph}];
  if (e.cast && e.storage == x.storage.get() && e.leaf == x.node.get() && e.version == version &&
      e.source->meta.get() == x.meta.get() && (e.recorded || !needed))
    return e.cast;
  TensorRef cast = cast_input(x, dtype, graph);
  if (plain && !needed) keep_cast(x, dtype, version, cast);
  e = {TensorRef::share(&x), cast, x.storage.get(), x.node.get(), version, static_cast<bool>(cast->node)};
  return cast;
}

TensorRef kept_cast(Tensor& x, uint32_t dtype) {
  const uint64_t version = x.storage->version.load(std::memory_order_relaxed);
  if (TensorRef kept = find_kept(x, dtype, version)) return kept;
  Scoped<ItemLog*> unheard(ambient().items, nullptr);
  Scoped<LaunchLog*> unwatched(ambient().launches, nullptr);
  Scoped<bool> no_grad(ambient().grad_enabled, false);
  TensorRef cast = cast_input(x, dtype, nullptr);
  keep_cast(x, dtype, version, cast);
  return cast;
}

uint32_t Autocast::dtype_on(const Device& device) const {
  uint32_t found = otherwise;
  for (auto& [type, dtype] : by_type) {
    if (type == device.type) return dtype;
    if (device.accelerator && type == "gpu") found = dtype;
  }
  return found;
}

AutocastRef make_autocast(const std::string& type, uint32_t dtype) {
  auto scope = AutocastRef::adopt(new Autocast());
  if (const Autocast* outer = ambient().autocast) {
    scope->otherwise = outer->otherwise;
    scope->by_type = outer->by_type;
    scope->cache = outer->cache;
  } else {
    scope->cache = std::make_shared<CastCache>();
  }
  if (type.empty()) {
    scope->otherwise = dtype;
    scope->by_type.clear();
    return scope;
  }
  if (type == "gpu") std::erase_if(scope->by_type, [](auto& rule) { return rule.first != "cpu"; });
  std::erase_if(scope->by_type, [&](auto& rule) { return rule.first == type; });
  scope->by_type.emplace_back(type, dtype);
  return scope;
}

bool autocast_casts(const Op& op, Tensor* const* inputs, uint32_t count, uint32_t flags) {
  const uint32_t numeric = op.info->numeric;
  const Autocast* scope = ambient().autocast;
  if (scope == nullptr || numeric == PG_NUMERIC_KEEP || (flags & emit_in_place)) return false;
  const Device* place = likely_device(inputs, count);
  uint32_t low = place == nullptr ? 0 : scope->dtype_on(*place);
  if (low == 0) return false;
  uint32_t wanted = wanted_dtype(numeric, low, inputs, count);
  for (uint32_t i = 0; i < count; i++)
    if (wanted != 0 && inputs[i] != nullptr && is_plain_float(inputs[i]->meta->dtype) &&
        inputs[i]->meta->dtype != wanted)
      return true;
  return false;
}

void autocast(const Op& op, SmallVector<Tensor*, 8>& inputs, const uint32_t* groups, SmallVector<TensorRef, 4>& keep) {
  auto count = static_cast<uint32_t>(inputs.size());
  const Autocast& scope = *ambient().autocast;
  uint32_t low = scope.dtype_on(*likely_device(inputs.data(), count));
  uint32_t wanted = wanted_dtype(op.info->numeric, low, inputs.data(), count);
  Graph* graph = nullptr;
  for (Tensor* x : inputs)
    if (x != nullptr && x->is_graph()) graph = x->graph.get();
  uint32_t declared = 0, left = groups != nullptr ? groups[0] : 1;
  for (Tensor*& x : inputs) {
    while (left == 0) left = groups != nullptr ? groups[++declared] : (declared++, 1);
    left--;
    if (declared >= op.info->input_count) break;  // more than there are: said later
    if (x == nullptr || !is_plain_float(x->meta->dtype) || x->meta->dtype == wanted) continue;
    if (!is_read(op.info->inputs[declared]->flags)) continue;
    bool keeps = is_parameter(*x) && (x->is_graph() || x->storage) && wanted != PG_F32;
    keep.push_back(keeps ? scope.cache->get(*x, wanted, graph) : cast_input(*x, wanted, graph));
    x = keep.back().get();
  }
}

}  // namespace perigee
