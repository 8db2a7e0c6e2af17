// SPDX-License-Identifier: Apache-2.0
// The plugin "formats": each other file registers one format.
#include "perigee/format.hpp"

namespace {

struct Formats {
  const void* iface(const char* id) { return std::strcmp(id, PG_IFACE_FORMATS) == 0 ? pg::format_table() : nullptr; }
};

}  // namespace

PG_PLUGIN(Formats, "formats", "0.1.0", "formats")
