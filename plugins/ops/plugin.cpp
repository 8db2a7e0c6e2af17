// SPDX-License-Identifier: Apache-2.0
// The schemas of Perigee's operators. Each file declares its own; nothing is listed here.
#include "perigee/op.hpp"

namespace {

struct Ops {
  pg::OpTable table;
  const void* iface(const char* id) { return std::strcmp(id, PG_IFACE_OPS) == 0 ? table.iface() : nullptr; }
};

}  // namespace

PG_PLUGIN(Ops, "ops", "0.1.0", "ops")
