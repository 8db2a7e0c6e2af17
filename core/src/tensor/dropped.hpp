// SPDX-License-Identifier: Apache-2.0
// Storages whose memory has been given back while tensors, and the tape, go on showing them: parameters that several
// processes hold parts of, between two calls of their layer.
#pragma once

#include "tensor/tensor.hpp"

namespace perigee {

// Gives the memory back; and takes memory again, whose contents are to be written. In between nothing may read it, and
// what tries fails. Both twice are once.
void drop_memory(Storage& storage);
void renew_memory(Storage& storage);

inline bool is_dropped(const Storage& storage) { return storage.block == nullptr && storage.bytes > 0; }
[[noreturn]] void fail_dropped();

// Where a kernel reads a tensor; fails where its memory has been given back.
inline pg_address present_address(const Tensor& x) {
  const pg_address address = x.address();
  if (address.buffer == 0 && x.storage && is_dropped(*x.storage)) [[unlikely]]
    fail_dropped();
  return address;
}

}  // namespace perigee
