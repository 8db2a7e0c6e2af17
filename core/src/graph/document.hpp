// SPDX-License-Identifier: Apache-2.0
// A graph as a JSON document and back (docs/graph_files.md says what stands in one). Contents of variables and
// constants go beside it, by name.
#pragma once

#include <map>
#include <string>

#include "graph/graph.hpp"

namespace perigee {

inline constexpr uint32_t kDeepestBody = 32;  // of bodies in each other

// Throws PG_E_NOT_SUPPORTED, by name, for what a document cannot hold.
std::string graph_document(const Graph& g);

struct GraphContents {
  std::map<std::string, TensorRef> tensors;  // on the host, and nobody else's; taken
  Device* device = nullptr;                  // everything goes there; NULL: where the document says
  std::string shown;                         // what warnings begin with
};
// The graph of a document, recorded anew call by call: shapes, dtypes and gradients come from the operators, and what
// the document says of them is compared. Nothing in it is trusted. Throws PG_E_DATA_LOSS that names the node and what
// is wrong with it. A device that is not there is the default one, and one warning says so.
GraphRef read_graph_document(const std::string& text, GraphContents contents);

const char* attr_kind_name(uint32_t kind);  // of PG_ATTR_*: "axes"
// Of a random operator: what every run draws anew.
bool is_draw(const Op& op, const pg_attr_info& attr);

}  // namespace perigee
