// SPDX-License-Identifier: Apache-2.0
// Groups of devices of this process, and calls that are queued on the streams of all of them (pg.device_collectives).
#pragma once

#include <cstdint>
#include <vector>

#include "collective/group.hpp"

namespace perigee {

// Made when first asked for, one for each list. Lives until a call of it fails, which breaks it, or shutdown.
struct DeviceGroup {
  int64_t number;  // never 0
  std::vector<Device*> devices;
  LoadedPlugin* plugin;
  uint64_t handle;  // the engine's
};

// The number of the group of these devices, by member; 0 where no engine serves them: they are of different types, two
// of them stand for one, or the engine will not. Throws PG_E_INVALID_ARGUMENT where one is named twice.
int64_t find_device_group(const std::vector<Device*>& devices);
std::vector<Device*> devices_of_group(int64_t number);  // throws where there is none of that number

// Rows of calls, one of each member in each: those of member k go to stream `streams[k]`, behind what is there. Returns
// when they are queued.
void queue_on_devices(int64_t number, const std::vector<std::vector<Collective>>& rows,
                      const std::vector<uint32_t>& streams);

// The engine of devices of one type, or NULL. It may still refuse a group.
LoadedPlugin* find_device_engine(const std::string& type);
// `call` with what the stream and the engine need, behind what is queued there.
pg_collective make_call(const Collective& call, Device& device, uint32_t stream, double deadline);

// Before devices are closed.
void close_device_groups() noexcept;

}  // namespace perigee
