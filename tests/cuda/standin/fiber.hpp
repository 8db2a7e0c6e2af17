// SPDX-License-Identifier: Apache-2.0
// Fibers: stacks that one thread switches between. AddressSanitizer is told of every switch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

// The entry of a fiber never returns: it switches away for good.
using FiberEntry = void (*)();

class Fiber {
 public:
  // The one that is running: has no stack of its own.
  Fiber() = default;
  explicit Fiber(FiberEntry entry);
  Fiber(const Fiber&) = delete;
  ~Fiber();

  // Leaves `from`, which is running, and goes on in this one. Returns when somebody switches to `from` again.
  void switch_from(Fiber& from);
  // First thing in an entry.
  static void entered();

 private:
  static void arrived(void* fake_stack);

  void* stack_pointer_ = nullptr;
  char* mapped_ = nullptr;  // a guard page, then the stack; NULL for the one that was running
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace emulator
