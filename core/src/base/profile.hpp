// SPDX-License-Identifier: Apache-2.0
// What threads do and when, while that is asked for. Each thread notes into memory of its own that is there already;
// off, a place that could be noted costs one load of a word that operators read anyway, on, two readings of the
// processor's counter and 80 bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/ambient.hpp"

namespace perigee {

enum class ProfileKind : uint32_t {
  op = 1,    // a call of an operator: all that it takes on the host
  kernel,    // its kernel, on the device; on a synchronous one the thread that called it computes
  launch,    // submission of a kernel or of a copy to an asynchronous device
  backward,  // an operator's gradient rule, with the operators that it calls; or the whole pass
  upload,    // bytes from the host to a device
  download,  // and back; on an asynchronous device with what was waited for
  peer,      // bytes from device to device
  wait,      // for a stream
  alloc,     // of memory: `sequence` is the block's number
  free,
  range,      // named by the script
  stage,      // of a pipeline, an element or a batch of it
  optimizer,  // a step of one
  plan,       // a run of a graph or of a compiled function, whose kernels it launches
};

// pgc_profile_record of bindings/c/perigee.h. All texts outlive the process's profiles. Times are ticks of
// profile_now() until the session is collected, and nanoseconds of CLOCK_MONOTONIC from then on.
struct ProfileRecord {
  int64_t begin, end;
  const char *name, *shapes, *origin, *layer;
  uint64_t bytes;
  uint64_t sequence;  // of work on an asynchronous device; 0: none
  ProfileKind kind;
  int32_t device;   // -1: none
  uint32_t thread;  // 0: the one that asked for the profile; kProfileDevice: the device itself
  uint32_t stream;  // of the device, counted from 0 in the order in which they first show
};
static_assert(sizeof(ProfileRecord) == 80);
constexpr uint32_t kProfileDevice = UINT32_MAX;

int64_t profile_now();  // ticks: of the processor's counter where that never stops or changes its pace
int64_t monotonic_ns();

// The last records of a thread. The place of the oldest one is used again when there is no other.
class Profile {
 public:
  explicit Profile(uint64_t capacity, uint32_t thread = 0);  // of records, rounded up to a power of two
  void add(const ProfileRecord& record) {
    if (thread_ != 0) return add_shared(record);
    put(record);
  }
  void arrange();  // the oldest record first
  const ProfileRecord* records() const { return ring_.get(); }
  ProfileRecord& at(uint64_t number) { return ring_[number & mask_]; }  // of all since the beginning, where it is kept
  uint64_t count() const { return count_ < mask_ + 1 ? count_ : mask_ + 1; }
  uint64_t lost() const { return count_ - count(); }
  uint32_t thread() const { return thread_; }
  void close();  // nothing more is taken: of threads that may be at work while the session is collected

 private:
  void put(const ProfileRecord& record) {
    ProfileRecord& place = ring_[count_++ & mask_];
    place = record;
    place.thread = thread_;
  }
  void add_shared(const ProfileRecord& record);
  uint64_t mask_, count_ = 0;
  std::unique_ptr<ProfileRecord[]> ring_;
  const uint32_t thread_;
  std::mutex mutex_;  // of threads but the first
  bool closed_ = false;
};

// One profile of the process: the thread that asked for it, and threads that help it while they do.
class ProfileSession {
 public:
  explicit ProfileSession(uint64_t capacity);
  Profile& first() { return *threads_[0]; }
  Profile& add_thread(const char* name);
  // Takes no more from other threads, and answers all records with their times in nanoseconds, by their ends, and how
  // many had no room. `device_records` come from devices, in nanoseconds.
  std::vector<ProfileRecord> collect(std::vector<ProfileRecord> device_records, uint64_t& lost);
  std::vector<std::string> thread_names() const;
  int64_t begin_ns() const { return begin_ns_; }
  uint64_t capacity() const { return capacity_; }

 private:
  const uint64_t capacity_;
  const int64_t begin_ticks_, begin_ns_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Profile>> threads_;
  std::vector<std::string> names_;
};

// The one that is under way: at most one in the process. begin throws where there is one.
std::shared_ptr<ProfileSession> begin_profile(uint64_t capacity);
void end_profile();  // threads that help leave it when they next look
bool is_under_way();

// For a thread that helps others (of a pipeline): notes for the session that is under way, if any, from each look() to
// the next. A look costs one load where there is none.
class ProfileHelper {
 public:
  explicit ProfileHelper(const char* name) : name_(name) {}
  ~ProfileHelper() { leave(); }
  ProfileHelper(const ProfileHelper&) = delete;
  ProfileHelper& operator=(const ProfileHelper&) = delete;
  void look() {
    if (number_ == session_number.load(std::memory_order_relaxed)) [[likely]]
      return;
    change();
  }
  static std::atomic<uint64_t> session_number;  // 0: none is under way

 private:
  void change();
  void leave();
  const char* name_;
  uint64_t number_ = 0;
  std::shared_ptr<ProfileSession> session_;
};

// From its making to done(). What throws is not noted.
class ProfileSpan {
 public:
  ProfileSpan() : begin_(ambient().profile != nullptr ? profile_now() : 0) {}
  bool on() const { return begin_ != 0; }
  void done(ProfileKind kind, const char* name, int32_t device, uint64_t bytes = 0, const char* shapes = nullptr,
            uint64_t sequence = 0) {
    if (!on()) [[likely]]
      return;
    note(kind, name, device, bytes, shapes, sequence);
  }

 private:
  void note(ProfileKind kind, const char* name, int32_t device, uint64_t bytes, const char* shapes, uint64_t sequence);
  int64_t begin_;
};

// A block of memory that is taken or given back.
void profile_memory(ProfileKind kind, const char* what, const char* layer, const char* origin, uint64_t bytes,
                    const void* block, int32_t device);

// The same text, kept until the process ends: equal texts give one pointer.
const char* interned(std::string_view text);

}  // namespace perigee
