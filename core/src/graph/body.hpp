// SPDX-License-Identifier: Apache-2.0
// Graphs inside of graphs: bodies, which a node owns and runs (control.hpp). What a body uses from around it becomes an
// argument of the body, and an input of the node.
#pragma once

#include "graph/graph.hpp"

namespace perigee {

GraphRef make_body(Graph& around);
Graph& root_of(Graph& g);  // the graph that is no body
// The graph that a call goes into: all that is called while a body is recorded is the body's. Throws for tensors of
// bodies that are not being recorded.
Graph& target_of(const PendingCall& call);
// An argument with the description of `like`; `step`: of one position of its first axis.
TensorRef body_argument(Graph& body, const std::string& name, const Tensor& like, bool step, bool differentiable);
// x as a tensor of g: itself, or the argument that stands for what lies around. `meta_only`: nothing but its
// description is asked for. Throws for what is not around g.
TensorRef take_in(Graph& g, Tensor& x, bool meta_only = false);

}  // namespace perigee
