// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "perigee/plugin.hpp"

namespace sim {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int64_t number(const char* name, const std::string& text, int64_t low, int64_t high) {
  char* end = nullptr;
  errno = 0;
  long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || value < low || value > high) {
    pg::fail_argument(pg::format("%s: '%s' is not a whole number in %lld..%lld", name, text.c_str(),
                                 static_cast<long long>(low), static_cast<long long>(high)));
  }
  return value;
}

// "64MB", "1.5GB", "4096"; units are powers of 1024.
uint64_t bytes(const char* name, const std::string& text) {
  double value = 0;  // by no locale
  const char* end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string unit(end, text.data() + text.size());
  double scale = 1;
  if (unit == "KB" || unit == "K")
    scale = 1024;
  else if (unit == "MB" || unit == "M")
    scale = 1024.0 * 1024;
  else if (unit == "GB" || unit == "G")
    scale = 1024.0 * 1024 * 1024;
  else if (!unit.empty() && unit != "B")
    value = 0;
  double total = value * scale;
  if (!(total >= 1 && total < 1e15)) {
    pg::fail_argument(pg::format("%s: '%s' is not a size such as 64MB", name, text.c_str()));
  }
  return static_cast<uint64_t>(total);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

void read_faults(Settings& out) {
  const char* name = "PERIGEE_SIM_FAIL";
  for (const std::string& part : split(variable(name))) {
    size_t colon = part.find(':');
    std::string what = part.substr(0, colon);
    int64_t nth = number(name, colon == std::string::npos ? "" : part.substr(colon + 1), 1, INT64_MAX);
    if (what == "alloc")
      out.fail_alloc = nth;
    else if (what == "launch")
      out.fail_launch = nth;
    else if (what == "copy")
      out.fail_copy = nth;
    else if (what == "lost")
      out.lose_device = nth;
    else
      pg::fail_argument(pg::format("%s: '%s' is not one of alloc, launch, copy, lost", name, what.c_str()));
  }
}

}  // namespace

Settings read_settings() {
  Settings out;
  auto set = [](const char* name, auto&& use) {
    std::string text = variable(name);
    if (!text.empty()) use(name, text);
  };
  set("PERIGEE_SIM_DEVICES", [&](auto* n, auto& text) { out.devices = static_cast<uint32_t>(number(n, text, 1, 8)); });
  set("PERIGEE_SIM_GPU", [&](auto* n, auto& text) { out.gpu = number(n, text, 0, 1) == 1; });
  set("PERIGEE_SIM_JITTER", [&](auto* n, auto& text) { out.jitter = number(n, text, 0, 10'000'000); });
  set("PERIGEE_SIM_SEED",
      [&](auto* n, auto& text) { out.seed = static_cast<uint64_t>(number(n, text, 0, INT64_MAX)); });
  set("PERIGEE_SIM_MEMORY", [&](auto* n, auto& text) { out.memory = bytes(n, text); });
  read_faults(out);
  for (const std::string& op : split(variable("PERIGEE_SIM_MISSING"))) out.missing.insert(op);
  return out;
}

}  // namespace sim
