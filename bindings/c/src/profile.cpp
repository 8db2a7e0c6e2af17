// SPDX-License-Identifier: Apache-2.0
// What the calling thread does and when.
#include "base/profile.hpp"

#include <cstddef>

#include "api.hpp"

using namespace perigee;
using namespace perigee::api;

static_assert(sizeof(pgc_profile_record) == sizeof(ProfileRecord));
static_assert(offsetof(pgc_profile_record, bytes) == offsetof(ProfileRecord, bytes));
static_assert(offsetof(pgc_profile_record, device) == offsetof(ProfileRecord, device));

namespace {

thread_local std::unique_ptr<Profile> kept;  // the last one of the thread, also while it is being written

}  // namespace

int32_t pgc_profile_start(uint64_t capacity) {
  return run("profile", [&] {
    if (ambient().profile != nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "a profile of this thread is under way");
    if (capacity == 0 || capacity > PGC_PROFILE_LARGEST)
      pg::fail_argument(pg::format("room for %llu records; expected 1 to %llu",
                                   static_cast<unsigned long long>(capacity),
                                   static_cast<unsigned long long>(PGC_PROFILE_LARGEST)));
    kept = nullptr;
    kept = std::make_unique<Profile>(capacity);
    ambient().profile = kept.get();
  });
}

int32_t pgc_profile_stop(const pgc_profile_record** records, uint64_t* count, uint64_t* lost) {
  return run("profile", [&] {
    if (ambient().profile == nullptr) pg::fail(PG_E_FAILED_PRECONDITION, "there is no profile of this thread");
    ambient().profile = nullptr;
    *count = kept->count();
    *lost = kept->lost();
    kept->arrange();
    *records = reinterpret_cast<const pgc_profile_record*>(kept->records());
  });
}

void pgc_profile_drop(void) {
  ambient().profile = nullptr;
  kept = nullptr;
}

int64_t pgc_profile_begin(void) { return ambient().profile != nullptr ? profile_now() : 0; }

int32_t pgc_profile_end(int64_t begin, const char* name) {
  return run("profile", [&] {
    if (begin == 0 || ambient().profile == nullptr) return;
    const char* text = interned(given(name, "the name"));
    ambient().profile->add({begin, profile_now(), text, nullptr, nullptr, nullptr, 0, ProfileKind::range, -1});
  });
}
