// SPDX-License-Identifier: Apache-2.0
// One collective of a group: each member's stream comes to it, waits for the others, and goes on when all is done.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clock.hpp"
#include "collectives.hpp"
#include "link.hpp"
#include "memory.hpp"

namespace sim {

// A member's part of it.
struct Part {
  bool takes_part = true;  // of a row of sends and receives some may not
  uint32_t kind = 0, reduction = 0, dtype = 0;
  int32_t peer = 0, tag = 0;
  uint64_t count = 0;
  Use input, output;
};

class Meeting {
 public:
  Meeting(std::shared_ptr<Team> team, std::vector<Part> parts, const Links& links, std::string what, double deadline);

  std::vector<Hop> hops_of(size_t member) const;  // the member's own transfers
  void come(size_t member);                       // on the member's stream; throws what has gone wrong at any of them
  void miss(size_t member);                       // the stream skips it, since what came before has failed
  void hold_last() { held_ = true; }              // the last member's stream is held until the call has failed
  // At the first that comes: all fail with this.
  void fail_at_once(std::string why) { fault_ = std::move(why); }

 private:
  using Time = Links::Time;
  void take_part(std::unique_lock<std::mutex>& lock, size_t member);
  void let_go(size_t member);
  void fail(int32_t code, const std::string& why);
  void wait_until(std::unique_lock<std::mutex>& lock, Time when, const char* doing);
  std::string absent() const;
  size_t expected() const;

  const std::shared_ptr<Team> team_;
  std::vector<Part> parts_;
  const Links& links_;
  const std::string what_;
  const double deadline_;
  const Time late_;
  std::string fault_;
  bool held_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> come_, done_;
  bool moved_ = false, failed_ = false;  // moved: the bytes, once all have come
  int32_t code_ = PG_OK;
  std::string why_;
};

// A member's place in a meeting: says that it was missed where the stream drops it.
class Seat {
 public:
  Seat(std::shared_ptr<Meeting> meeting, size_t member) : meeting_(std::move(meeting)), member_(member) {}
  Seat(const Seat&) = delete;
  ~Seat() {
    if (!taken_) meeting_->miss(member_);
  }
  void take() {
    taken_ = true;
    meeting_->come(member_);
  }

 private:
  std::shared_ptr<Meeting> meeting_;
  size_t member_;
  bool taken_ = false;
};

// What a collective writes, from all members' inputs, which may be their outputs.
void compute_collective(std::vector<Part>& parts);

}  // namespace sim
