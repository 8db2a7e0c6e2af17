// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

#include "registry/check.hpp"

namespace perigee {

namespace {

constexpr uint32_t kMaxOps = 4096;
constexpr const char* kScalarKernels = "*";  // what kernels of PG_KERNEL_SCALAR have for an operator's name
constexpr std::array<const char*, static_cast<size_t>(Role::count)> kRoleNames = {
    "",     "accumulate", "sum_like",   "zeros_like", "ones_like",      "all_finite", "clone",  "cast",      "transfer",
    "fill", "copy",       "all_reduce", "all_gather", "reduce_scatter", "broadcast",  "reduce", "all_to_all"};

using KernelList = std::vector<Kernel>;

// A file format, and who brought it.
struct Format {
  const pg_format_info* info;
  LoadedPlugin* plugin;
};

// Never destroyed. Entries are never removed or moved, so that references to them stay good.
struct Registry {
  std::shared_mutex mutex;
  std::array<std::atomic<const Op*>, kMaxOps> ops{};
  std::atomic<uint32_t> op_count{0};
  std::unordered_map<std::string, const Op*> ops_by_name;
  std::array<std::atomic<const Op*>, static_cast<size_t>(Role::count)> roles{};
  // operator, device type. A list is replaced, never changed, when a plugin adds to it.
  std::unordered_map<std::string, std::map<std::string, const KernelList*>> kernels;
  std::deque<KernelList> kernel_lists;
  // Those of an operator by name and, behind them, those of all scalar expressions, where there are both.
  std::map<std::pair<const KernelList*, const KernelList*>, KernelList> joined_lists;
  std::deque<Layer> layers;
  std::deque<Optimizer> optimizers;
  std::vector<Format> formats;
  std::deque<Source> sources;
  std::deque<Transform> transforms;
  std::deque<Codec> codecs;
  std::vector<const LoadedPlugin*> compilers;
};

Registry& registry() {
  static auto& registry = *new Registry;
  return registry;
}

Role find_role(const char* name) {
  if (name == nullptr) return Role::none;
  for (size_t i = 1; i < kRoleNames.size(); i++) {
    if (std::string(kRoleNames[i]) == name) return static_cast<Role>(i);
  }
  return Role::none;  // a newer host's; of no use to this one
}

// Where the attribute stands on which it depends whether an input is written to.
uint32_t condition_offset(const pg_op_info& info, uint32_t input) {
  for (uint32_t i = 0; info.inputs[input]->written_if != nullptr && i < info.attr_count; i++)
    if (std::strcmp(info.attrs[i]->name, info.inputs[input]->written_if) == 0) return info.attrs[i]->offset;
  return UINT32_MAX;
}

// The fields of Op that dispatch reads, worked out once.
std::unique_ptr<Op> make_op(const pg_op_info& info, LoadedPlugin* plugin) {
  auto op = std::make_unique<Op>();
  op->info = &info;
  op->plugin = plugin;
  op->role = find_role(info.role);
  for (uint32_t i = 0; i < info.input_count; i++) op->variadic |= (info.inputs[i]->flags & PG_INPUT_VARIADIC) != 0;
  for (uint32_t i = 0; i < info.output_count; i++) {
    op->variadic |= (info.outputs[i]->flags & PG_OUTPUT_VARIADIC) != 0;
    op->visible_outputs += (info.outputs[i]->flags & PG_OUTPUT_HIDDEN) == 0;
  }
  op->hides = op->visible_outputs < info.output_count;
  for (uint32_t i = 0; i < info.input_count; i++) op->written_if.push_back(condition_offset(info, i));
  for (uint32_t i = 0; i < info.attr_count; i++) {
    const pg_attr_info& attr = *info.attrs[i];
    const std::string name = attr.name;
    if (attr.kind == PG_ATTR_SCALAR) op->scalar_attr = static_cast<int32_t>(i);
    if (attr.kind == PG_ATTR_DTYPE && name == "dtype") op->dtype_offset = attr.offset;
    if (attr.kind == PG_ATTR_DIMS) op->has_dims = true;
    if (attr.kind == PG_ATTR_DIMS && name == "shape") op->shape_offset = attr.offset;
    if (attr.kind == PG_ATTR_DEVICE) op->device_offset = attr.offset;
    if (attr.kind == PG_ATTR_NUMBER && name == "value") op->value_offset = attr.offset;
    if (attr.kind == PG_ATTR_CHOICE && name == "memory_format") op->format_offset = attr.offset;
    if (info.effect == PG_EFFECT_RANDOM && name == "seed") op->seed_offset = attr.offset;
    if (info.effect == PG_EFFECT_RANDOM && name == "offset") op->offset_offset = attr.offset;
  }
  return op;
}

template <class List>
auto find_named(List& list, const std::string& name) -> decltype(&list.front()) {
  for (auto& each : list) {
    if (name == each.info->name) return &each;
  }
  return nullptr;
}

// Who brings an extension; NULL: nobody. Exclusive lock held.
const LoadedPlugin* find_extension(const std::string& extension) {
  auto has = [&](const char* extensions) {
    const auto known = split_words(extensions);
    return std::find(known.begin(), known.end(), extension) != known.end();
  };
  for (const Format& format : registry().formats)
    if (has(format.info->extensions)) return format.plugin;
  for (const Codec& codec : registry().codecs)
    if (has(codec.info->extensions)) return codec.plugin;
  return nullptr;
}

// Of one sort of a table's entries: what each is, and that nobody has its name.
template <class Info, class List>
void check_entries(const char* sort, const Info* const* infos, uint32_t count, List& known,
                   void (*check)(const Info&)) {
  NameCheck names(sort);
  for (uint32_t i = 0; i < count; i++) {
    check(*infos[i]);
    auto* holder = find_named(known, infos[i]->name);
    names.add(infos[i]->name, holder == nullptr ? nullptr : holder->plugin);
  }
}

void check_extensions(const LoadedPlugin& plugin) {
  NameCheck extensions("extension");
  auto add = [&](const char* list) {
    for (const std::string& extension : split_words(list)) extensions.add(extension, find_extension(extension));
  };
  for (uint32_t i = 0; plugin.formats != nullptr && i < plugin.formats->count; i++)
    add(plugin.formats->formats[i]->extensions);
  for (uint32_t i = 0; plugin.data != nullptr && i < plugin.data->codec_count; i++)
    add(plugin.data->codecs[i]->extensions);
}

// All checks, so that a plugin is registered wholly or not at all. Exclusive lock held.
void check_plugin(const LoadedPlugin& plugin) {
  Registry& r = registry();
  const uint32_t count = plugin.ops == nullptr ? 0 : plugin.ops->count;
  if (count > kMaxOps - r.op_count) pg::fail_support(pg::format("more than %u operators", kMaxOps));
  NameCheck ops("operator"), roles("role");
  for (uint32_t i = 0; i < count; i++) {
    const pg_op_info& info = *plugin.ops->ops[i];
    check_op(info);
    auto known = r.ops_by_name.find(info.name);
    ops.add(info.name, known == r.ops_by_name.end() ? nullptr : known->second->plugin);
    const Role role = find_role(info.role);
    if (role == Role::none) continue;
    const Op* holder = r.roles[static_cast<size_t>(role)];
    roles.add(info.role, holder == nullptr ? nullptr : holder->plugin);
  }
  for (uint32_t i = 0; plugin.kernels != nullptr && i < plugin.kernels->count; i++)
    check_kernel(*plugin.kernels->kernels[i]);
  if (plugin.layers != nullptr)
    check_entries("layer", plugin.layers->layers, plugin.layers->count, r.layers, check_layer);
  if (plugin.optimizers != nullptr)
    check_entries("optimizer", plugin.optimizers->optimizers, plugin.optimizers->count, r.optimizers, check_optimizer);
  if (plugin.formats != nullptr)
    check_entries<pg_format_info>("format", plugin.formats->formats, plugin.formats->count, r.formats,
                                  [](const pg_format_info&) {});
  if (plugin.data != nullptr) {
    check_entries("source", plugin.data->sources, plugin.data->source_count, r.sources, check_source);
    check_entries("transform", plugin.data->transforms, plugin.data->transform_count, r.transforms, check_transform);
    check_entries("codec", plugin.data->codecs, plugin.data->codec_count, r.codecs, check_codec);
  }
  check_extensions(plugin);
}

void add_ops(LoadedPlugin* plugin) {
  Registry& r = registry();
  for (uint32_t i = 0; i < plugin->ops->count; i++) {
    Op* op = make_op(*plugin->ops->ops[i], plugin).release();
    op->id = r.op_count;
    r.ops[op->id].store(op, std::memory_order_release);
    r.op_count.store(op->id + 1, std::memory_order_release);
    r.ops_by_name[op->info->name] = op;
    if (op->role != Role::none) r.roles[static_cast<size_t>(op->role)].store(op, std::memory_order_release);
  }
}

void add_kernels(LoadedPlugin* plugin) {
  Registry& r = registry();
  const pg_kernels& table = *plugin->kernels;
  std::map<std::string, KernelList> fresh;
  for (uint32_t i = 0; i < table.count; i++) {
    fresh[table.kernels[i]->op].push_back({plugin, &table, plugin->self, i, table.kernels[i]});
  }
  for (auto& [op, added] : fresh) {
    const KernelList*& list = r.kernels[op][table.device_type];
    KernelList all = list == nullptr ? KernelList{} : *list;
    all.insert(all.end(), added.begin(), added.end());
    r.kernel_lists.push_back(std::move(all));
    list = &r.kernel_lists.back();
  }
}

// Of the kernels that name it; NULL where there are none. Lock held.
const KernelList* kernels_named(const char* op, const std::string& device_type) {
  auto found = registry().kernels.find(op);
  if (found == registry().kernels.end()) return nullptr;
  auto list = found->second.find(device_type);
  return list == found->second.end() ? nullptr : list->second;
}

template <class Item>
const Item* look_up(const char* kind, std::deque<Item>& list, const std::string& name) {
  load_kind(kind);
  std::shared_lock guard(registry().mutex);
  return find_named(list, name);
}

template <class List>
std::vector<std::string> names_of(const char* kind, const List& list) {
  load_kind(kind);
  std::vector<std::string> names;
  std::shared_lock guard(registry().mutex);
  for (const auto& each : list) names.push_back(each.info->name);
  return names;
}

template <class Item>
const Item& item_at(std::deque<Item>& list, uint32_t id, const char* what) {
  std::shared_lock guard(registry().mutex);
  if (id >= list.size()) pg::fail_argument(pg::format("there is no %s number %u", what, id));
  return list[id];
}

}  // namespace

void register_tables(LoadedPlugin* plugin) {
  Registry& r = registry();
  std::unique_lock guard(r.mutex);
  check_plugin(*plugin);
  if (plugin->ops != nullptr) add_ops(plugin);
  if (plugin->kernels != nullptr) add_kernels(plugin);
  if (plugin->compiler != nullptr) r.compilers.push_back(plugin);
  for (uint32_t i = 0; plugin->layers != nullptr && i < plugin->layers->count; i++) {
    r.layers.push_back({static_cast<uint32_t>(r.layers.size()), plugin->layers->layers[i], plugin});
  }
  for (uint32_t i = 0; plugin->optimizers != nullptr && i < plugin->optimizers->count; i++) {
    r.optimizers.push_back({static_cast<uint32_t>(r.optimizers.size()), plugin->optimizers->optimizers[i], plugin});
  }
  for (uint32_t i = 0; plugin->formats != nullptr && i < plugin->formats->count; i++) {
    r.formats.push_back({plugin->formats->formats[i], plugin});
  }
  if (plugin->data == nullptr) return;
  const pg_data& data = *plugin->data;
  auto add = [plugin](auto& list, auto* const* infos, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) list.push_back({static_cast<uint32_t>(list.size()), infos[i], plugin});
  };
  add(r.sources, data.sources, data.source_count);
  add(r.transforms, data.transforms, data.transform_count);
  add(r.codecs, data.codecs, data.codec_count);
}

bool Op::mutates(uint32_t input, const void* attrs) const {
  if (!(info->inputs[input]->flags & PG_INPUT_MUTATES)) return false;
  if (written_if[input] == UINT32_MAX) return true;
  int32_t on;
  std::memcpy(&on, static_cast<const uint8_t*>(attrs) + written_if[input], sizeof on);
  return on != 0;
}

const Op* op_at(uint32_t id) { return id < kMaxOps ? registry().ops[id].load(std::memory_order_acquire) : nullptr; }

const Op& op(uint32_t id) {
  if (const Op* found = op_at(id)) return *found;
  pg::fail_argument(pg::format("there is no operator number %u", id));
}

uint32_t op_count() { return registry().op_count.load(std::memory_order_acquire); }

const Op* find_op(const std::string& name) {
  load_kind("ops");
  std::shared_lock guard(registry().mutex);
  auto found = registry().ops_by_name.find(name);
  return found == registry().ops_by_name.end() ? nullptr : found->second;
}

const Op& role_op(Role role) {
  auto& slot = registry().roles[static_cast<size_t>(role)];
  const Op* op = slot.load(std::memory_order_acquire);
  if (op == nullptr) {
    load_kind("ops");
    op = slot.load(std::memory_order_acquire);
  }
  if (op != nullptr) return *op;
  std::string text = std::string("no operator claims the role '") + kRoleNames[static_cast<size_t>(role)] + "'";
  const std::string reasons = unavailable_text();
  pg::fail(PG_E_FAILED_PRECONDITION,
           text + (reasons.empty() ? "; is the plugin 'ops' on the search path?" : "; " + reasons));
}

const std::vector<Kernel>& find_kernels(const Op& op, const std::string& device_type) {
  static const KernelList none;
  load_device_type(device_type);
  {
    std::shared_lock guard(registry().mutex);
    const KernelList* named = kernels_named(op.info->name, device_type);
    const KernelList* scalar = op.info->scalar == nullptr ? nullptr : kernels_named(kScalarKernels, device_type);
    if (named == nullptr || scalar == nullptr) return named != nullptr ? *named : scalar != nullptr ? *scalar : none;
    auto joined = registry().joined_lists.find({named, scalar});
    if (joined != registry().joined_lists.end()) return joined->second;
  }
  std::unique_lock guard(registry().mutex);
  const KernelList* named = kernels_named(op.info->name, device_type);
  const KernelList* scalar = kernels_named(kScalarKernels, device_type);
  auto [joined, fresh] = registry().joined_lists.try_emplace({named, scalar}, *named);
  if (fresh) joined->second.insert(joined->second.end(), scalar->begin(), scalar->end());
  return joined->second;
}

std::vector<const LoadedPlugin*> find_compilers(const std::string& device_type) {
  load_device_type(device_type);  // a compiler has kernels of its device's; those of other devices are slow to load
  std::vector<const LoadedPlugin*> found;
  std::shared_lock guard(registry().mutex);
  for (const LoadedPlugin* plugin : registry().compilers)
    if (device_type == plugin->compiler->device_type) found.push_back(plugin);
  return found;
}

std::vector<std::string> unknown_ops(const LoadedPlugin& plugin) {
  load_kind("ops");
  std::set<std::string> unknown;
  std::shared_lock guard(registry().mutex);
  for (uint32_t i = 0; plugin.kernels != nullptr && i < plugin.kernels->count; i++) {
    const char* name = plugin.kernels->kernels[i]->op;
    if (std::strcmp(name, kScalarKernels) != 0 && registry().ops_by_name.count(name) == 0) unknown.insert(name);
  }
  return {unknown.begin(), unknown.end()};
}

std::string kernel_places(const Op& op, const std::string& without) {
  load_kind("device");  // only messages ask: the answer may cost something
  load_kind("kernels");
  std::set<std::string> types;
  std::shared_lock guard(registry().mutex);
  for (const char* name : {op.info->name, op.info->scalar == nullptr ? op.info->name : kScalarKernels}) {
    auto found = registry().kernels.find(name);
    if (found == registry().kernels.end()) continue;
    for (const auto& each : found->second)
      if (name == op.info->name || each.first != without) types.insert(each.first);
  }
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

const Layer* find_layer(const std::string& name) { return look_up("layer", registry().layers, name); }

const Layer& layer(uint32_t id) { return item_at(registry().layers, id, "layer"); }

const Optimizer* find_optimizer(const std::string& name) { return look_up("optimizer", registry().optimizers, name); }

const Optimizer& optimizer(uint32_t id) { return item_at(registry().optimizers, id, "optimizer"); }

FileKind find_file_kind(const std::string& path) {
  load_kind("format");
  load_kind("data");
  std::shared_lock guard(registry().mutex);
  FileKind best;
  size_t longest = 0;
  std::string both, read_only, write_only, name = path;
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;  // cameras write IMG_1.JPG
  auto look = [&](const FileKind& kind, const char* extensions) {
    std::string& kin = !kind.reads() ? write_only : !kind.writes() ? read_only : both;
    for (const std::string& extension : split_words(extensions)) {
      kin += " " + extension;
      if (extension.size() <= longest || !name.ends_with(extension)) continue;
      best = kind;
      longest = extension.size();
    }
  };
  for (const Format& format : registry().formats) look({format.info, nullptr}, format.info->extensions);
  for (const Codec& codec : registry().codecs) look({nullptr, codec.info}, codec.info->extensions);
  if (longest > 0) return best;
  std::string known = both.empty() ? "" : "; read and written are" + both;
  if (!read_only.empty()) known += "; only read" + read_only;
  if (!write_only.empty()) known += "; only written" + write_only;
  pg::fail(PG_E_NOT_FOUND, "no file format fits the name '" + path + "'" +
                               (known.empty() ? "; there is none, since no format plugin was found" : known));
}

const Source* find_source(const std::string& name) { return look_up("data", registry().sources, name); }
const Source& source(uint32_t id) { return item_at(registry().sources, id, "source"); }
const Transform* find_transform(const std::string& name) { return look_up("data", registry().transforms, name); }
const Transform& transform(uint32_t id) { return item_at(registry().transforms, id, "transform"); }
const Codec* find_codec(const std::string& name) { return look_up("data", registry().codecs, name); }
const Codec& codec(uint32_t id) { return item_at(registry().codecs, id, "codec"); }
std::vector<std::string> source_names() { return names_of("data", registry().sources); }
std::vector<std::string> transform_names() { return names_of("data", registry().transforms); }
std::vector<std::string> codec_names() { return names_of("data", registry().codecs); }

const Codec* find_codec_of(const void* head, uint64_t count) {
  load_kind("data");
  std::shared_lock guard(registry().mutex);
  for (const Codec& codec : registry().codecs)
    if (codec.info->matches(codec.info->user, head, std::min<uint64_t>(count, 64)) != 0) return &codec;
  return nullptr;
}

std::vector<std::string> op_names() {
  load_kind("ops");
  std::vector<std::string> names;
  for (uint32_t i = 0; i < op_count(); i++) names.push_back(op(i).info->name);
  return names;
}

std::vector<std::string> layer_names() { return names_of("layer", registry().layers); }
std::vector<std::string> optimizer_names() { return names_of("optimizer", registry().optimizers); }

}  // namespace perigee
