// SPDX-License-Identifier: Apache-2.0
#include "device/activity.hpp"

#include <mutex>
#include <unordered_map>

#include "base/log.hpp"
#include "device/device.hpp"

namespace perigee {

namespace {

std::mutex activities_mutex;        // start and collect follow each other
std::vector<LoadedPlugin*> noting;  // plugins between start and collect

template <class Call>
bool ask_profiler(const LoadedPlugin& plugin, const char* what, Call&& call) {
  pg_error error = pg::make_error();
  const int32_t code = call(&error);
  if (code == PG_OK) return true;
  write_log(PG_LOG_WARNING, plugin.name + ": " + what + " of its profiler: " + pg::message_of(code, error));
  return false;
}

ProfileKind kind_of_activity(uint32_t activity) {
  switch (activity) {
    case PG_ACTIVITY_UPLOAD: return ProfileKind::upload;
    case PG_ACTIVITY_DOWNLOAD: return ProfileKind::download;
    case PG_ACTIVITY_PEER: return ProfileKind::peer;
    default: return ProfileKind::kernel;
  }
}

const char* usual_name(ProfileKind kind) {
  switch (kind) {
    case ProfileKind::upload: return "upload";
    case ProfileKind::download: return "download";
    case ProfileKind::peer: return "transfer";
    default: return "kernel";
  }
}

struct TakenActivities {
  const char* type;
  std::vector<ProfileRecord> records;
};

void take_activity(void* context, const pg_activity* activity) {
  TakenActivities& to = *static_cast<TakenActivities*>(context);
  if (!PG_HAS(activity, pg_activity, bytes) || activity->end < activity->begin) return;
  const Device* device = find_made_device(to.type, activity->device);
  if (device == nullptr) return;
  ProfileRecord record{};
  record.begin = activity->begin;
  record.end = activity->end;
  record.bytes = activity->bytes;
  record.sequence = activity->sequence;
  record.kind = kind_of_activity(activity->kind);
  record.device = device->id;
  record.thread = kProfileDevice;
  record.stream = device->stream_number(activity->stream);
  if (PG_HAS(activity, pg_activity, name) && activity->name != nullptr) record.name = interned(activity->name);
  to.records.push_back(record);
}

uint64_t launch_key(const ProfileRecord& record) {
  return static_cast<uint64_t>(static_cast<uint32_t>(record.device)) << 48 ^ record.sequence;
}

}  // namespace

void start_activities(uint64_t capacity) {
  devices();  // a device that is first used while the profile is under way is to be seen too
  std::lock_guard guard(activities_mutex);
  for (LoadedPlugin* plugin : find_plugins()) {
    if (!plugin->opened || plugin->profiler == nullptr) continue;
    const bool on = ask_profiler(
        *plugin, "start", [&](pg_error* error) { return plugin->profiler->start(plugin->self, capacity, error); });
    if (on) noting.push_back(plugin);
  }
}

std::vector<ProfileRecord> collect_activities(uint64_t& lost) {
  std::vector<ProfileRecord> all;
  std::lock_guard guard(activities_mutex);
  for (LoadedPlugin* plugin : noting) {
    TakenActivities taken{plugin->profiler->device_type, {}};
    const pg_activity_sink sink{PG_SIZE(pg_activity_sink, add), 0, &taken, take_activity};
    uint64_t without_room = 0;
    ask_profiler(*plugin, "stop", [&](pg_error* error) { return plugin->profiler->stop(plugin->self, error); });
    ask_profiler(*plugin, "drain",
                 [&](pg_error* error) { return plugin->profiler->drain(plugin->self, &sink, &without_room, error); });
    lost += without_room;
    all.insert(all.end(), taken.records.begin(), taken.records.end());
  }
  noting.clear();
  return all;
}

void tie_activities(std::vector<ProfileRecord>& records) {
  std::unordered_map<uint64_t, const ProfileRecord*> launches;
  for (const ProfileRecord& record : records)
    if (record.kind == ProfileKind::launch && record.sequence != 0) launches[launch_key(record)] = &record;
  for (ProfileRecord& record : records) {
    if (record.thread != kProfileDevice) continue;
    const auto found = record.sequence == 0 ? launches.end() : launches.find(launch_key(record));
    if (found != launches.end()) {
      const ProfileRecord& launch = *found->second;
      record.name = launch.name;
      record.shapes = launch.shapes;
      record.origin = launch.origin;
      record.layer = launch.layer;
      if (record.bytes == 0) record.bytes = launch.bytes;
    }
    if (record.name == nullptr) record.name = usual_name(record.kind);
  }
}

}  // namespace perigee
