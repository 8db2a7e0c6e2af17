// SPDX-License-Identifier: Apache-2.0
// A group: a communicator for each member that this process has, what is pending on them, and whether it is broken.
#pragma once

#include <functional>
#include <mutex>

#include "calls.hpp"
#include "pending.hpp"

namespace nccl {

constexpr const char* kType = "cuda";  // whose devices

class Group {
 public:
  // What is told about a member's device whose stream holds results of a call that failed.
  using Report = std::function<void(uint32_t device, const pg::Error& error)>;

  Group(const pg_device_group& info, Report report);  // returns when all processes have made it
  Group(const Group&) = delete;
  ~Group();

  void submit(uint32_t rows, const pg_collective* const* calls);
  void abort(const std::string& reason);
  bool watch();  // looks after what is pending; whether something is
  bool has(uint32_t device) const;

 private:
  struct Member {
    uint32_t device = 0;  // as the host counts
    int ordinal = 0;      // as CUDA does
    ncclComm_t comm = nullptr;
    EventPool events;
    void* spare = nullptr;
  };
  struct Part {  // one member's of one row
    const pg_collective* call = nullptr;
    cudaStream_t stream = nullptr;
    const void* input = nullptr;
    void* output = nullptr;
    size_t read = 0, written = 0;  // bytes
  };
  using Parts = std::vector<Part>;  // row by row

  void agree(const pg_device_group& info, ncclUniqueId& id);
  void connect(const ncclUniqueId& id);
  void settle(const std::string& what, Clock::time_point late, double allowed);
  void look();
  Parts read_parts(uint32_t rows, const pg_collective* const* calls);
  void mark(Pending& pending, const Parts& parts);
  size_t batch_end(const Parts& parts, size_t row) const;
  void queue(const Parts& parts, size_t row, size_t end);
  bool is_over(Pending& pending);
  std::string late_text(const Pending& pending);
  std::string name(size_t member) const;
  void break_up(int32_t code, const std::string& why) noexcept;
  void recycle(Pending& pending);
  void close() noexcept;

  std::mutex mutex_;
  std::vector<Member> members_;
  size_t total_ = 0, first_ = 0;
  bool alone_ = true;  // no other process has members
  void* context_ = nullptr;
  int32_t (*look_)(void*, pg_error*) = nullptr;
  Clock::time_point next_look_{};
  std::deque<Pending> pending_;
  std::string broken_;  // why; empty: it works
  int32_t code_ = PG_OK;
  const Report report_;
};

}  // namespace nccl
