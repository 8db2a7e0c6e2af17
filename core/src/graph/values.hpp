// SPDX-License-Identifier: Apache-2.0
// What the recorder's files share: new values and their names.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace perigee {

std::string scoped(const std::string& name);  // inside the scope in force
// `wanted`, or that with a number behind it: a name that nothing in the graph has.
std::string free_name(Graph& g, const std::string& wanted);
// The same, taken: the graph's entry of it, which belongs to the value that is added with it.
using NameEntry = std::pair<const std::string, uint32_t>;
NameEntry& claim_name(Graph& g, const std::string& wanted);
uint32_t add_value(Graph& g, ValueKind kind, MetaRef meta, Device* device, NameEntry& name);
void forget_name(Graph& g, const std::string& name);  // it is free again
// The name is one that is free.
uint32_t add_value(Graph& g, ValueKind kind, MetaRef meta, Device* device, const std::string& name);
TensorRef tensor_of(Graph& g, uint32_t value);
// The same with a history that begins there, if it may be differentiated.
TensorRef source_tensor(Graph& g, uint32_t value);
// From now on the value is a variable, with what it holds at first.
void make_variable(Graph& g, uint32_t value, TensorRef first);
int64_t new_symbol(Graph& g, const std::string& name);  // that the graph gives back at its end

}  // namespace perigee
