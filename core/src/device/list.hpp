// SPDX-License-Identifier: Apache-2.0
// The devices of a plugin: made while it is loaded, listed when all of it could be.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace perigee {

bool offers_devices(const LoadedPlugin& plugin);
using DeviceParts = std::vector<std::unique_ptr<Device>>;
// One plugin at a time, until they are listed.
DeviceParts make_devices(LoadedPlugin& plugin, uint32_t count);
void list_devices(DeviceParts made);
bool device_type_taken(const std::string& type, std::string& by);
void drain_devices() noexcept;  // waits for all work; failures are logged
void close_devices() noexcept;

}  // namespace perigee
