// SPDX-License-Identifier: Apache-2.0
// What plugins registered: operators, kernels, layers, optimizers, formats, parts of pipelines, found by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "registry/plugin.hpp"

namespace perigee {

// Roles the core needs, each claimed by one schema.
enum class Role {
  none,
  accumulate,
  sum_like,
  zeros_like,
  ones_like,
  all_finite,
  clone,
  cast,
  transfer,
  fill,
  copy,
  all_reduce,  // from here on: between the processes of a group, by an engine (core/src/collective)
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  count
};

struct Op {
  uint32_t id = 0;
  const pg_op_info* info = nullptr;
  LoadedPlugin* plugin = nullptr;
  Role role = Role::none;
  uint32_t visible_outputs = 0;
  bool variadic = false;                        // any variadic input or output
  bool hides = false;                           // any hidden output
  int32_t scalar_attr = -1;                     // position of the PG_ATTR_SCALAR attribute
  uint32_t seed_offset = 0, offset_offset = 0;  // of a random operator's runtime attributes; 0: none
  uint32_t dtype_offset = UINT32_MAX;           // of attribute "dtype" of creation operators, "dtype" of cast
  uint32_t shape_offset = UINT32_MAX;           // of attribute "shape" (PG_ATTR_DIMS)
  uint32_t device_offset = UINT32_MAX;          // of a PG_ATTR_DEVICE attribute
  uint32_t value_offset = UINT32_MAX;           // of the NUMBER attribute "value" of fill
  uint32_t format_offset = UINT32_MAX;          // of the choice "memory_format" of clone
  bool has_dims = false;                        // any PG_ATTR_DIMS attribute
  std::vector<uint32_t> written_if;             // by input: offset of the attribute; UINT32_MAX: unconditional

  // Whether a call with these attributes writes into a declared input.
  bool mutates(uint32_t input, const void* attrs) const;
};

struct Kernel {
  LoadedPlugin* plugin = nullptr;
  const pg_kernels* table = nullptr;
  void* self = nullptr;
  uint32_t index = 0;
  const pg_kernel_info* info = nullptr;
};

struct Layer {
  uint32_t id;
  const pg_layer_info* info;
  LoadedPlugin* plugin;
};
struct Optimizer {
  uint32_t id;
  const pg_optimizer_info* info;
  LoadedPlugin* plugin;
};

struct Source {
  uint32_t id;
  const pg_source_info* info;
  LoadedPlugin* plugin;
};
struct Transform {
  uint32_t id;
  const pg_transform_info* info;
  LoadedPlugin* plugin;
};
struct Codec {
  uint32_t id;
  const pg_codec_info* info;
  LoadedPlugin* plugin;
};
// What a file's name says of it: one of the two.
struct FileKind {
  const pg_format_info* format = nullptr;
  const pg_codec_info* codec = nullptr;
  const char* name() const { return codec != nullptr ? codec->name : format->name; }
  bool reads() const { return codec != nullptr || format->read != nullptr; }
  bool writes() const { return codec != nullptr ? codec->encode != nullptr : format->write != nullptr; }
};

// Called by the loader. Throw on what is inconsistent (name taken, role taken, attribute outside the struct).
void register_tables(LoadedPlugin* plugin);

const Op* op_at(uint32_t id);                // NULL where there is none of that number; wait-free
const Op& op(uint32_t id);                   // throws instead
const Op* find_op(const std::string& name);  // loads plugins of kind "ops" first; NULL when there is none
const Op& role_op(Role role);                // throws PG_E_FAILED_PRECONDITION when nobody claims it
uint32_t op_count();
// Kernels for an operator on a type of device, in the order of registration. Reads are cheap, but cached per signature
// anyway.
const std::vector<Kernel>& find_kernels(const Op& op, const std::string& device_type);
// Compilers of regions for a type of device, in the order of registration.
std::vector<const LoadedPlugin*> find_compilers(const std::string& device_type);
// What the plugin's kernels are for that is no operator: a name written wrong, or of a plugin that is not there.
std::vector<std::string> unknown_ops(const LoadedPlugin& plugin);
// "float32 on cpu, sim" for messages: which device types have a kernel for it.
// `without`: a device type that has refused, and is left out unless a kernel of its own names the operator.
std::string kernel_places(const Op& op, const std::string& without = "");
const Layer* find_layer(const std::string& name);
const Layer& layer(uint32_t id);
const Optimizer* find_optimizer(const std::string& name);
const Optimizer& optimizer(uint32_t id);
FileKind find_file_kind(const std::string& path);  // by extension; throws listing the known ones
// NULL: there is none of that name; find_codec_of: whose bytes begin so.
const Source* find_source(const std::string& name);
const Source& source(uint32_t id);
const Transform* find_transform(const std::string& name);
const Transform& transform(uint32_t id);
const Codec* find_codec(const std::string& name);
const Codec* find_codec_of(const void* head, uint64_t count);
const Codec& codec(uint32_t id);
std::vector<std::string> source_names();
std::vector<std::string> transform_names();
std::vector<std::string> codec_names();
std::vector<std::string> op_names();
std::vector<std::string> layer_names();
std::vector<std::string> optimizer_names();

}  // namespace perigee
