// SPDX-License-Identifier: Apache-2.0
#include "collective/devices.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.hpp"

namespace perigee {
namespace {

// Never destroyed. Engines are called by one thread at a time.
struct Groups {
  std::mutex mutex;
  std::vector<DeviceGroup> list;
  int64_t last = 0;
  bool closed = false;
};

Groups& groups() {
  static auto& groups = *new Groups;
  return groups;
}

// Mutex held.
DeviceGroup& find(int64_t number) {
  for (DeviceGroup& group : groups().list)
    if (group.number == number) return group;
  pg::fail_argument(pg::format("there is no group of devices of number %lld", static_cast<long long>(number)));
}

void destroy(const DeviceGroup& group) noexcept {
  pg_error error = pg::make_error();
  if (group.plugin->device_collectives->group_destroy(group.plugin->self, group.handle, &error) != PG_OK)
    write_log(PG_LOG_WARNING, std::string("group_destroy: ") + error.message);
}

}  // namespace

LoadedPlugin* find_device_engine(const std::string& type) {
  load_device_collectives(type);
  for (LoadedPlugin* plugin : find_plugins())
    if (plugin->opened && plugin->device_collectives != nullptr && type == plugin->device_collectives->device_type)
      return plugin;
  return nullptr;
}

pg_collective make_call(const Collective& call, Device& device, uint32_t stream, double deadline) {
  pg_collective asked{};
  asked.size = PG_SIZE(pg_collective, what);
  asked.kind = call.kind, asked.reduction = call.reduction, asked.dtype = call.dtype;
  asked.peer = call.peer, asked.tag = call.tag;
  asked.count = call.count;
  asked.input = call.input, asked.output = call.output;
  asked.stream = device.stream(stream);
  asked.sequence = device.sequence(call.what);
  asked.deadline = deadline;
  asked.what = call.what;
  return asked;
}

int64_t find_device_group(const std::vector<Device*>& devices) {
  for (size_t i = 0; i < devices.size(); i++)
    for (size_t j = 0; j < i; j++)
      if (devices[i] == devices[j]) pg::fail_argument(pg::format("device %s is named twice", devices[i]->name.c_str()));
  Groups& g = groups();
  std::lock_guard guard(g.mutex);
  if (g.closed) pg::fail(PG_E_FAILED_PRECONDITION, "Perigee has been shut down");
  for (const DeviceGroup& group : g.list)
    if (group.devices == devices) return group.number;
  if (devices.size() < 2) return 0;
  std::vector<uint32_t> ordinals;
  for (const Device* device : devices) {
    if (device->absent || device->synchronous || device->plugin() != devices[0]->plugin()) return 0;
    if (std::find(ordinals.begin(), ordinals.end(), device->ordinal) != ordinals.end()) return 0;
    ordinals.push_back(device->ordinal);
  }
  LoadedPlugin* plugin = find_device_engine(devices[0]->type);
  if (plugin == nullptr) return 0;
  pg_device_group info{};
  info.size = PG_SIZE(pg_device_group, look);
  info.count = info.total = static_cast<uint32_t>(ordinals.size());
  info.devices = ordinals.data();
  info.processes = 1;
  DeviceGroup made{g.last + 1, devices, plugin, 0};
  pg_error error = pg::make_error();
  const int32_t code = plugin->device_collectives->group_create(plugin->self, &info, &made.handle, &error);
  if (code == PG_E_NOT_SUPPORTED) {
    write_log(PG_LOG_INFO, std::string(plugin->device_collectives->name) + ": " + pg::message_of(code, error));
    return 0;
  }
  if (code != PG_OK) pg::fail_as(code, error);
  if (plugin->device_collectives->take_failure != nullptr)
    for (Device* device : devices) device->ask_after_waiting(plugin);
  g.list.push_back(std::move(made));
  return ++g.last;
}

std::vector<Device*> devices_of_group(int64_t number) {
  std::lock_guard guard(groups().mutex);
  return find(number).devices;
}

void queue_on_devices(int64_t number, const std::vector<std::vector<Collective>>& rows,
                      const std::vector<uint32_t>& streams) {
  if (rows.empty()) return;
  const double late = deadline();
  Groups& g = groups();
  std::lock_guard guard(g.mutex);
  DeviceGroup& group = find(number);
  const size_t count = group.devices.size();
  std::vector<pg_collective> calls;
  calls.reserve(rows.size() * count);
  std::vector<std::unique_lock<std::recursive_mutex>> submitting;
  // By number, as everybody does who takes several.
  std::vector<size_t> order(count);
  for (size_t k = 0; k < count; k++) order[k] = k;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return group.devices[a]->id < group.devices[b]->id; });
  for (const size_t k : order) submitting.push_back(group.devices[k]->lock(streams[k]));
  for (const std::vector<Collective>& row : rows) {
    for (size_t k = 0; k < count; k++) calls.push_back(make_call(row[k], *group.devices[k], streams[k], late));
  }
  std::vector<const pg_collective*> list;
  list.reserve(calls.size());
  for (const pg_collective& call : calls) list.push_back(&call);
  pg_error error = pg::make_error();
  const int32_t code = group.plugin->device_collectives->submit(
      group.plugin->self, group.handle, static_cast<uint32_t>(rows.size()), list.data(), &error);
  if (code == PG_OK) return;
  if (code == PG_E_NOT_SUPPORTED) pg::fail_as(code, error);  // breaks nothing
  const DeviceGroup broken = group;                          // who asks again gets a new one
  std::erase_if(g.list, [&](const DeviceGroup& each) { return each.number == number; });
  submitting.clear();
  for (Device* device : broken.devices) device->drain();
  destroy(broken);
  pg::fail_as(code, error);
}

void close_device_groups() noexcept {
  Groups& g = groups();
  std::lock_guard guard(g.mutex);
  g.closed = true;
  for (const DeviceGroup& group : g.list) destroy(group);
  g.list.clear();
}

}  // namespace perigee
