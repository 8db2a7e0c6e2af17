// SPDX-License-Identifier: Apache-2.0
#include "tensor/kept.hpp"

namespace perigee {
namespace {

// Neither made nor destroyed at a time of their own: tensors may outlive static objects, and memory may be short when
// these are first asked for.
constinit std::mutex all_mutex;
constinit Kept* first_kept = nullptr;

}  // namespace

std::mutex& kept_mutex() { return all_mutex; }

Kept::Kept() : next(first_kept) {
  if (next != nullptr) next->before = this;
  first_kept = this;
}

Kept::~Kept() {
  std::lock_guard guard(all_mutex);
  (before != nullptr ? before->next : first_kept) = next;
  if (next != nullptr) next->before = before;
}

Kept& kept_of(Storage& storage) {
  if (storage.kept == nullptr) std::atomic_ref(storage.kept).store(new Kept(), std::memory_order_relaxed);
  return *storage.kept;
}

void release_kept(Storage& storage) {
  std::vector<Kept::Cast> casts;  // destroyed outside of the lock: a cast may keep a private layout of its own
  std::vector<Kept::Packed> packed;
  std::lock_guard guard(kept_mutex());
  casts.swap(storage.kept->casts);
  packed.swap(storage.kept->packed);
}

void release_kept() {  // without allocating: memory may be short
  for (;;) {
    std::vector<Kept::Cast> casts;  // destroyed outside of the lock: a cast may keep a private layout of its own
    std::vector<Kept::Packed> packed;
    std::lock_guard guard(kept_mutex());
    Kept* kept = first_kept;
    while (kept != nullptr && kept->casts.empty() && kept->packed.empty()) kept = kept->next;
    if (kept == nullptr) return;
    casts.swap(kept->casts);
    packed.swap(kept->packed);
  }
}

}  // namespace perigee
