// SPDX-License-Identifier: Apache-2.0
// Links between devices, and between the host and a device: what goes over one takes its latency and its share of the
// bandwidth, one transfer after the other in each direction. One that is cut carries nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace sim {

constexpr int32_t kHost = -1;

struct LinkSpeed {
  double bytes_per_second = 0;  // 0: no limit
  int64_t latency = 0;          // microseconds
};

class Links {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // "0-1:10GB/5,host-0:1GB/20,*:2GB,2-3:cut": from one to the other and back; `*` is every link that is not named.
  static Links parse(const char* variable, const std::string& text);

  void transfer(int32_t from, int32_t to, uint64_t bytes) const;  // takes as long as that takes; throws where it is cut
  // Takes the link's next free time for a transfer; answers when that is over, without waiting. Throws where it is cut.
  Time reserve(int32_t from, int32_t to, uint64_t bytes) const;
  double seconds(int32_t from, int32_t to, uint64_t bytes) const;  // that a transfer takes
  void cut(int32_t a, int32_t b, bool off) const;                  // or mends it
  void set_timeless() { timeless_ = true; }                        // what takes time takes it on another clock

 private:
  struct Lane {
    std::mutex mutex;
    Time free{};  // when what goes over it is over
    bool cut = false;
  };
  std::map<std::pair<int32_t, int32_t>, LinkSpeed> speeds_;  // the lower number first
  LinkSpeed others_;
  bool timeless_ = false;
  std::shared_ptr<std::map<std::pair<int32_t, int32_t>, Lane>> lanes_;  // by direction; made at once
};

}  // namespace sim
