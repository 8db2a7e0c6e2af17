// SPDX-License-Identifier: Apache-2.0
// Tensors of the processor on their way to another device: in pinned memory of that one, which copies from it without
// another copy in between. For batches of pipelines, which nobody writes to once they are made.
#pragma once

#include "tensor/tensor.hpp"

namespace perigee {

struct HostStaging {
  Device::Pinned memory;
  Block block;  // the memory as a storage has it
  Event read;   // the last copy to the device
};

// A fresh one, uninitialised. Null where the device needs none, it is larger than is good for memory that cannot be
// paged out (256 MB), or no such memory is left: an ordinary one does, by a copy more.
TensorRef make_staging(Device& target, const MetaRef& meta);
// Copies it to where it was made to go, on the ambient stream. False where it was not.
bool upload_staging(Tensor& source, Tensor& target);
void drop_staging(HostStaging* staging);  // when the device has read it

}  // namespace perigee
