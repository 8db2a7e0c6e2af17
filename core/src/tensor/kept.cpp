// SPDX-License-Identifier: Apache-2.0
#include "tensor/kept.hpp"

#include <algorithm>
#include <set>

namespace perigee {
namespace {

// Never destroyed: tensors may outlive static objects.
struct AllKept {
  std::mutex mutex;
  std::set<Kept*> all;
};
AllKept& all_kept() {
  static AllKept& kept = *new AllKept;
  return kept;
}

}  // namespace

std::mutex& kept_mutex() { return all_kept().mutex; }

Kept::Kept() { all_kept().all.insert(this); }

Kept::~Kept() {
  std::lock_guard guard(kept_mutex());
  all_kept().all.erase(this);
}

Kept& kept_of(Storage& storage) {
  if (storage.kept == nullptr) storage.kept = new Kept();
  return *storage.kept;
}

void release_kept() {  // without allocating: memory may be short
  for (;;) {
    std::vector<Kept::Cast> casts;  // destroyed outside of the lock: a cast may keep a private layout of its own
    std::vector<Kept::Packed> packed;
    std::lock_guard guard(kept_mutex());
    auto& all = all_kept().all;
    auto kept =
        std::find_if(all.begin(), all.end(), [](const Kept* k) { return !k->casts.empty() || !k->packed.empty(); });
    if (kept == all.end()) return;
    casts.swap((*kept)->casts);
    packed.swap((*kept)->packed);
  }
}

}  // namespace perigee
