// SPDX-License-Identifier: Apache-2.0
// Checks of what plugins register: a schema that lies about its attributes would corrupt memory later.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "perigee/data.h"
#include "perigee/plugin.hpp"

namespace perigee {

struct LoadedPlugin;

// Each throws pg::Error that names the operator and the field.
void check_op(const pg_op_info& info);
void check_layer(const pg_layer_info& info);
void check_kernel(const pg_kernel_info& info);
void check_optimizer(const pg_optimizer_info& info);
void check_source(const pg_source_info& info);
void check_transform(const pg_transform_info& info);
void check_codec(const pg_codec_info& info);
void check_device_type(const std::string& type);

// Names of one sort that a plugin brings: taken twice within it, or by another plugin (`holder`), is an error.
class NameCheck {
 public:
  explicit NameCheck(const char* sort) : sort_(sort) {}
  void add(const std::string& name, const LoadedPlugin* holder);

 private:
  const char* sort_;
  std::set<std::string> names_;
};

uint32_t attr_bytes(uint32_t kind);  // of a PG_ATTR_* in the packed struct; 0: no such kind
std::vector<std::string> split_words(const char* text);

}  // namespace perigee
