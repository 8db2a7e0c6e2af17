// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace perigee {

// Why the file cannot be a library for this process, or "". Mapping a truncated library kills the process with SIGBUS,
// so this is asked before the dynamic linker sees the file.
std::string library_defect(const std::string& path);

}  // namespace perigee
