// SPDX-License-Identifier: Apache-2.0
// What the calling thread does and when, while it is asked to note that. Off, a place that could be noted costs one
// load of a word that operators read anyway; on, two readings of the clock and 64 bytes of memory that is there
// already.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/ambient.hpp"

namespace perigee {

enum class ProfileKind : uint32_t {
  op = 1,    // a call of an operator: all that it takes on the host
  kernel,    // its kernel: the computation on a synchronous device, the submission on an asynchronous one
  backward,  // an operator's gradient rule, with the operators that it calls
  upload,    // bytes from the host to a device
  download,  // and back; on an asynchronous device with what was waited for
  peer,      // bytes from device to device
  wait,      // for a stream
  alloc,     // of memory: `end` is the block's number
  free,
  range,  // named by the script
};

// pgc_profile_record of bindings/c/perigee.h. All texts outlive the process's profiles.
struct ProfileRecord {
  int64_t begin, end;  // nanoseconds of the monotonic clock
  const char *name, *shapes, *origin, *layer;
  uint64_t bytes;
  ProfileKind kind;
  int32_t device;  // -1: none
};
static_assert(sizeof(ProfileRecord) == 64);

int64_t profile_now();

// The last records of a thread. The place of the oldest one is used again when there is no other.
class Profile {
 public:
  explicit Profile(uint64_t capacity);  // of records, rounded up to a power of two
  void add(const ProfileRecord& record) { ring_[count_++ & mask_] = record; }
  void arrange();  // the oldest record first
  const ProfileRecord* records() const { return ring_.get(); }
  uint64_t count() const { return count_ < mask_ + 1 ? count_ : mask_ + 1; }
  uint64_t lost() const { return count_ - count(); }

 private:
  uint64_t mask_, count_ = 0;
  std::unique_ptr<ProfileRecord[]> ring_;
};

// From its making to done(). What throws is not noted.
class ProfileSpan {
 public:
  ProfileSpan() : begin_(ambient().profile != nullptr ? profile_now() : 0) {}
  bool on() const { return begin_ != 0; }
  void done(ProfileKind kind, const char* name, int32_t device, uint64_t bytes = 0, const char* shapes = nullptr) {
    if (!on()) [[likely]]
      return;
    note(kind, name, device, bytes, shapes);
  }

 private:
  void note(ProfileKind kind, const char* name, int32_t device, uint64_t bytes, const char* shapes);
  int64_t begin_;
};

// A block of memory that is taken or given back.
void profile_memory(ProfileKind kind, const char* what, const char* layer, const char* origin, uint64_t bytes,
                    const void* block, int32_t device);

// The same text, kept until the process ends: equal texts give one pointer.
const char* interned(std::string_view text);

}  // namespace perigee
