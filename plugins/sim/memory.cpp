// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <cinttypes>
#include <cstring>
#include <new>

namespace sim {
namespace {

constexpr uint64_t kMark = 0x51b7ull << 48;  // not canonical: reading through it faults
constexpr std::align_val_t kAlignment{64};

}  // namespace

// The sanitizers end the process when a throwing new finds no memory; the form that returns null they let through.
Allocation::Allocation(uint64_t bytes)
    : data(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow))), size(bytes) {
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, 0xff, bytes);  // NaN in every float dtype: reading what nobody wrote shows
}

Allocation::~Allocation() { ::operator delete(data, kAlignment); }

uint64_t Memory::alloc(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (limit_ > 0 && bytes > limit_ - used_) {
    throw pg::Error(PG_E_OUT_OF_MEMORY,
                    pg::format("sim:%u has %" PRIu64 " bytes, %" PRIu64 " are in use, %" PRIu64 " were asked for",
                               device_, limit_, used_, bytes));
  }
  auto allocation = std::make_shared<Allocation>(bytes);
  uint64_t buffer = kMark | static_cast<uint64_t>(device_) << 40 | ++serial_;
  allocation->number = serial_;
  live_.emplace(buffer, std::move(allocation));
  used_ += bytes;
  return buffer;
}

std::shared_ptr<Allocation> Memory::find(uint64_t buffer, const char* what) {
  auto found = live_.find(buffer);
  if (found != live_.end()) return found->second;
  uint64_t owner = buffer >> 40 & 0xff, serial = buffer & ((1ull << 40) - 1);
  if ((buffer & (0xffffull << 48)) != kMark || serial == 0) {
    pg::fail_argument(pg::format("%s: 0x%" PRIx64 " is no buffer of sim:%u", what, buffer, device_));
  }
  if (owner != device_) {
    pg::fail_argument(
        pg::format("%s: the buffer belongs to sim:%" PRIu64 ", the call is for sim:%u", what, owner, device_));
  }
  if (serial > serial_) pg::fail_argument(pg::format("%s: buffer %" PRIu64 " was never allocated", what, serial));
  throw pg::Error(PG_E_FAILED_PRECONDITION,
                  pg::format("%s: buffer %" PRIu64 " of sim:%u has been freed", what, serial, device_));
}

void Memory::free(uint64_t buffer, bool lost) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Allocation> allocation = find(buffer, "free");
  if (!lost) order_.check_free(*allocation);
  if (int64_t pending = allocation->pending; pending > 0) {
    throw pg::Error(
        PG_E_FAILED_PRECONDITION,
        pg::format("free: work is pending on the buffer (%" PRId64 " uses); wait for its streams first", pending));
  }
  used_ -= allocation->size;
  live_.erase(buffer);
}

uint64_t Memory::alloc_pinned(uint64_t bytes) {
  auto allocation = std::make_shared<Allocation>(bytes);
  uint64_t address = reinterpret_cast<uintptr_t>(allocation->data);
  std::lock_guard lock(mutex_);
  pinned_.emplace(address, std::move(allocation));
  return address;
}

void Memory::free_pinned(uint64_t address, bool lost) {
  std::lock_guard lock(mutex_);
  auto found = pinned_.find(address);
  if (found == pinned_.end()) pg::fail_argument("free: not the address of pinned memory of this device");
  if (!lost) order_.check_free(*found->second);
  pinned_.erase(found);
}

Touch Memory::pinned(const void* address, uint64_t bytes, bool writes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(mutex_);
  auto next = pinned_.upper_bound(at);
  if (next == pinned_.begin()) return {};
  auto& [begin, allocation] = *std::prev(next);
  if (at + bytes > begin + allocation->size) return {};
  return {allocation, at - begin, at - begin + bytes, writes};
}

Use Memory::use(uint64_t buffer, uint64_t offset, uint64_t bytes, const char* what) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Allocation> allocation = find(buffer, what);
  if (offset > allocation->size || bytes > allocation->size - offset) {
    pg::fail_argument(pg::format("%s: bytes %" PRIu64 "..%" PRIu64 " of a buffer of %" PRIu64 " bytes", what, offset,
                                 offset + bytes, allocation->size));
  }
  return Use(std::move(allocation), offset, bytes);
}

uint64_t Memory::used() {
  std::lock_guard lock(mutex_);
  return used_;
}

bool Memory::empty() {
  std::lock_guard lock(mutex_);
  return live_.empty() && pinned_.empty();
}

}  // namespace sim
