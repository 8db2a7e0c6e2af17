// SPDX-License-Identifier: Apache-2.0
// What there is, as JSON for front ends: operators, layers, optimizers, parts of pipelines, devices, plugins.
#pragma once

#include <string>

namespace perigee {

std::string op_json(const std::string& name);  // empty when there is none
std::string op_names_json();
std::string layer_json(const std::string& name);
std::string layer_names_json();
std::string optimizer_json(const std::string& name);
std::string optimizer_names_json();
std::string source_json(const std::string& name);
std::string source_names_json();
std::string transform_json(const std::string& name);
std::string transform_names_json();
std::string codecs_json();
std::string devices_json();
std::string plugins_json(bool load);

}  // namespace perigee
