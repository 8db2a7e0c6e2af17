// SPDX-License-Identifier: Apache-2.0
#include "link.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "settings.hpp"

namespace sim {
namespace {

constexpr int32_t kMost = 8;  // devices

int32_t end_of(const char* variable, const std::string& link, const std::string& text) {
  if (text == "host") return kHost;
  if (text.size() == 1 && text[0] >= '0' && text[0] < '0' + kMost) return text[0] - '0';
  pg::fail_argument(pg::format("%s: '%s' is not between two of host, 0, ..., 7", variable, link.c_str()));
}

}  // namespace

Links Links::parse(const char* variable, const std::string& text) {
  Links out;
  for (const std::string& part : split(text)) {
    const size_t colon = part.find(':'), slash = part.find('/');
    if (colon == std::string::npos) {
      pg::fail_argument(
          pg::format("%s: '%s' is not like 0-1:10GB/5 (bytes a second, microseconds)", variable, part.c_str()));
    }
    LinkSpeed speed;
    const std::string rate = part.substr(colon + 1, slash == std::string::npos ? slash : slash - colon - 1);
    if (!rate.empty()) speed.bytes_per_second = static_cast<double>(bytes(variable, rate));
    if (slash != std::string::npos) speed.latency = number(variable, part.substr(slash + 1), 0, 10'000'000);
    const std::string link = part.substr(0, colon);
    if (link == "*") {
      out.others_ = speed;
      continue;
    }
    const size_t dash = link.find('-');
    const int32_t a = end_of(variable, part, link.substr(0, dash)),
                  b = end_of(variable, part, dash == std::string::npos ? "" : link.substr(dash + 1));
    if (a == b) pg::fail_argument(pg::format("%s: '%s' has one end only", variable, part.c_str()));
    out.speeds_[std::minmax(a, b)] = speed;
  }
  out.lanes_ = std::make_shared<std::map<std::pair<int32_t, int32_t>, Lane>>();
  for (int32_t a = kHost; a < kMost; a++)
    for (int32_t b = kHost; b < kMost; b++) (*out.lanes_)[{a, b}];
  return out;
}

void Links::transfer(int32_t from, int32_t to, uint64_t bytes) const {
  if (from == to || !any()) return;
  auto found = speeds_.find(std::minmax(from, to));
  const LinkSpeed speed = found == speeds_.end() ? others_ : found->second;
  double seconds = static_cast<double>(speed.latency) * 1e-6;
  if (speed.bytes_per_second > 0) seconds += static_cast<double>(bytes) / speed.bytes_per_second;
  if (seconds <= 0) return;
  std::lock_guard lock(lanes_->at({from, to}).busy);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

}  // namespace sim
