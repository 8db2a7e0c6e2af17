// SPDX-License-Identifier: Apache-2.0
// What is made from the content of a storage and kept because a model in use would make it again and again: casts of
// its weights, and their private layouts. Forgotten with the storage, once it has been written to, and when memory is
// short.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tensor/tensor.hpp"

namespace perigee {

struct Kept {
  struct Cast {  // made without gradients
    uint32_t dtype;
    MetaRef meta;  // of the tensor that was cast, and where it begins
    int64_t offset;
    TensorRef cast;
  };
  // The private layout of the part that a tensor shows, for one signature's input (which knows shape and strides).
  struct Packed {
    uint64_t signature;  // its serial
    uint32_t input;
    int64_t offset;  // the tensor's
    uint64_t version;
    StorageRef form;  // NULL: only seen so far, or being made
    bool being_made = false;
  };
  uint64_t cast_version = 0;  // of the storage, when `casts` were made
  std::vector<Cast> casts;
  std::vector<Packed> packed;
  Kept *before = nullptr, *next;  // of all that there are

  Kept();
  ~Kept();
};

// Guards every Kept: a model's weights may be used by several threads. Whoever drops a cast does so without it.
std::mutex& kept_mutex();
// What `storage` keeps, made if need be. With the mutex held.
Kept& kept_of(Storage& storage);
// Lets go of what is kept of a storage.
void release_kept(Storage& storage);
// Somebody has written into a storage.
inline void raise_version(Storage& storage) {
  storage.version.fetch_add(1, std::memory_order_relaxed);
  if (std::atomic_ref(storage.kept).load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    release_kept(storage);
}
// Lets go of all that is kept: it can be made again. What a call reads meanwhile stays until that call ends. Any
// thread.
void release_kept();

}  // namespace perigee
