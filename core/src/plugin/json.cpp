// SPDX-License-Identifier: Apache-2.0
// All JSON of the core, since the library is slow to compile: the manifests of plugins, and lists of what there is for
// front ends. Kinds, flags, traits and masks are plugin.h's numbers.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device/list.hpp"
#include "plugin/describe.hpp"
#include "plugin/state.hpp"
#include "registry/check.hpp"
#include "registry/registry.hpp"

namespace perigee {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const char* text_of(const char* text) { return text == nullptr ? "" : text; }

template <class T>
T read(const void* defaults, uint32_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(defaults) + offset, sizeof value);
  return value;
}

// JSON has no infinities: "inf", "-inf" and "nan" stand for them.
Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json default_of(const pg_attr_info& attr, const void* defaults) {
  switch (attr.kind) {
    case PG_ATTR_BOOL: return read<int32_t>(defaults, attr.offset) != 0;
    case PG_ATTR_INT:
    case PG_ATTR_AXIS: return read<int64_t>(defaults, attr.offset);
    case PG_ATTR_FLOAT: return number(read<double>(defaults, attr.offset));
    case PG_ATTR_NUMBER: return number(read<pg_number>(defaults, attr.offset).real);
    case PG_ATTR_DEVICE: return read<int32_t>(defaults, attr.offset);
    case PG_ATTR_TEXT: return read<const char*>(defaults, attr.offset);
    case PG_ATTR_DTYPE: {
      const auto dtype = read<uint32_t>(defaults, attr.offset);
      return dtype == 0 ? Json(nullptr) : Json(pg::dtype_name(dtype));
    }
    case PG_ATTR_CHOICE: {
      const auto choice = read<int32_t>(defaults, attr.offset);
      return choice >= 0 && static_cast<uint32_t>(choice) < attr.choice_count ? Json(attr.choices[choice])
                                                                              : Json(nullptr);
    }
    case PG_ATTR_INTS:
    case PG_ATTR_AXES:
    case PG_ATTR_DIMS: {
      const auto list = read<pg_ints>(defaults, attr.offset);
      Json values = Json::array();
      for (int64_t i = 0; i < list.count && i < PG_MAX_RANK; i++) values.push_back(list.value[i]);
      return values;
    }
    default: return nullptr;
  }
}

Json attrs_json(const pg_attr_info* const* attrs, uint32_t count, const void* defaults) {
  Json list = Json::array();
  for (uint32_t i = 0; i < count; i++) {
    const pg_attr_info& attr = *attrs[i];
    Json json{{"name", attr.name},
              {"doc", text_of(attr.doc)},
              {"kind", attr.kind},
              {"flags", attr.flags},
              {"offset", attr.offset}};
    if (attr.kind == PG_ATTR_CHOICE) {
      json["choices"] = std::vector<std::string>(attr.choices, attr.choices + attr.choice_count);
    }
    if (attr.kind == PG_ATTR_SCALAR) json["value"] = attr.value;
    // Of a list that one number may stand for the default also says how long it is.
    if ((attr.flags & PG_ATTR_REQUIRED) == 0 || (attr.flags & PG_ATTR_PAIR) != 0) {
      Json value = default_of(attr, defaults);
      if (!value.is_null()) json["default"] = std::move(value);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json ends_json(const pg_op_info& info, bool inputs) {
  Json list = Json::array();
  for (uint32_t i = 0; inputs && i < info.input_count; i++) {
    const pg_input_info& input = *info.inputs[i];
    list.push_back(
        {{"name", input.name}, {"doc", text_of(input.doc)}, {"flags", input.flags}, {"dtypes", input.dtypes}});
  }
  for (uint32_t i = 0; !inputs && i < info.output_count; i++) {
    const pg_output_info& output = *info.outputs[i];
    list.push_back(
        {{"name", output.name}, {"doc", text_of(output.doc)}, {"flags", output.flags}, {"like", output.like}});
  }
  return list;
}

Json strings_json(const char* const* texts, uint32_t count) {
  Json list = Json::array();
  for (uint32_t i = 0; i < count; i++) list.push_back(text_of(texts[i]));
  return list;
}

}  // namespace

std::string op_json(const std::string& name) {
  const Op* op = find_op(name);
  if (op == nullptr) return "";
  const pg_op_info& info = *op->info;
  return dump(Json{{"name", info.name},
                   {"doc", text_of(info.doc)},
                   {"category", text_of(info.category)},
                   {"role", text_of(info.role)},
                   {"traits", info.traits},
                   {"effect", info.effect},
                   {"numeric", info.numeric},
                   {"version", info.version},
                   {"inputs", ends_json(info, true)},
                   {"outputs", ends_json(info, false)},
                   {"attrs", attrs_json(info.attrs, info.attr_count, info.defaults)},
                   {"attr_size", info.attr_size},
                   {"static_size", info.static_size},
                   {"differentiable", info.grad != nullptr},
                   {"decomposes", info.decompose != nullptr},
                   {"id", op->id}});
}

std::string op_names_json() { return dump(Json(op_names())); }

std::string layer_json(const std::string& name) {
  const Layer* layer = find_layer(name);
  if (layer == nullptr) return "";
  const pg_layer_info& info = *layer->info;
  return dump(Json{{"name", info.name},
                   {"doc", text_of(info.doc)},
                   {"input_count", info.input_count},
                   {"output_count", info.output_count},
                   {"params", strings_json(info.param_names, info.param_count)},
                   {"attrs", attrs_json(info.attrs, info.attr_count, info.defaults)},
                   {"attr_size", info.attr_size},
                   {"inferred", info.inferred},
                   {"id", layer->id}});
}

std::string layer_names_json() { return dump(Json(layer_names())); }

std::string optimizer_json(const std::string& name) {
  const Optimizer* optimizer = find_optimizer(name);
  if (optimizer == nullptr) return "";
  const pg_optimizer_info& info = *optimizer->info;
  return dump(Json{{"name", info.name},
                   {"doc", text_of(info.doc)},
                   {"slots", strings_json(info.slots, info.slot_count)},
                   {"attrs", attrs_json(info.attrs, info.attr_count, info.defaults)},
                   {"attr_size", info.attr_size},
                   {"id", optimizer->id}});
}

std::string optimizer_names_json() { return dump(Json(optimizer_names())); }

// ---- parts of pipelines ----

namespace {

template <class Found>
std::string part_json(const Found* found) {
  if (found == nullptr) return "";
  const auto& info = *found->info;
  return dump(Json{{"name", info.name},
                   {"doc", text_of(info.doc)},
                   {"attrs", attrs_json(info.attrs, info.attr_count, info.defaults)},
                   {"attr_size", info.attr_size},
                   {"id", found->id}});
}

}  // namespace

std::string source_json(const std::string& name) { return part_json(find_source(name)); }
std::string source_names_json() { return dump(Json(source_names())); }
std::string transform_json(const std::string& name) { return part_json(find_transform(name)); }
std::string transform_names_json() { return dump(Json(transform_names())); }

std::string codecs_json() {
  Json list = Json::array();
  for (const std::string& name : codec_names()) {
    const pg_codec_info& info = *find_codec(name)->info;
    list.push_back({{"name", info.name},
                    {"doc", text_of(info.doc)},
                    {"extensions", split_words(info.extensions)},
                    {"flags", info.flags},
                    {"decode_attrs", attrs_json(info.decode_attrs, info.decode_attr_count, info.decode_defaults)},
                    {"encode_attrs", attrs_json(info.encode_attrs, info.encode_attr_count, info.encode_defaults)},
                    {"encodes", info.encode != nullptr}});
  }
  return dump(list);
}

// ---- devices ----

std::string devices_json() {
  Json list = Json::array(), unavailable = Json::array();
  for (Device* device : devices()) {
    // Asked anew, for the free memory of this moment.
    pg_device_properties now = device->properties;
    pg_error error = pg::make_error();
    if (device->table()->properties(device->self(), device->ordinal, &now, &error) != PG_OK) now = device->properties;
    list.push_back({{"name", device->name},
                    {"type", device->type},
                    {"index", device->number},
                    {"device", device->id},
                    {"description", std::string(device->properties.name)},
                    {"memory_total", now.memory_total},
                    {"memory_free", now.memory_free},
                    {"accelerator", device->accelerator}});
  }
  for (const LoadedPlugin* plugin : find_plugins()) {
    if (plugin->state != PluginState::unavailable || !offers_devices(*plugin)) continue;
    unavailable.push_back({{"type", plugin->name}, {"reason", plugin->reason}});
  }
  Json all{{"devices", list}, {"unavailable", unavailable}};
  return dump(all);
}

// ---- plugins ----

namespace {

// The library's words, without the code that it puts before them.
std::string plain_text(const Json::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return text.starts_with("[json.") && end != std::string::npos ? text.substr(end + 2) : text;
}

template <class T>
void read_field(const Json& manifest, const char* key, T& into) {
  if (!manifest.contains(key)) return;
  const Json& field = manifest.at(key);
  const std::string name = std::string("'") + key + "': ";
  if (std::is_unsigned_v<T> && field.is_number() && !field.is_number_unsigned())
    pg::fail_argument(name + "it is " + field.dump() + "; expected a whole number from 0");
  try {
    into = field.get<T>();
  } catch (const Json::exception& error) {
    pg::fail_argument(name + plain_text(error));
  }
}

const char* state_name(PluginState state) {
  switch (state) {
    case PluginState::found: return "found";
    case PluginState::loaded: return "loaded";
    case PluginState::available: return "available";
    default: return "unavailable";
  }
}

}  // namespace

void read_manifest(const std::string& file, LoadedPlugin& plugin) {
  std::error_code none;
  if (const auto status = std::filesystem::status(file, none);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    plugin.state = PluginState::unavailable;  // opening a pipe would wait for who writes into it
    plugin.reason = "manifest " + file + ": it is no regular file";
    return;
  }
  std::ifstream stream(file);
  if (!stream) return;
  plugin.has_manifest = true;
  try {
    Json manifest = Json::parse(stream);
    if (!manifest.is_object()) pg::fail_argument("it holds no object");
    read_field(manifest, "name", plugin.name);
    read_field(manifest, "kinds", plugin.kinds);
    read_field(manifest, "version", plugin.version);
    read_field(manifest, "libraries", plugin.libraries);
    read_field(manifest, "library_folders", plugin.library_folders);
    read_field(manifest, "library_remedy", plugin.library_remedy);
    read_field(manifest, "cpu_features", plugin.cpu_features);
    read_field(manifest, "device_types", plugin.device_types);
    read_field(manifest, "abi", plugin.abi);
    read_field(manifest, "min_host_minor", plugin.min_host_minor);
    return;
  } catch (const Json::exception& error) {
    plugin.reason = plain_text(error);
  } catch (const pg::Error& error) {
    plugin.reason = error.what();
  }
  plugin.state = PluginState::unavailable;
  plugin.reason = "manifest " + file + ": " + plugin.reason;
}

std::string plugins_json(bool load) {
  if (load) load_all();
  Json list = Json::array();
  std::lock_guard guard(loader().mutex);
  for (const LoadedPlugin* plugin : find_plugins()) {
    list.push_back({{"name", plugin->name},
                    {"kinds", plugin->kinds},
                    {"version", plugin->version},
                    {"path", plugin->path},
                    {"state", state_name(plugin->state)},
                    {"reason", plugin->reason}});
    if (!load) continue;
    if (auto unknown = unknown_ops(*plugin); !unknown.empty()) list.back()["unknown_ops"] = std::move(unknown);
  }
  return dump(list);
}

}  // namespace perigee
