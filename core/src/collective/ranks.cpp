// SPDX-License-Identifier: Apache-2.0
#include "collective/ranks.hpp"

#include <deque>
#include <mutex>

#include "base/log.hpp"
#include "collective/devices.hpp"

namespace perigee {
namespace {

// A group of ranks and this rank's device.
struct Link {
  Group* group;
  Device* device;
  LoadedPlugin* plugin;  // NULL: the engine will not
  uint64_t handle = 0;   // the engine's
};

// Never destroyed; links do not move, for engines keep their addresses. Engines are called by one thread at a time.
struct Links {
  std::mutex mutex;
  std::deque<Link> list;
  bool closed = false;
};

Links& links() {
  static auto& links = *new Links;
  return links;
}

int32_t exchange(void* context, uint64_t bytes, const void* mine, void* all, pg_error* error) {
  return pg::guard(error, "exchange", [&] {
    gather_bytes(*static_cast<Link*>(context)->group, mine, bytes, all, "making a group of devices");
  });
}

int32_t look(void* context, pg_error* error) {
  return pg::guard(error, "look", [&] {
    const std::string ended = find_ended(*static_cast<Link*>(context)->group);
    if (!ended.empty()) pg::fail(PG_E_FAILED_PRECONDITION, "cannot be completed: " + ended + " has ended");
  });
}

// Mutex held. Made with the others when it is first asked for.
Link& find_link(Group& group, Device& device, LoadedPlugin* plugin) {
  Links& l = links();
  for (Link& link : l.list)
    if (link.group == &group && link.device == &device) return link;
  Link& made = l.list.emplace_back(Link{&group, &device, plugin});
  pg_device_group info{};
  info.size = PG_SIZE(pg_device_group, look);
  info.count = 1;
  info.devices = &device.ordinal;
  info.total = info.processes = static_cast<uint32_t>(group.size());
  info.first = info.process = static_cast<uint32_t>(group.rank);
  info.deadline = deadline();
  info.context = &made;
  info.exchange = exchange;
  info.look = look;
  pg_error error = pg::make_error();
  const int32_t code = plugin->device_collectives->group_create(plugin->self, &info, &made.handle, &error);
  if (code == PG_E_NOT_SUPPORTED) {
    made.plugin = nullptr;
    write_log(PG_LOG_INFO, std::string(plugin->device_collectives->name) + ": " + pg::message_of(code, error) +
                               "; tensors travel through host memory");
  } else if (code != PG_OK) {
    l.list.pop_back();
    pg::fail_as(code, error);
  }
  if (code == PG_OK && plugin->device_collectives->take_failure != nullptr) device.ask_after_waiting(plugin);
  return made;
}

// The engine that carries tensors of the device between processes, or NULL.
LoadedPlugin* process_engine(const Device& device) {
  if (device.absent || device.synchronous) return nullptr;
  LoadedPlugin* plugin = find_device_engine(device.type);
  if (plugin == nullptr || (plugin->device_collectives->flags & PG_DEVICE_COLLECTIVES_PROCESSES) == 0) return nullptr;
  return plugin;
}

}  // namespace

bool has_process_engine(const Device& device) { return process_engine(device) != nullptr; }

bool queue_between_processes(Group& group, Device& device, uint32_t stream, const Collective& call) {
  if (call.kind == PG_COLLECTIVE_SEND || call.kind == PG_COLLECTIVE_RECEIVE) return false;
  LoadedPlugin* plugin = process_engine(device);
  if (plugin == nullptr) return false;
  Links& l = links();
  std::lock_guard guard(l.mutex);
  if (l.closed) return false;
  const Link& link = find_link(group, device, plugin);
  if (link.plugin == nullptr) return false;
  auto submitting = device.lock(stream);
  pg_collective asked = make_call(call, device, stream, deadline());
  // A root's output is not written by the engine.
  const bool is_root = call.kind == PG_COLLECTIVE_BROADCAST && call.peer == group.rank;
  const pg_device_collectives& engine = *link.plugin->device_collectives;
  const pg_collective* const list[] = {&asked};
  pg_error error = pg::make_error();
  const int32_t code = engine.submit(link.plugin->self, link.handle, 1, list, &error);
  if (code == PG_E_NOT_SUPPORTED) return false;
  if (code != PG_OK) pg::fail_as(code, error);
  const bool apart = call.input.buffer != call.output.buffer || call.input.offset != call.output.offset;
  if (is_root && apart && call.input_bytes > 0)
    device.copy_from(call.output, stream, device, call.input, stream, call.input_bytes);
  return true;
}

void abandon_ranks(const char* reason) noexcept {
  Links& l = links();
  std::unique_lock guard(l.mutex, std::try_to_lock);
  if (!guard || l.closed) return;
  pg_error error = pg::make_error();
  for (const Link& link : l.list)
    if (link.plugin != nullptr) link.plugin->device_collectives->abort(link.plugin->self, link.handle, reason, &error);
}

void close_ranks() noexcept {
  Links& l = links();
  std::lock_guard guard(l.mutex);
  l.closed = true;
  for (const Link& link : l.list) {
    pg_error error = pg::make_error();
    if (link.plugin != nullptr &&
        link.plugin->device_collectives->group_destroy(link.plugin->self, link.handle, &error) != PG_OK)
      write_log(PG_LOG_DEBUG, std::string("group_destroy: ") + error.message);
  }
  l.list.clear();
}

}  // namespace perigee
