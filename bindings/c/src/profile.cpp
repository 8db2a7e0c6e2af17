// SPDX-License-Identifier: Apache-2.0
// What the process does and when.
#include "base/profile.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "api.hpp"
#include "device/activity.hpp"
#include "profile_place.hpp"

using namespace perigee;
using namespace perigee::api;

static_assert(sizeof(pgc_profile_record) == sizeof(ProfileRecord));
static_assert(offsetof(pgc_profile_record, bytes) == offsetof(ProfileRecord, bytes));
static_assert(offsetof(pgc_profile_record, device) == offsetof(ProfileRecord, device));
static_assert(offsetof(pgc_profile_record, stream) == offsetof(ProfileRecord, stream));
static_assert(PGC_PROFILE_PLAN == static_cast<uint32_t>(ProfileKind::plan));
static_assert(PGC_PROFILE_DEVICE == kProfileDevice);

namespace {

// Of the process, as a profile is.
struct LastProfile {
  std::mutex mutex;
  std::shared_ptr<ProfileSession> session;  // the last one
  std::vector<ProfileRecord> records;
  std::vector<std::string> threads;
  uint64_t placed = 0;  // records of the first thread that were there when it last said where it is
  void forget() {
    session = nullptr;
    records = {};
    threads = {};
    placed = 0;
  }
};
LastProfile& last_profile() {
  static auto& last = *new LastProfile;
  return last;
}

// Mutex held: whether the profile under way is this thread's.
bool is_mine(const LastProfile& k) {
  return ambient().profile != nullptr && k.session != nullptr && ambient().profile == &k.session->first();
}

void check_mine(const LastProfile& k) {
  if (!is_mine(k)) pg::fail(PG_E_FAILED_PRECONDITION, "there is no profile of this thread");
}

}  // namespace

namespace perigee::api {

void place_last(const char* known) {
  ambient().origin = nullptr;
  LastProfile& k = last_profile();
  if (!is_mine(k)) return;  // of what follows nothing is touched by another thread
  Profile& mine = k.session->first();
  const uint64_t end = mine.count() + mine.lost();
  // Nothing from before the last call: an operator that a compiled function only matched has noted nothing itself.
  const uint64_t first = std::max(end - mine.count(), std::exchange(k.placed, end));
  uint64_t i = end;
  while (i > first && mine.at(i - 1).kind != ProfileKind::op) i--;  // memory that was given back since
  if (i == first) return;
  for (const int64_t begin = mine.at(i - 1).begin; i > first && mine.at(i - 1).begin >= begin; i--)
    mine.at(i - 1).origin = known;
}

}  // namespace perigee::api

int32_t pgc_profile_start(uint64_t capacity) {
  return run("profile", [&] {
    if (capacity == 0 || capacity > PGC_PROFILE_LARGEST)
      pg::fail_argument(pg::format("room for %llu records; expected 1 to %llu",
                                   static_cast<unsigned long long>(capacity),
                                   static_cast<unsigned long long>(PGC_PROFILE_LARGEST)));
    std::shared_ptr<ProfileSession> session = begin_profile(capacity);
    try {
      start_activities(capacity);
    } catch (...) {
      end_profile();
      throw;
    }
    LastProfile& k = last_profile();
    std::lock_guard guard(k.mutex);
    k.forget();
    k.session = std::move(session);
    ambient().profile = &k.session->first();
  });
}

int32_t pgc_profile_stop(const pgc_profile_record** records, uint64_t* count, uint64_t* lost) {
  return run("profile", [&] {
    LastProfile& k = last_profile();
    std::lock_guard guard(k.mutex);
    check_mine(k);
    ambient().profile = nullptr;
    uint64_t without_room = 0, lost_by_devices = 0;
    std::vector<ProfileRecord> of_devices = collect_activities(lost_by_devices);
    k.records = k.session->collect(std::move(of_devices), without_room);
    end_profile();
    tie_activities(k.records);
    k.threads = k.session->thread_names();
    *count = k.records.size();
    *lost = without_room + lost_by_devices;
    *records = reinterpret_cast<const pgc_profile_record*>(k.records.data());
  });
}

void pgc_profile_drop(void) {
  LastProfile& k = last_profile();
  std::lock_guard guard(k.mutex);
  if (is_mine(k)) {
    ambient().profile = nullptr;
    run("profile", [] {
      uint64_t lost = 0;
      collect_activities(lost);
    });
    end_profile();
  } else if (is_under_way()) {
    return;  // another thread's
  }
  k.forget();
}

const char* pgc_profile_thread(uint32_t thread) {
  return thread < last_profile().threads.size() ? last_profile().threads[thread].c_str() : nullptr;
}

void pgc_profile_place(const char* known) {
  remember_site(known);
  place_last(known);
}

int64_t pgc_profile_time(void) { return monotonic_ns(); }

int64_t pgc_profile_begin(void) { return ambient().profile != nullptr ? profile_now() : 0; }

int32_t pgc_profile_end(int64_t begin, uint32_t kind, const char* name) {
  return run("profile", [&] {
    if (begin == 0 || ambient().profile == nullptr) return;
    if (kind != PGC_PROFILE_RANGE && kind != PGC_PROFILE_STAGE)
      pg::fail_argument(pg::format("kind %u; expected that of a range or of a stage", kind));
    const char* text = interned(given(name, "the name"));
    ambient().profile->add(
        {begin, profile_now(), text, nullptr, nullptr, nullptr, 0, 0, static_cast<ProfileKind>(kind), -1, 0, 0});
  });
}
