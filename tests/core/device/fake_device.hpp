// SPDX-License-Identifier: Apache-2.0
// A device inside the test program. Asynchronous by default: what is submitted to a stream happens when the test calls
// run(), or when somebody synchronises. Failures are injected by number.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "device/device.hpp"
#include "plugin/loader.hpp"

namespace perigee::test {

struct FakeOptions {
  bool synchronous = false, peer = false, no_handles = false;  // no_handles: alloc says OK and gives nothing
  uint64_t memory = 0;                                         // bytes the device has; 0: plenty
  uint32_t alignment = 64;
  std::string type = "fake";
};

// The plugin's side.
class FakePlugin {
 public:
  explicit FakePlugin(FakeOptions options);
  ~FakePlugin();

  LoadedPlugin loaded;
  FakeOptions options;
  pg_device table{};

  // Runs what the stream with this index (in order of creation, from 0) holds; `count` operations at most.
  void run(uint32_t stream, size_t count = SIZE_MAX);
  size_t pending(uint32_t stream);
  // An operation that the stream will report as failed at its next synchronisation.
  void submit_failure(uint32_t stream, uint64_t sequence, std::string message, uint32_t flags = 0);

  uint64_t allocated = 0;  // bytes of device memory
  std::set<uint64_t> buffers, pinned;
  int allocations = 0, fail_allocation = 0, peer_copies = 0,
      live_events = 0;  // fail_allocation: the nth from now fails

 private:
  friend struct FakeTable;
  struct Stream {
    uint32_t device = 0;
    std::deque<std::function<void()>> work;
    int64_t failed = 0;
    std::string message;
    uint32_t flags = 0;
  };
  Stream& at(uint64_t handle) { return streams_.at(handle - 1); }
  std::recursive_mutex mutex_;
  std::deque<Stream> streams_;
  std::map<uint64_t, uint64_t> sizes_;
  std::map<uint64_t, std::shared_ptr<bool>> events_;  // what the last record will set
  uint64_t next_event_ = 1;
};

// One device of it, as the core makes them.
std::unique_ptr<Device> make_device(FakePlugin& plugin, uint32_t ordinal = 0, int32_t id = 200);

}  // namespace perigee::test
