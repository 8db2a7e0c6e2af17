// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "perigee/plugin.h"

namespace perigee {

namespace {

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};

int32_t threshold() {
  static const int32_t level = [] {
    const char* wanted = std::getenv("PERIGEE_LOG");
    if (wanted == nullptr) return PG_LOG_WARNING;
    auto at = std::find(kNames.begin(), kNames.end(), std::string_view(wanted));
    return at == kNames.end() ? PG_LOG_WARNING : static_cast<int32_t>(at - kNames.begin());
  }();
  return level;
}

}  // namespace

bool log_enabled(int32_t level) { return level >= threshold(); }

void write_log(int32_t level, const std::string& message) noexcept {
  try {
    if (!log_enabled(level)) return;
    std::string line = "perigee: ";
    line += kNames[static_cast<size_t>(std::clamp<int32_t>(level, PG_LOG_DEBUG, PG_LOG_ERROR))];
    line += ": ";
    line += message;
    line += '\n';
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fputs("perigee: error: a message could not be written\n", stderr);
  }
}

}  // namespace perigee
