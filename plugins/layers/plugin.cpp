// SPDX-License-Identifier: Apache-2.0
// The plugin "layers": each other file registers a layer, or a family of them.
#include "perigee/layer.hpp"

namespace {

struct Layers {
  const void* iface(const char* id) { return std::strcmp(id, PG_IFACE_LAYERS) == 0 ? pg::layer_table() : nullptr; }
};

}  // namespace

PG_PLUGIN(Layers, "layers", "0.1.0", "layers")
