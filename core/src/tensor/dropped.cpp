// SPDX-License-Identifier: Apache-2.0
#include "tensor/dropped.hpp"

#include "base/ambient.hpp"
#include "tensor/kept.hpp"
#include "tensor/watch.hpp"

namespace perigee {

void drop_memory(Storage& storage) {
  if (storage.block == nullptr || storage.bytes == 0) return;
  if (ambient().launches != nullptr) ambient().launches->refuse("the memory of a tensor is dropped");
  delete storage.kept;  // made of contents that may be others when they come back, without a new version
  storage.kept = nullptr;
  storage.device->allocator.free(storage.block);
  storage.block = nullptr;
}

void renew_memory(Storage& storage) {
  if (!is_dropped(storage)) return;
  if (ambient().launches != nullptr) ambient().launches->refuse("the memory of a tensor is taken again");
  const uint32_t stream = storage.device->synchronous ? 0 : ambient().stream;
  storage.block = storage.device->allocator.alloc(storage.bytes, stream,
                                                  {"gathered parameters", ambient().layer, ambient().origin});
  storage.last_stream = stream;
  storage.behind = 0;
  storage.done = Event();
}

void fail_dropped() {
  pg::fail(PG_E_FAILED_PRECONDITION,
           "the memory of this tensor has been given back: it is a parameter, or a view of one, that is whole only "
           "inside of its layer's call");
}

}  // namespace perigee
