// SPDX-License-Identifier: Apache-2.0
#include "call/signature.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fork.hpp"
#include "base/parallel.hpp"
#include "builder/rule_check.hpp"
#include "call/collective.hpp"
#include "tensor/order.hpp"

namespace perigee {
namespace {

// Of the process: those that were not looked for for longest go first. Each may hold a prepared kernel, of which
// oneDNN's take some 100 KB: where shapes vary without end this bounds the memory that no limit of a device sees.
constexpr size_t max_signatures = 4096;
constexpr size_t recent_slots = 1024;  // of a thread; a power of two

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 32);
}

struct Cache {
  using Order = std::list<SignatureRef>;
  std::mutex mutex;
  Order order;  // the one that was looked for last stands at the end
  std::unordered_multimap<uint64_t, Order::iterator> map;
  std::atomic<uint64_t> generation{0};
};
Cache& cache() {
  static Cache* instance = new Cache();  // outlives static destructors: calls may come after them
  return *instance;
}

std::atomic<bool> ended{false};  // plugins are closed

struct Recent {
  uint64_t generation = 0;
  SignatureRef slots[recent_slots];
};
// Never destroyed: releasing prepared kernels is the cache's business, which may be gone when a thread ends. The next
// thread takes over what one leaves: those of pipelines come and go.
constinit thread_local Recent* thread_recent __attribute__((tls_model("initial-exec"))) = nullptr;
struct Spare {
  std::mutex mutex;
  std::vector<Recent*> list;
};
Spare& spare() {
  static Spare* instance = new Spare();
  return *instance;
}
struct RecentOwner {
  RecentOwner() {
    std::lock_guard lock(spare().mutex);
    if (spare().list.empty()) spare().list.push_back(new Recent());
    thread_recent = spare().list.back();
    spare().list.pop_back();
  }
  ~RecentOwner() {
    if (is_forked()) return;  // the lock may be held by a thread that stayed in the parent
    std::lock_guard lock(spare().mutex);
    spare().list.push_back(std::exchange(thread_recent, nullptr));
  }
};
Recent& recent() {
  if (thread_recent == nullptr) [[unlikely]] {
    thread_local RecentOwner owner;
    if (thread_recent == nullptr) thread_recent = new Recent();  // a call at the very end of the thread
  }
  return *thread_recent;
}

// No thread's recent signatures are good any more: the next call of each comes to find_signature.
void outdate_recent() { cache().generation.fetch_add(1, std::memory_order_acq_rel); }

// ---- making one ----

struct Maker {
  const SignatureKey& key;
  Signature& s;

  std::string description() const {
    std::string text;
    for (uint32_t i = 0; i < key.input_count && i < 4; i++)
      if (key.inputs[i] != nullptr)
        text += (text.empty() ? "" : ", ") + std::string(pg::dtype_name(key.inputs[i]->meta->dtype)) + " " +
                shape_text(*key.inputs[i]->meta);
    if (text.empty() && !s.outputs.empty()) text = pg::dtype_name(s.outputs[0].meta->dtype);
    return text;
  }

  void plan_outputs() {
    const pg_op_info& info = *key.op->info;
    uint32_t total = output_total(*key.op, s.groups.data(), &s.visible);
    std::vector<pg_meta> metas(total);
    infer(*key.op, s.input_views.data(), key.input_count, s.groups.data(), key.attrs, false, metas.data(), total);
    s.outputs.resize(total);
    uint32_t flat = 0;
    for (uint32_t i = 0; i < info.output_count; i++) {
      uint32_t count = info.outputs[i]->flags & PG_OUTPUT_VARIADIC ? s.groups[info.outputs[i]->like] : 1;
      for (uint32_t k = 0; k < count; k++, flat++) {
        pg_meta& m = metas[flat];
        OutputPlan& plan = s.outputs[flat];
        if (info.traits & PG_OP_VIEW) check_view(*key.op, s.groups.data(), flat, m, s.inputs[0].get());
        bool view = (m.flags & PG_META_VIEW) != 0;
        if (m.flags & PG_META_COPY) s.how = How::reshape_copy;
        plan.meta = intern_meta(PG_DTYPE(m.dtype_code, m.dtype_bits), m.rank, m.shape, view ? m.stride : nullptr);
        plan.view_offset = view ? m.offset * pg::dtype_bytes(plan.meta->dtype) : 0;
        plan.dynamic = (info.outputs[i]->flags & PG_OUTPUT_DYNAMIC) != 0;
        s.dynamic |= plan.dynamic;
      }
    }
  }

  static void check_places(const Meta& target) {
    for (uint32_t i = 0; i < target.rank; i++)
      if (target.stride[i] == 0 && target.shape[i] > 1)
        pg::fail_argument("cannot write into an expanded tensor: several elements share one place; :clone() it first");
  }

  void check_writes() {
    uint32_t flat = 0;
    for (uint32_t i = 0; i < key.op->info->input_count; i++)
      for (uint32_t k = 0; k < s.groups[i]; k++, flat++)
        if (key.inputs[flat] != nullptr && s.mutates[i]) check_places(*key.inputs[flat]->meta);
  }

  // In place, output 0 is input 0 as it lies there.
  void plan_in_place() {
    if (!key.in_place) return;
    if (!(key.op->info->traits & PG_OP_IN_PLACE)) pg::fail_argument("has no in-place form");
    const Meta& target = *key.inputs[0]->meta;
    const Meta& result = *s.outputs[0].meta;
    if (target.dtype != result.dtype)
      pg::fail_argument(pg::format("the result is %s and cannot be written into a tensor of %s",
                                   pg::dtype_name(result.dtype), pg::dtype_name(target.dtype)));
    if (!same_shape(target, result))
      pg::fail_argument("the result has shape " + shape_text(result) + " and cannot be written into " +
                        shape_text(target));
    check_places(target);
    s.outputs[0].meta = key.inputs[0]->meta;
  }

  // ---- orders of axes ----

  // As results of elementwise operators lie: where the order is another than row-major, true.
  bool order_elementwise() {
    bool any = false;
    std::vector<const Meta*> operands;
    for (const MetaRef& x : s.inputs) operands.push_back(x.get());
    for (OutputPlan& o : s.outputs) {
      o.meta = meta_like_operands(o.meta, operands.data(), static_cast<uint32_t>(operands.size()));
      any |= !o.meta->contiguous;
    }
    return any;
  }
  // Others follow the first input that is dense in another order.
  bool order_like_input() {
    bool any = false;
    for (const MetaRef& x : s.inputs) {
      if (!x || !x->dense || x->contiguous) continue;
      const AxisOrder order = order_of(*x);
      for (OutputPlan& o : s.outputs) {
        if (o.meta->rank != x->rank || o.dynamic || o.meta->symbolic) continue;
        o.meta = ordered_meta(o.meta->dtype, o.meta->rank, o.meta->shape, order);
        any |= !o.meta->contiguous;
      }
      break;
    }
    return any;
  }
  // For a kernel that takes any order; false: there is none but row-major.
  bool order_outputs() {
    if (key.in_place) return ordered_ = s.inputs[0]->dense && !s.inputs[0]->contiguous;
    for (const OutputPlan& o : s.outputs) plain_.push_back(o.meta);
    return ordered_ = key.op->info->traits & PG_OP_ELEMENTWISE ? order_elementwise() : order_like_input();
  }
  void show_row_major() {
    for (size_t i = 0; i < plain_.size(); i++) s.outputs[i].meta = plain_[i];
    plain_.clear();
    ordered_ = false;
  }

  void choose_clone() {
    s.how = How::clone;
    if (key.op->format_offset == UINT32_MAX || key.in_place) return;
    int32_t choice;
    std::memcpy(&choice, static_cast<const uint8_t*>(key.attrs) + key.op->format_offset, sizeof choice);
    const auto format = static_cast<MemoryFormat>(choice);
    const Meta& x = *s.inputs[0];
    s.outputs[0].meta = format == MemoryFormat::preserve
                            ? keep_order(x, x.dtype)
                            : ordered_meta(x.dtype, x.rank, x.shape, order_of_format(format, x));
  }

  void choose() {
    switch (key.op->role) {
      case Role::clone: choose_clone(); return;
      case Role::cast:
        s.how = How::cast;
        if (!key.in_place) s.outputs[0].meta = keep_order(*s.inputs[0], s.outputs[0].meta->dtype);
        return;
      case Role::copy: s.how = How::copy; return;
      case Role::fill: s.how = How::fill; return;
      case Role::transfer: s.how = How::transfer; return;
      default: break;
    }
    if (is_between_processes(*key.op, key.attrs)) {
      s.between = plan_collective(*key.op, key.attrs, key.input_count, *s.inputs[0], *s.outputs[0].meta);
      s.how = How::collective;
      return;
    }
    if (key.op->info->traits & PG_OP_VIEW) {
      if (s.how != How::reshape_copy) s.how = How::view;
      return;
    }
    choose_kernel();
  }

  // In a lean call: what this kernel can do without.
  void leave_out(const Kernel& k) {
    if (!key.lean) return;
    const pg_op_info& info = *key.op->info;
    uint32_t flat = 0;
    for (uint32_t i = 0; i < info.output_count; i++) {
      bool absent = (info.outputs[i]->flags & PG_OUTPUT_HIDDEN) && i < 64 && (k.info->spares >> i & 1u);
      uint32_t count = info.outputs[i]->flags & PG_OUTPUT_VARIADIC ? s.groups[info.outputs[i]->like] : 1;
      for (uint32_t end = flat + count; flat < end; flat++) s.outputs[flat].absent = absent;
    }
  }

  void choose_kernel() {
    std::string reasons;
    for (const Kernel& k : find_kernels(*key.op, s.device->type)) {
      if ((k.info->flags & PG_KERNEL_VARIES) && is_deterministic()) {
        reasons += (reasons.empty() ? "" : "; ") + k.plugin->name +
                   "'s results vary with the order of threads, which config.set{deterministic=true} forbids";
        continue;
      }
      leave_out(k);
      if ((k.info->flags & PG_KERNEL_ANY_ORDER) != 0 && order_outputs() && taken(k, reasons)) return;
      show_row_major();
      if (taken(k, reasons)) return;
    }
    if (key.in_place) {  // what cannot be computed apart either says so then
      s.how = How::apart;
      return;
    }
    if (key.op->info->decompose != nullptr) {
      s.how = How::decompose;
      return;
    }
    if (key.op->role == Role::zeros_like || key.op->role == Role::ones_like) {
      s.how = How::fill;
      s.fill = key.op->role == Role::ones_like ? 1 : 0;
      if (!key.in_place) s.outputs[0].meta = keep_order(*s.inputs[0], s.outputs[0].meta->dtype);
      return;
    }
    std::string text = "no kernel for " + description() + " on " + s.device->name;
    if (!reasons.empty()) text += " (" + reasons + ")";
    std::string places = kernel_places(*key.op, s.device->type);
    pg::fail(PG_E_NOT_SUPPORTED, text + (places.empty() ? "; no device has one" : "; there are kernels on " + places));
  }

  // Whether the kernel takes the call, with strided inputs made dense if need be; then it is prepared.
  bool taken(const Kernel& k, std::string& reasons) {
    const bool yes = supported(k, reasons) || (densify_inputs(kDensifyRead) && supported(k, reasons)) ||
                     (densify_inputs(kDensifyWrite) && supported(k, reasons));
    if (yes) {
      prepare(k);
    } else {
      show_as_given();
    }
    return yes;
  }

  // What an input is described as once it is dense: where the outputs have an order of their own, in that order.
  MetaRef dense_input(const Meta& x) const {
    if (ordered_)
      for (const OutputPlan& o : s.outputs)
        if (!o.meta->contiguous && o.meta->rank >= x.rank)
          return ordered_meta(x.dtype, x.rank, x.shape, order_of(*o.meta));
    return dense_meta(x, x.dtype);
  }

  // Shows strided inputs as if they were dense, those that are written to at the second attempt; false when that
  // changes nothing.
  bool densify_inputs(uint8_t attempt) {
    bool any = false;
    show_as_given();
    s.densify.assign(key.input_count, 0);
    s.dense_metas.assign(key.input_count, MetaRef());
    uint32_t flat = 0;
    for (uint32_t i = 0; i < key.op->info->input_count; i++) {
      for (uint32_t k = 0; k < s.groups[i]; k++, flat++) {
        Tensor* x = key.inputs[flat];
        if (x == nullptr || (!ordered_ && x->meta->contiguous)) continue;
        if ((key.op->info->inputs[i]->flags & PG_INPUT_META) || (key.in_place && flat == 0)) continue;
        const uint8_t wanted = s.mutates[i] ? kDensifyWrite : kDensifyRead;
        if (wanted > attempt) continue;
        MetaRef dense = dense_input(*x->meta);
        if (dense.get() == x->meta.get()) continue;
        s.input_views[flat] = &dense->view;
        s.dense_metas[flat] = std::move(dense);
        s.densify[flat] = wanted;
        any |= wanted == attempt;
      }
    }
    if (!any) show_as_given();
    return any;
  }
  void show_as_given() {
    for (uint32_t i = 0; i < key.input_count && !s.densify.empty(); i++)
      if (s.densify[i] != 0) s.input_views[i] = &key.inputs[i]->meta->view;
    s.densify.clear();
    s.dense_metas.clear();
  }

  pg_call call() {
    s.output_views.clear();
    for (OutputPlan& o : s.outputs) s.output_views.push_back(o.absent ? nullptr : &o.meta->view);
    pg_call c{};
    c.size = PG_SIZE(pg_call, attrs);
    c.device = s.device->ordinal;
    c.op = key.op->info;
    c.input_count = key.input_count;
    c.output_count = static_cast<uint32_t>(s.outputs.size());
    c.inputs = s.input_views.data();
    c.groups = s.groups.data();
    c.outputs = s.output_views.data();
    c.attrs = key.attrs;
    return c;
  }

  bool supported(const Kernel& k, std::string& reasons) {
    pg_error why = pg::make_error();
    pg_call c = call();
    if (k.table->supports(k.self, k.index, &c, &why) == PG_OK) return true;
    std::string reason = why.message[0] != '\0' ? why.message : "refused without a reason";
    if (reasons.find(reason) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + reason;
    return false;
  }

  void prepare(const Kernel& k) {
    if (probing_) return;
    pg_error error = pg::make_error();
    pg_call c = call();
    pg_prepared p{};
    p.size = PG_SIZE(pg_prepared, pack_bytes);
    pg::check(k.table->prepare(k.self, k.index, &c, &p, &error), error);
    s.kernel = k;
    s.prepared = p.kernel;
    s.workspace = p.workspace;
    if (k.table->pack == nullptr) return;
    for (uint32_t i = 0; i < 8 && i < key.op->info->input_count; i++) {
      s.pack_bytes[i] = p.pack_bytes[i];
      s.packs |= p.pack_bytes[i] != 0;
    }
  }

  std::vector<MetaRef> plain_;  // the outputs, row-major, while they are shown in another order
  bool ordered_ = false;        // they are
  bool probing_ = false;        // whether there is a kernel is all that is asked
};

void describe_call(Signature& s, const SignatureKey& key) {
  const pg_op_info& info = *key.op->info;
  s.op = key.op;
  s.device = key.device;
  s.in_place = key.in_place;
  s.lean = key.lean;
  for (uint32_t i = 0; i < key.input_count; i++) {
    s.inputs.push_back(key.inputs[i] != nullptr ? key.inputs[i]->meta : MetaRef());
    s.input_views.push_back(key.inputs[i] != nullptr ? &key.inputs[i]->meta->view : nullptr);
  }
  for (uint32_t i = 0; i < info.input_count; i++) {
    s.groups.push_back(key.groups != nullptr ? key.groups[i] : 1);
    s.mutates.push_back(key.op->mutates(i, key.attrs));
    s.writes |= s.mutates[i] != 0;
  }
  auto* bytes = static_cast<const uint8_t*>(key.attrs);
  s.attrs.assign(bytes, bytes + info.static_size);
}

SignatureRef make_signature(const SignatureKey& key, uint64_t hash) {
  auto made = SignatureRef::adopt(new Signature());
  Signature& s = *made;
  const pg_op_info& info = *key.op->info;
  describe_call(s, key);
  s.hash = hash;
  Maker maker{key, s, {}, false, false};
  maker.plan_outputs();
  maker.plan_in_place();
  if (s.writes) maker.check_writes();
  maker.choose();
  s.plain = s.how == How::kernel && s.device->synchronous && !s.in_place && !s.writes && !s.dynamic && !s.packs &&
            s.densify.empty() && info.effect != PG_EFFECT_RANDOM && key.input_count <= Signature::plain_inputs &&
            s.outputs.size() <= Signature::plain_outputs;
  if (s.plain) s.stream = s.device->stream(0);
  return made;
}

}  // namespace

bool has_kernel(const SignatureKey& key) {
  Signature s;
  describe_call(s, key);
  Maker maker{key, s, {}, false, true};
  maker.plan_outputs();
  try {
    maker.choose();
  } catch (const pg::Error& e) {
    if (e.code == PG_E_NOT_SUPPORTED) return false;
    throw;
  }
  return true;
}

Signature::Signature() = default;
Signature::~Signature() {
  if (prepared != nullptr && !ended.load(std::memory_order_acquire) && kernel.table->release != nullptr)
    kernel.table->release(kernel.self, kernel.index, prepared);
}

bool is_lean(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups, uint32_t output_count) {
  if (!op.hides) return false;
  uint32_t visible = op.visible_outputs;
  if (op.variadic && groups != nullptr) output_total(op, groups, &visible);
  if (output_count > visible) return false;
  if (!ambient().grad_enabled || (op.info->traits & PG_OP_NO_GRAD)) return true;
  for (uint32_t i = 0; i < input_count; i++)  // more than wants_tape asks: it passes over some
    if (inputs[i] != nullptr && needs_gradient(*inputs[i])) return false;
  return true;
}

uint64_t hash_key(const SignatureKey& key) {
  uint64_t h = mix(reinterpret_cast<uintptr_t>(key.op),
                   reinterpret_cast<uintptr_t>(key.device) + key.in_place + (key.lean ? 2 : 0));
  for (uint32_t i = 0; i < key.input_count; i++)
    h = mix(h, key.inputs[i] != nullptr ? reinterpret_cast<uintptr_t>(key.inputs[i]->meta.get()) : 1);
  const pg_op_info& info = *key.op->info;
  if (key.op->variadic)  // without groups each has one tensor
    for (uint32_t i = 0; i < info.input_count; i++) h = mix(h, key.groups != nullptr ? key.groups[i] : 1);
  auto* bytes = static_cast<const uint8_t*>(key.attrs);
  uint32_t i = 0;
  for (; i + 8 <= info.static_size; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    h = mix(h, word);
  }
  for (; i < info.static_size; i++) h = mix(h, bytes[i]);
  return h;
}

bool matches(const Signature& s, const SignatureKey& key, uint64_t hash) {
  if (s.hash != hash || s.op != key.op || s.device != key.device || s.in_place != key.in_place || s.lean != key.lean ||
      s.inputs.size() != key.input_count)
    return false;
  for (uint32_t i = 0; i < key.input_count; i++)
    if (s.inputs[i].get() != (key.inputs[i] != nullptr ? key.inputs[i]->meta.get() : nullptr)) return false;
  if (key.op->variadic)
    for (size_t i = 0; i < s.groups.size(); i++)
      if (s.groups[i] != (key.groups != nullptr ? key.groups[i] : 1)) return false;
  return s.attrs.empty() || std::memcmp(s.attrs.data(), key.attrs, s.attrs.size()) == 0;
}

Signature* recent_signature(const SignatureKey& key, uint64_t hash) {
  Recent& r = recent();
  Signature* s = r.slots[hash & (recent_slots - 1)].get();
  if (s == nullptr || r.generation != cache().generation.load(std::memory_order_acquire)) return nullptr;
  return matches(*s, key, hash) ? s : nullptr;
}

SignatureRef find_signature(const SignatureKey& key, uint64_t hash) {
  Cache& c = cache();
  const uint64_t generation = c.generation.load(std::memory_order_acquire);
  SignatureRef found;
  {
    std::lock_guard lock(c.mutex);
    auto [begin, end] = c.map.equal_range(hash);
    for (auto it = begin; it != end && !found; ++it) {
      if (!matches(**it->second, key, hash)) continue;
      found = *it->second;
      c.order.splice(c.order.end(), c.order, it->second);
    }
  }
  if (!found) {
    watch_forks(outdate_recent);
    found = make_signature(key, hash);
    std::lock_guard lock(c.mutex);
    // Kernels came meanwhile, perhaps because this call looked for them: it is served, and the next decides anew.
    if (c.generation.load(std::memory_order_acquire) != generation) return found;
    if (c.map.size() >= max_signatures) {
      auto old = c.order.begin();
      auto [begin, end] = c.map.equal_range((*old)->hash);
      c.map.erase(std::find_if(begin, end, [&](auto& entry) { return entry.second == old; }));
      c.order.erase(old);
    }
    c.map.emplace(hash, c.order.insert(c.order.end(), found));
  }
  Recent& r = recent();
  if (r.generation != generation) {
    for (SignatureRef& slot : r.slots) slot = nullptr;
    r.generation = generation;
  }
  r.slots[hash & (recent_slots - 1)] = found;
  return found;
}

void clear_signatures() {
  Cache& c = cache();
  {
    std::lock_guard lock(c.mutex);
    c.map.clear();
    c.order.clear();
    c.generation.fetch_add(1, std::memory_order_acq_rel);
  }
  Recent& r = recent();
  for (SignatureRef& slot : r.slots) slot = nullptr;
}

uint64_t signature_generation() { return cache().generation.load(std::memory_order_acquire); }

void end_signatures() {
  clear_signatures();
  ended.store(true, std::memory_order_release);
}

}  // namespace perigee
