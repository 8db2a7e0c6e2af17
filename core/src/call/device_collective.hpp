// SPDX-License-Identifier: Apache-2.0
// Collectives of tensors over devices of this process.
#pragma once

#include "collective/devices.hpp"
#include "tensor/tensor.hpp"

namespace perigee {

// Queues all_reduce, reduce, broadcast or all_gather over a group of devices: rows of tensors, one of each device in
// each, dense and of one dtype a row. `root`: a member, of reduce and broadcast; what other members' outputs (or
// inputs) are is not looked at there. Outputs that are no inputs too get new versions, and so do those that the call
// changes.
void run_on_devices(int64_t group, uint32_t kind, uint32_t reduction, int32_t root,
                    const std::vector<std::vector<Tensor*>>& inputs, const std::vector<std::vector<Tensor*>>& outputs);

}  // namespace perigee
