// SPDX-License-Identifier: Apache-2.0
// Host-side copies of a plugin's tables: every struct at the size this host knows, whatever size the plugin wrote.
// Fields that an older plugin lacks are zero; fields that only a newer one has are not read.
#pragma once

#include <memory>
#include <vector>

#include "perigee/capture.h"
#include "perigee/compiler.h"
#include "perigee/data.h"
#include "perigee/device_collectives.h"
#include "perigee/plugin.hpp"
#include "perigee/profiler.h"

namespace perigee {

// Memory of the copies, kept as long as the plugin.
using TableMemory = std::vector<std::shared_ptr<void>>;

// Each throws pg::Error when a required entry is missing or a struct is shorter than its required part; `raw` is what
// iface answered.
const pg_ops* copy_ops(const void* raw, TableMemory& keep);
const pg_device* copy_device(const void* raw, TableMemory& keep);
const pg_kernels* copy_kernels(const void* raw, TableMemory& keep);
const pg_layers* copy_layers(const void* raw, TableMemory& keep);
const pg_optimizers* copy_optimizers(const void* raw, TableMemory& keep);
const pg_formats* copy_formats(const void* raw, TableMemory& keep);
const pg_collectives* copy_collectives(const void* raw, TableMemory& keep);
const pg_capture* copy_capture(const void* raw, TableMemory& keep);
const pg_compiler* copy_compiler(const void* raw, TableMemory& keep);
const pg_data* copy_data(const void* raw, TableMemory& keep);
const pg_profiler* copy_profiler(const void* raw, TableMemory& keep);
const pg_device_collectives* copy_device_collectives(const void* raw, TableMemory& keep);

}  // namespace perigee
