// SPDX-License-Identifier: Apache-2.0
// What happens before what, by vector clocks: a stream counts its tasks, and knows which tasks of others are over when
// its next one begins, because it waited for their events or the host did. Two tasks that touch the same bytes, one of
// them writing, must be ordered so; whether they would have met in time does not matter. Everything is decided when
// work is submitted, so the same program gives the same answer however fast its streams are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sim {

struct Allocation;

using Clock = std::map<uint64_t, uint64_t>;  // stream -> how many of its tasks are over
using Snapshot = std::shared_ptr<const Clock>;

// A task, as others remember it.
struct Past {
  uint64_t stream = 0, task = 0, sequence = 0;
  const char* what = nullptr;  // lives as long as the process
};

// Who has touched the bytes of an allocation since the last write: disjoint spans by their first byte.
struct Span {
  uint64_t end = 0;
  Past write;               // stream 0: none
  std::vector<Past> reads;  // one a stream
};
using Spans = std::map<uint64_t, Span>;

struct Touch {
  std::shared_ptr<Allocation> of;
  uint64_t begin, end;
  bool writes;
};

// Does nothing, and gives empty snapshots, where it is not `on`.
class Order {
 public:
  explicit Order(bool on) : on_(on) {}
  bool on() const { return on_; }

  void add_stream(uint64_t stream, uint32_t device);
  // A task of `stream`. Throws a pg::Error that names both tasks where another one may touch the same bytes meanwhile.
  void submit(uint64_t stream, const char* what, uint64_t sequence, const std::vector<Touch>& touches);
  // The bytes that a copy just submitted will read from memory of the host: they must be the same when the host has
  // waited for it.
  void watch(uint64_t stream, uint64_t sequence, const Touch& source);
  Snapshot record(uint64_t stream);  // what is over once all of it so far is
  void wait(uint64_t stream, const Snapshot& event);
  void wait_on_host(const Snapshot& event);  // throws where a watched source has changed meanwhile
  bool known_on_host(const Snapshot& event);
  // Throws where a task that the host has not waited for touches it.
  void check_free(Allocation& allocation);

 private:
  struct Source {
    Past task;
    Touch bytes;
    uint64_t digest;
  };
  void touch(const Past& task, const Clock& before, const Touch& touch);
  std::string name(const Past& task) const;
  bool over(const Past& task, const Clock& clock) const;

  const bool on_;
  std::mutex mutex_;
  std::map<uint64_t, uint32_t> devices_;  // of streams
  std::map<uint64_t, Clock> clocks_;      // of streams
  Clock host_;
  std::vector<Source> sources_;
};

}  // namespace sim
