// SPDX-License-Identifier: Apache-2.0
// Processes as threads: what each of them begins is added up by the one that comes last, into the memory of all, while
// nobody else may touch it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "reduce/wire.hpp"

namespace perigee::test {

// What all ranks share: sums of float32, and largest numbers of int32. Calls of one sort meet by their order.
class Meeting {
 public:
  explicit Meeting(int32_t ranks) : ranks_(ranks) {}
  int32_t ranks() const { return ranks_; }

  struct Part {
    void* data;
    int64_t count;
    bool mean;
  };
  enum Sort { sums, numbers };
  // `call`: the rank's of this sort, from 1.
  void come(Sort sort, uint64_t call, const Part& part) {
    std::lock_guard guard(mutex_);
    if (calls_[sort].size() < call) calls_[sort].resize(call);
    std::vector<Part>& parts = calls_[sort][call - 1];
    parts.push_back(part);
    if (parts.size() == static_cast<size_t>(ranks_)) meet(sort, parts);
    changed_.notify_all();
  }
  bool is_over(Sort sort, uint64_t call) {
    std::lock_guard guard(mutex_);
    return calls_[sort][call - 1].size() == static_cast<size_t>(ranks_);
  }
  void wait(Sort sort, uint64_t call) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return broken_ || calls_[sort][call - 1].size() == static_cast<size_t>(ranks_); });
    if (broken_) throw std::runtime_error("another rank has failed");
  }
  // A rank has failed: nobody waits for it.
  void break_off() {
    std::lock_guard guard(mutex_);
    broken_ = true;
    changed_.notify_all();
  }
  // Of calls that ranks have not made alike.
  int mismatches() const { return mismatches_; }

 private:
  void meet(Sort sort, const std::vector<Part>& parts) {
    for (const Part& p : parts)
      if (p.count != parts[0].count) {
        mismatches_++;
        return;
      }
    for (int64_t i = 0; i < parts[0].count; i++) sort == numbers ? take_largest(parts, i) : add_one(parts, i);
  }
  static void take_largest(const std::vector<Part>& parts, int64_t i) {
    int32_t most = static_cast<int32_t*>(parts[0].data)[i];
    for (const Part& p : parts) most = std::max(most, static_cast<int32_t*>(p.data)[i]);
    for (const Part& p : parts) static_cast<int32_t*>(p.data)[i] = most;
  }
  static void add_one(const std::vector<Part>& parts, int64_t i) {
    float all = 0;
    for (const Part& p : parts) all += static_cast<float*>(p.data)[i];
    for (const Part& p : parts) static_cast<float*>(p.data)[i] = p.mean ? all / static_cast<float>(parts.size()) : all;
  }

  const int32_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<Part>> calls_[2];
  int mismatches_ = 0;
  bool broken_ = false;
};

// One rank's. What it has done is counted for the test, which looks when the thread has ended.
struct WireCounts {
  int sums = 0, means = 0, abandoned = 0;
};

class FakeWire final : public Wire {
 public:
  FakeWire(Meeting& meeting, WireCounts& counts, bool beside = true)
      : meeting_(meeting), counts_(counts), beside_(beside) {}

  int32_t size() const override { return meeting_.ranks(); }
  bool runs_beside(const Device&) const override { return beside_; }
  uint64_t begin(const Row& row, const SumKind& kind) override {
    (kind.mean ? counts_.means : counts_.sums)++;
    meeting_.come(Meeting::sums, ++sums_, {data(*row[0]), row[0]->meta->numel, kind.mean});
    return sums_;
  }
  bool look(uint64_t request) override { return meeting_.is_over(Meeting::sums, request); }
  void finish(uint64_t request) override { meeting_.wait(Meeting::sums, request); }
  void sum(Tensor& x) override { finish(begin({&x}, {})); }
  void largest(int32_t* numbers, uint32_t count) override {
    meeting_.come(Meeting::numbers, ++numbers_, {numbers, count, false});
    meeting_.wait(Meeting::numbers, numbers_);
  }
  void abandon(uint64_t request, std::vector<TensorRef>) noexcept override {
    counts_.abandoned++;
    try {
      finish(request);
    } catch (const std::runtime_error&) {  // whose test has failed already
    }
  }

  static void* data(Tensor& x) {
    const pg_address at = x.address();
    return reinterpret_cast<void*>(at.buffer + at.offset);
  }

 private:
  Meeting& meeting_;
  WireCounts& counts_;
  const bool beside_;
  uint64_t sums_ = 0, numbers_ = 0;
};

}  // namespace perigee::test
