// SPDX-License-Identifier: Apache-2.0
// The plugin "optimizers": each other file registers one.
#include "perigee/optimizer.hpp"

namespace {

struct Optimizers {
  const void* iface(const char* id) {
    return std::strcmp(id, PG_IFACE_OPTIMIZERS) == 0 ? pg::optimizer_table() : nullptr;
  }
};

}  // namespace

PG_PLUGIN(Optimizers, "optimizers", "0.1.0", "optimizers")
