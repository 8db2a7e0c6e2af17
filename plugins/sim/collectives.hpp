// SPDX-License-Identifier: Apache-2.0
// Collectives over simulated devices (pg.device_collectives/0): the members' streams meet in each call, what would
// travel takes its time on the links, and what goes wrong at one member goes wrong at all.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "perigee/device_collectives.h"
#include "perigee/plugin.hpp"

namespace sim {

class Device;

constexpr const char* kSwitch = "device_collectives";  // in PERIGEE_SIM_MISSING: there are none

// What members of a group have in common.
struct Team {
  std::vector<uint32_t> devices;  // by member
  std::mutex mutex;
  std::string broken;  // why; empty: it works
  int32_t code = PG_OK;
  void fail(int32_t with, const std::string& why);  // the first reason stays
  void check();                                     // throws where it is broken
};

class Collectives {
 public:
  explicit Collectives(Device& device) : device_(device) {}

  uint64_t create(const pg_device_group& info);
  void destroy(uint64_t group);
  void submit(uint64_t group, uint32_t rows, const pg_collective* const* calls);
  void abort(uint64_t group, const char* reason);
  bool busy();  // there are groups

 private:
  std::shared_ptr<Team> find(uint64_t group);
  void queue_row(const std::shared_ptr<Team>& team, const pg_collective* const* row);

  Device& device_;
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::map<uint64_t, std::shared_ptr<Team>> teams_;
};

}  // namespace sim
