// SPDX-License-Identifier: Apache-2.0
// The memory of one simulated device. A buffer is a number that is no address: high bits that no processor accepts as
// one, the device, a serial number that is never used again. So a host that dereferences it crashes at once, and use
// after free is told from nonsense.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "order.hpp"
#include "perigee/plugin.hpp"

namespace sim {

struct Allocation {
  explicit Allocation(uint64_t bytes);
  ~Allocation();
  std::byte* data;
  uint64_t size, number = 0;        // the number is a buffer's, in messages
  Spans spans;                      // Order's
  std::atomic<int64_t> pending{0};  // queued tasks that use it
};

// A task's hold on a buffer: keeps the bytes alive and counts as pending work until it is destroyed.
class Use {
 public:
  Use() = default;
  Use(std::shared_ptr<Allocation> of, uint64_t offset, uint64_t bytes)
      : of_(std::move(of)), offset_(offset), bytes_(bytes) {
    of_->pending++;
  }
  Use(const Use& other) : of_(other.of_), offset_(other.offset_), bytes_(other.bytes_) {
    if (of_) of_->pending++;
  }
  Use(Use&& other) noexcept : of_(std::move(other.of_)), offset_(other.offset_), bytes_(other.bytes_) {}
  Use& operator=(Use other) noexcept {
    std::swap(of_, other.of_);
    std::swap(offset_, other.offset_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Use() {
    if (of_) of_->pending--;
  }
  std::byte* data() const { return of_ ? of_->data + offset_ : nullptr; }
  uint64_t bytes() const { return bytes_; }
  Touch touch(bool writes) const { return {of_, offset_, offset_ + bytes_, writes}; }

 private:
  std::shared_ptr<Allocation> of_;
  uint64_t offset_ = 0, bytes_ = 0;
};

class Memory {
 public:
  Memory(uint32_t device, uint64_t limit, Order& order) : device_(device), limit_(limit), order_(order) {}

  uint64_t alloc(uint64_t bytes);
  void free(uint64_t buffer, bool lost);  // lost: nothing runs there any more
  uint64_t alloc_pinned(uint64_t bytes);  // the address
  void free_pinned(uint64_t address, bool lost);

  // [offset, offset + bytes) of a buffer; throws with `what` in the message when that is not all inside a live one.
  Use use(uint64_t buffer, uint64_t offset, uint64_t bytes, const char* what);

  // Where the address lies in pinned memory of this device; else what touches nothing.
  Touch pinned(const void* address, uint64_t bytes, bool writes);

  uint64_t limit() const { return limit_; }
  uint64_t used();
  bool empty();

 private:
  std::shared_ptr<Allocation> find(uint64_t buffer, const char* what);

  const uint32_t device_;
  const uint64_t limit_;
  Order& order_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Allocation>> live_;
  std::map<uint64_t, std::shared_ptr<Allocation>> pinned_;
  uint64_t serial_ = 0, used_ = 0;
};

}  // namespace sim
