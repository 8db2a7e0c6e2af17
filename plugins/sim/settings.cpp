// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "clock.hpp"
#include "perigee/plugin.hpp"

namespace sim {

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

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void read_faults(Settings& out) {
  const char* name = "PERIGEE_SIM_FAIL";
  for (const std::string& part : split(variable(name))) {
    size_t colon = part.find(':');
    std::string what = part.substr(0, colon);
    std::string text = colon == std::string::npos ? "" : part.substr(colon + 1);
    Fault fault;
    fault.on = !text.empty() && text.back() == '+';
    if (fault.on) text.pop_back();
    fault.nth = number(name, text, 1, INT64_MAX);
    if (what == "alloc")
      out.fail_alloc = fault;
    else if (what == "launch")
      out.fail_launch = fault;
    else if (what == "copy")
      out.fail_copy = fault;
    else if (what == "collective")
      out.fail_collective = fault;
    else if (what == "cut")
      out.cut_link = fault;
    else if (what == "stuck")
      out.stick = fault;
    else if (what == "lost")
      out.lose_device = fault;
    else
      pg::fail_argument(
          pg::format("%s: '%s' is not one of alloc, launch, copy, collective, cut, stuck, lost", name, what.c_str()));
  }
}

// "conv2d", "add:float16|bfloat16", "*:float64", "capture", "capture:matmul|sum".
void read_missing(const char* name, Settings& out) {
  for (const std::string& part : split(variable(name))) {
    const size_t colon = part.find(':');
    const std::string op = part.substr(0, colon);
    if (op == "capture") {
      if (colon == std::string::npos) out.uncaptured.insert("*");
      for (const std::string& each : split(colon == std::string::npos ? "" : part.substr(colon + 1), '|'))
        out.uncaptured.insert(each);
      continue;
    }
    if (colon == std::string::npos) {
      out.missing.insert(op);
      continue;
    }
    for (const std::string& dtype : split(part.substr(colon + 1), '|')) {
      uint32_t found = 0;
      for (uint32_t each : {PG_B8, PG_I8, PG_I16, PG_I32, PG_I64, PG_U8, PG_F16, PG_BF16, PG_F32, PG_F64})
        if (dtype == pg::dtype_name(each)) found = each;
      if (found == 0) pg::fail_argument(pg::format("%s: there is no dtype '%s' here", name, dtype.c_str()));
      out.missing_dtypes[op].insert(found);
    }
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
  set("PERIGEE_SIM_RACES", [&](auto* n, auto& text) { out.races = number(n, text, 0, 1) == 1; });
  out.links = Links::parse("PERIGEE_SIM_LINKS", variable("PERIGEE_SIM_LINKS"));
  out.delays = VirtualClock::parse("PERIGEE_SIM_CLOCK", variable("PERIGEE_SIM_CLOCK"));
  if (!out.delays.empty()) out.links.set_timeless();
  read_missing("PERIGEE_SIM_MISSING", out);
  return out;
}

}  // namespace sim
