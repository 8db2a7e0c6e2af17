// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace perigee {

int64_t profile_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Profile::Profile(uint64_t capacity) : mask_(std::bit_ceil(std::max<uint64_t>(capacity, 1)) - 1) {
  ring_ = std::make_unique<ProfileRecord[]>(mask_ + 1);  // zeroed: its pages are there before the first record
}

void Profile::arrange() {
  if (lost() == 0) return;
  ProfileRecord* first = ring_.get();
  std::rotate(first, first + (count_ & mask_), first + mask_ + 1);
  count_ -= count_ & mask_;  // what follows would begin at the first place again
}

void ProfileSpan::note(ProfileKind kind, const char* name, int32_t device, uint64_t bytes, const char* shapes) {
  const Ambient& here = ambient();
  if (here.profile == nullptr) return;  // it ended meanwhile
  here.profile->add({begin_, profile_now(), name, shapes, here.origin, here.layer, bytes, kind, device});
}

void profile_memory(ProfileKind kind, const char* what, const char* layer, const char* origin, uint64_t bytes,
                    const void* block, int32_t device) {
  ambient().profile->add({profile_now(), static_cast<int64_t>(reinterpret_cast<uintptr_t>(block)), what, nullptr,
                          origin, layer, bytes, kind, device});
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
