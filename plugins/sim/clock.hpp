// SPDX-License-Identifier: Apache-2.0
// A clock that only what is set moves on: each launch takes the microseconds of its operator, transfers what their link
// takes, and the host nothing; what a stream is given begins when the stream, what it waits for, and the host are that
// far. Times are decided when work is submitted, in its order, so that a program which submits the same takes the same
// time on every machine, however loaded. Profiles and elapsed times of events tell them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "link.hpp"

namespace sim {

struct Period {  // nanoseconds of the clock
  int64_t begin = 0, end = 0;
};

struct Hop {  // a transfer
  int32_t from, to;
  uint64_t bytes;
};

class VirtualClock {
 public:
  // "matmul:1000,*:5": microseconds of an operator's launch; `*` is every other's. Empty: there is no such clock, and
  // nothing below does anything.
  static std::map<std::string, int64_t> parse(const char* variable, const std::string& text);

  VirtualClock(std::map<std::string, int64_t> delays, const Links& links)
      : delays_(std::move(delays)), links_(links), on_(!delays_.empty()) {}
  bool on() const { return on_; }

  Period launch(uint64_t stream, const std::string& what);
  Period transfer(uint64_t stream, const Hop& hop);  // when the stream and the link are free
  // A collective: members begin together, each makes its own hops, and none is through before all are.
  Period meet(const std::vector<uint64_t>& streams, const std::vector<std::vector<Hop>>& hops);
  int64_t record(uint64_t stream);  // when all that it has been given is over
  void wait(uint64_t stream, int64_t time);
  void wait_on_host(int64_t time);
  bool has_passed(
      int64_t time);  // looking takes the host a while, else one that looks again and again would never see it
  void forget(uint64_t stream);

  // What a profile is told: the host's clock at `start_telling` and what has passed since.
  void start_telling(int64_t now);
  Period told(Period period);

 private:
  int64_t free_at(uint64_t stream);             // mutex held
  int64_t carry(int64_t from, const Hop& hop);  // mutex held; answers when it is over

  const std::map<std::string, int64_t> delays_;  // nanoseconds
  const Links& links_;
  const bool on_;
  std::mutex mutex_;
  int64_t host_ = 0, offset_ = 0;
  std::map<uint64_t, int64_t> streams_;
  std::map<std::pair<int32_t, int32_t>, int64_t> lanes_;  // by direction
};

}  // namespace sim
