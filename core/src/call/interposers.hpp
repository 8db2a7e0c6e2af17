// SPDX-License-Identifier: Apache-2.0
// Interposers, in this order. Each replaces inputs where it must and keeps what it made alive in the call's `keep`.
#pragma once

#include "builder/builder.hpp"

namespace perigee {

// The graph that a call with these inputs is recorded into, or NULL.
Graph* recording_graph(const PendingCall& call);
void check_inputs(PendingCall& call);
void promote(PendingCall& call);
void check_dtypes(const PendingCall& call);
void place(PendingCall& call);
// "add_1: (Add): /gpu:0"; and as a line on standard error.
std::string placement_line(const std::string& name, const char* op, const Device& device);
std::string shown_operator(const char* name);  // "LogSoftmax"
void log_placement(const char* name, const Op& op, const Device& device);

}  // namespace perigee
