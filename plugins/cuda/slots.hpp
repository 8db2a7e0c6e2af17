// SPDX-License-Identifier: Apache-2.0
// Fault records in pinned memory, which every device may write and the host reads. Few and small, so they are taken
// from slabs that stay until the plugin is closed.
#pragma once

#include <mutex>
#include <vector>

#include "fault.hpp"

namespace cuda {

class Slots {
 public:
  ~Slots();
  FaultRecord* take();  // zeroed; a device must be current
  void give(FaultRecord* slot) noexcept;

 private:
  static constexpr int kSlab = 128;
  std::mutex mutex_;
  std::vector<FaultRecord*> free_, slabs_;
};

}  // namespace cuda
