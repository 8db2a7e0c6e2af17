// SPDX-License-Identifier: Apache-2.0
// Messages to standard error, by level. PERIGEE_LOG=debug|info|warning|error; warning when unset.
#pragma once

#include <cstdint>
#include <string>

namespace perigee {

bool log_enabled(int32_t level);  // PG_LOG_*
// One line, "perigee: warning: MESSAGE", written at once so that lines of threads do not mix.
void write_log(int32_t level, const std::string& message) noexcept;

}  // namespace perigee
