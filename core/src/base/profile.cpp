// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <string>

#include "perigee/plugin.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace perigee {

namespace {

// Whether the processor has a counter that goes on at one pace whatever it does. It is read in a third of the time
// that the system's clock takes.
bool find_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

const bool has_counter = find_counter();

struct Current {
  std::mutex mutex;
  std::shared_ptr<ProfileSession> session;
  uint64_t numbers = 0;
};
Current& current() {
  static auto& current = *new Current;  // threads may outlive what is destroyed
  return current;
}

}  // namespace

std::atomic<uint64_t> ProfileHelper::session_number{0};

int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int64_t profile_now() {
#if defined(__x86_64__)
  if (has_counter) [[likely]]
    return static_cast<int64_t>(__rdtsc());
#endif
  return monotonic_ns();
}

// ---- of a thread ----

Profile::Profile(uint64_t capacity, uint32_t thread)
    : mask_(std::bit_ceil(std::max<uint64_t>(capacity, 1)) - 1), thread_(thread) {
  ring_ = std::make_unique<ProfileRecord[]>(mask_ + 1);  // zeroed: its pages are there before the first record
}

void Profile::arrange() {
  if (lost() == 0) return;
  ProfileRecord* first = ring_.get();
  std::rotate(first, first + (count_ & mask_), first + mask_ + 1);
  count_ -= count_ & mask_;  // what follows would begin at the first place again
}

void Profile::add_shared(const ProfileRecord& record) {
  std::lock_guard guard(mutex_);
  if (!closed_) put(record);
}

void Profile::close() {
  std::lock_guard guard(mutex_);
  closed_ = true;
}

// ---- of the process ----

ProfileSession::ProfileSession(uint64_t capacity)
    : capacity_(capacity), begin_ticks_(profile_now()), begin_ns_(monotonic_ns()) {
  threads_.push_back(std::make_unique<Profile>(capacity));
  names_.emplace_back("script");
}

Profile& ProfileSession::add_thread(const char* name) {
  std::lock_guard guard(mutex_);
  const auto number = static_cast<uint32_t>(threads_.size());
  threads_.push_back(std::make_unique<Profile>(std::max<uint64_t>(capacity_ / 4, 1), number));
  names_.push_back(std::string(name) + " " + std::to_string(number));
  return *threads_.back();
}

std::vector<ProfileRecord> ProfileSession::collect(std::vector<ProfileRecord> device_records, uint64_t& lost) {
  std::vector<ProfileRecord> all;
  lost = 0;
  std::lock_guard guard(mutex_);
  const int64_t end_ticks = profile_now(), end_ns = monotonic_ns();
  for (const auto& thread : threads_) {
    thread->close();
    lost += thread->lost();
    thread->arrange();
    all.insert(all.end(), thread->records(), thread->records() + thread->count());
  }
  // Both clocks were read at both ends: what lies between them lies on a line.
  const double pace = end_ticks > begin_ticks_
                          ? static_cast<double>(end_ns - begin_ns_) / static_cast<double>(end_ticks - begin_ticks_)
                          : 1.0;
  const auto as_ns = [&](int64_t ticks) {
    return begin_ns_ + static_cast<int64_t>(static_cast<double>(ticks - begin_ticks_) * pace);
  };
  for (ProfileRecord& record : all) {
    record.begin = as_ns(record.begin);
    record.end = as_ns(record.end);
  }
  all.insert(all.end(), device_records.begin(), device_records.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const ProfileRecord& a, const ProfileRecord& b) { return a.end < b.end; });
  return all;
}

std::vector<std::string> ProfileSession::thread_names() const {
  std::lock_guard guard(mutex_);
  return names_;
}

std::shared_ptr<ProfileSession> begin_profile(uint64_t capacity) {
  Current& c = current();
  std::lock_guard guard(c.mutex);
  if (c.session) pg::fail(PG_E_FAILED_PRECONDITION, "a profile is under way");
  c.session = std::make_shared<ProfileSession>(capacity);
  ProfileHelper::session_number.store(++c.numbers, std::memory_order_relaxed);
  return c.session;
}

void end_profile() {
  Current& c = current();
  std::lock_guard guard(c.mutex);
  ProfileHelper::session_number.store(0, std::memory_order_relaxed);
  c.session = nullptr;
}

bool is_under_way() { return ProfileHelper::session_number.load(std::memory_order_relaxed) != 0; }

void ProfileHelper::change() {
  leave();
  Current& c = current();
  std::lock_guard guard(c.mutex);
  number_ = session_number.load(std::memory_order_relaxed);
  session_ = c.session;
  if (session_) ambient().profile = &session_->add_thread(name_);
}

void ProfileHelper::leave() {
  if (session_) ambient().profile = nullptr;
  session_ = nullptr;
}

// ---- what is noted ----

void ProfileSpan::note(ProfileKind kind, const char* name, int32_t device, uint64_t bytes, const char* shapes,
                       uint64_t sequence) {
  const Ambient& here = ambient();
  if (here.profile == nullptr) return;  // it ended meanwhile
  here.profile->add(
      {begin_, profile_now(), name, shapes, here.origin, here.layer, bytes, sequence, kind, device, 0, 0});
}

void profile_memory(ProfileKind kind, const char* what, const char* layer, const char* origin, uint64_t bytes,
                    const void* block, int32_t device) {
  const int64_t now = profile_now();
  ambient().profile->add(
      {now, now, what, nullptr, origin, layer, bytes, reinterpret_cast<uintptr_t>(block), kind, device, 0, 0});
}

const char* interned(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> known;  // nodes stay where they are
  std::lock_guard guard(mutex);
  auto found = known.find(text);
  if (found == known.end()) found = known.emplace(text).first;
  return found->c_str();
}

}  // namespace perigee
