// SPDX-License-Identifier: Apache-2.0
// All groups, the thread that looks after what is pending, and failures until the host asks for them.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "group.hpp"

namespace nccl {

class Engine {
 public:
  Engine();
  ~Engine();
  uint64_t create(const pg_device_group& info);
  void destroy(uint64_t group);
  void submit(uint64_t group, uint32_t rows, const pg_collective* const* calls);
  void abort(uint64_t group, const char* reason);
  void take_failure(uint32_t device);  // throws it
  bool busy();                         // there are groups
  void stop();                         // the thread

 private:
  std::shared_ptr<Group> find(uint64_t group);
  std::vector<std::shared_ptr<Group>> groups();
  void watch();

  std::mutex mutex_;  // taken within a group's; never the other way
  std::map<uint64_t, std::shared_ptr<Group>> groups_;
  std::map<uint32_t, pg::Error> failures_;  // by device: the first
  uint64_t last_ = 0;
  std::condition_variable woken_;
  bool pending_ = false, stopping_ = false;
  std::thread thread_;  // since there was a group
};

}  // namespace nccl
