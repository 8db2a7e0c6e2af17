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

std::string end_name(int32_t end) { return end == kHost ? "the host" : pg::format("sim:%d", end); }

}  // namespace

Links Links::parse(const char* variable, const std::string& text) {
  Links out;
  out.lanes_ = std::make_shared<std::map<std::pair<int32_t, int32_t>, Lane>>();
  for (int32_t a = kHost; a < kMost; a++)
    for (int32_t b = kHost; b < kMost; b++) (*out.lanes_)[{a, b}];
  for (const std::string& part : split(text)) {
    const size_t colon = part.find(':'), slash = part.find('/');
    if (colon == std::string::npos) {
      pg::fail_argument(
          pg::format("%s: '%s' is not like 0-1:10GB/5 (bytes a second, microseconds)", variable, part.c_str()));
    }
    LinkSpeed speed;
    const bool is_cut = part.substr(colon + 1) == "cut";
    const std::string rate = part.substr(colon + 1, slash == std::string::npos ? slash : slash - colon - 1);
    if (!rate.empty() && !is_cut) speed.bytes_per_second = static_cast<double>(bytes(variable, rate));
    if (slash != std::string::npos) speed.latency = number(variable, part.substr(slash + 1), 0, 10'000'000);
    const std::string link = part.substr(0, colon);
    if (link == "*") {
      if (is_cut) pg::fail_argument(pg::format("%s: '%s' does not name the link that is cut", variable, part.c_str()));
      out.others_ = speed;
      continue;
    }
    const size_t dash = link.find('-');
    const int32_t a = end_of(variable, part, link.substr(0, dash)),
                  b = end_of(variable, part, dash == std::string::npos ? "" : link.substr(dash + 1));
    if (a == b) pg::fail_argument(pg::format("%s: '%s' has one end only", variable, part.c_str()));
    if (is_cut) {
      out.cut(a, b, true);
      continue;
    }
    out.speeds_[std::minmax(a, b)] = speed;
  }
  return out;
}

double Links::seconds(int32_t from, int32_t to, uint64_t bytes) const {
  if (from == to) return 0;
  auto found = speeds_.find(std::minmax(from, to));
  const LinkSpeed speed = found == speeds_.end() ? others_ : found->second;
  const double latency = static_cast<double>(speed.latency) * 1e-6;
  return speed.bytes_per_second > 0 ? latency + static_cast<double>(bytes) / speed.bytes_per_second : latency;
}

Links::Time Links::reserve(int32_t from, int32_t to, uint64_t bytes) const {
  const Time now = std::chrono::steady_clock::now();
  if (from == to) return now;
  const double seconds = timeless_ ? 0 : this->seconds(from, to, bytes);
  Lane& lane = lanes_->at({from, to});
  std::lock_guard lock(lane.mutex);
  if (lane.cut)
    pg::fail(PG_E_FAILED_PRECONDITION, "the link from " + end_name(from) + " to " + end_name(to) + " is cut");
  if (seconds <= 0) return now;
  lane.free = std::max(lane.free, now) +
              std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  return lane.free;
}

void Links::transfer(int32_t from, int32_t to, uint64_t bytes) const {
  std::this_thread::sleep_until(reserve(from, to, bytes));
}

void Links::cut(int32_t a, int32_t b, bool off) const {
  for (const auto& direction : {std::pair(a, b), std::pair(b, a)}) {
    Lane& lane = lanes_->at(direction);
    std::lock_guard lock(lane.mutex);
    lane.cut = off;
  }
}

}  // namespace sim
