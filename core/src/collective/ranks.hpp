// SPDX-License-Identifier: Apache-2.0
// Devices of several processes, one of each: calls that an engine of their type (pg.device_collectives) queues on their
// streams, where it serves processes. What else is called between processes travels through host memory (group.hpp).
#pragma once

#include "collective/group.hpp"

namespace perigee {

// Whether there is such an engine. It may still refuse a group, or a call.
bool has_process_engine(const Device& device);

// Queues the call, and answers whether it did; what an engine lacks, and sends and receives, are left to the caller.
// The first call of a group on a device is one that all of its ranks make on devices of one type: there they find each
// other.
bool queue_between_processes(Group& group, Device& device, uint32_t stream, const Collective& call);

// What is queued is given up, since this process makes no further calls.
void abandon_ranks(const char* reason) noexcept;
// Before devices are closed.
void close_ranks() noexcept;

}  // namespace perigee
