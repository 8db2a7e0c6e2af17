// SPDX-License-Identifier: Apache-2.0
// What a Device keeps to itself, shared by device.cpp and device_copy.cpp.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace perigee {

struct Device::State {
  static constexpr uint32_t kStreams = 32;
  static constexpr uint64_t kRing = 4096;  // operators whose names are remembered

  std::mutex mutex;  // creation of streams, events, pinned memory; never held while the plugin waits for anything
  std::array<std::atomic<uint64_t>, kStreams> streams{};
  std::array<std::recursive_mutex, kStreams> submission;
  std::array<std::optional<pg::Error>, kStreams> failure;  // seen by drain, raised by synchronize; guarded by mutex

  std::atomic<uint64_t> next_sequence{1};
  std::array<std::atomic<const char*>, kRing> names{}, origins{};

  std::vector<uint64_t> events, free_events;        // all, and those that nobody has
  std::array<std::vector<Pinned>, 64> free_pinned;  // by the logarithm of the size
  struct Staged {
    Pinned pinned;
    Event event;
  };
  std::deque<Staged> staged;  // uploads in flight, oldest first
  uint64_t staged_bytes = 0;

  // Whose collectives run on this device's streams without making them fail, and what has failed of them.
  std::atomic<LoadedPlugin*> engine{nullptr};
  std::optional<pg::Error> collective_failure;  // guarded by mutex

  std::atomic<bool> lost{false}, closed{false}, no_peer{false};
  std::string lost_reason;  // written once, before `lost`
};

}  // namespace perigee
