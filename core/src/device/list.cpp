// SPDX-License-Identifier: Apache-2.0
// All devices of the process: made when their plugin loads, found by number and by name.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <sstream>
#include <tuple>

#include "device/list.hpp"

#include "base/ambient.hpp"
#include "base/log.hpp"

namespace perigee {

namespace {

constexpr int32_t kMaxDevices = 256;
constexpr int32_t kMaxAbsent = 64;  // names of devices that are not here; their numbers follow those of devices

// Never destroyed: tensors may outlive everything else.
struct DeviceList {
  std::array<std::atomic<Device*>, kMaxDevices> by_id{};
  std::atomic<int32_t> count{0};
  std::array<std::atomic<Device*>, kMaxAbsent> absent{};
  std::atomic<int32_t> absent_count{0};
  std::mutex mutex{};  // of what follows
  // In the order users see; replaced, never changed, since callers iterate over it.
  std::vector<std::unique_ptr<const std::vector<Device*>>> lists;
  std::mutex setting{};                           // of the next
  std::optional<std::vector<Device*>> visible{};  // besides those that always are; none: all
};
DeviceList& device_list() {
  static auto& list = *new DeviceList;
  return list;
}

// What takes part in every program: where scripts' own numbers are.
bool always_visible(const Device& device) { return device.type == "cpu"; }

// With the mutex held.
void publish() {
  DeviceList& list = device_list();
  auto sorted = std::make_unique<std::vector<Device*>>();
  for (int32_t i = 0; i < list.count; i++) sorted->push_back(list.by_id[i]);
  std::sort(sorted->begin(), sorted->end(), [](const Device* a, const Device* b) {
    auto key = [](const Device* d) { return std::make_tuple(d->type != "cpu", d->plugin()->name, d->number); };
    return key(a) < key(b);
  });
  if (list.visible) {
    std::erase_if(*sorted, [](const Device* d) { return !always_visible(*d); });
    sorted->insert(sorted->end(), list.visible->begin(), list.visible->end());
  }
  list.lists.push_back(std::move(sorted));
}

}  // namespace

const std::vector<Device*>& known_devices() {
  static const std::vector<Device*> none;
  std::lock_guard guard(device_list().mutex);
  return device_list().lists.empty() ? none : *device_list().lists.back();
}

namespace {

bool has_alias(const Device& device, const std::string& alias) {
  std::istringstream aliases(device.table()->aliases);
  for (std::string each; aliases >> each;) {
    if (each.back() == ',') each.pop_back();
    if (each == alias) return true;
  }
  return false;
}

struct DeviceName {
  std::string type;
  uint32_t index = 0;
};

// "cpu", "sim:1", "/gpu:0", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1".
DeviceName parse_name(const std::string& name) {
  std::string text;
  for (char c : name) text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (!text.empty() && text[0] == '/') text.erase(0, 1);
  for (const std::string part : {"job:localhost/", "replica:0/", "task:0/", "device:"})
    if (text.rfind(part, 0) == 0) text.erase(0, part.size());
  const size_t colon = text.find(':');
  DeviceName parsed{text.substr(0, colon), 0};
  bool good = !parsed.type.empty();
  if (colon != std::string::npos) {
    const std::string digits = text.substr(colon + 1);
    good = good && !digits.empty() && digits.size() <= 6 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (good) parsed.index = static_cast<uint32_t>(std::stoul(digits));
  }
  if (!good) {
    pg::fail_argument("'" + name +
                      "' is not a device name; expected TYPE or TYPE:NUMBER, such as \"cpu\" or \"gpu:0\"");
  }
  return parsed;
}

Device* pick(const DeviceName& wanted) {
  uint32_t seen = 0;
  for (Device* device : known_devices()) {
    if (device->type == wanted.type && device->number == wanted.index) return device;
  }
  for (Device* device : known_devices()) {
    if (has_alias(*device, wanted.type) && seen++ == wanted.index) return device;
  }
  return nullptr;
}

}  // namespace

bool offers_devices(const LoadedPlugin& plugin) {
  return has_kind(plugin, "device") || (!plugin.has_manifest && plugin.state == PluginState::unavailable);
}

namespace {

std::vector<Device*> hidden_devices() {
  std::vector<Device*> hidden;
  const auto& shown = known_devices();
  for (int32_t i = 0; i < device_list().count; i++) {
    Device* device = device_list().by_id[static_cast<size_t>(i)];
    if (std::find(shown.begin(), shown.end(), device) == shown.end()) hidden.push_back(device);
  }
  return hidden;
}

}  // namespace

void fail_absent(const std::string& name) {
  std::string text = "there is no device '" + name + "'; ";
  const auto& all = devices();
  if (all.empty()) text += "no device plugin could be loaded";
  for (size_t i = 0; i < all.size(); i++) text += (i == 0 ? "there are " : ", ") + all[i]->name;
  for (const LoadedPlugin* plugin : find_plugins()) {
    if (plugin->state != PluginState::unavailable || !offers_devices(*plugin)) continue;
    text += "; '" + plugin->name + "' is unavailable: " + plugin->reason;
  }
  for (const Device* hidden : hidden_devices()) text += "; " + hidden->name + " is not among the visible devices";
  pg::fail(PG_E_NOT_FOUND, text);
}

Device* find_made_device(const std::string& type, uint32_t ordinal) {
  const DeviceList& list = device_list();
  for (int32_t i = 0; i < list.count; i++) {
    Device* device = list.by_id[static_cast<size_t>(i)];
    if (device->ordinal == ordinal && device->type == type) return device;
  }
  return nullptr;
}

bool device_type_taken(const std::string& type, std::string& by) {
  for (int32_t i = 0; i < device_list().count; i++) {
    const Device* device = device_list().by_id[static_cast<size_t>(i)];
    if (device->type != type) continue;
    by = device->plugin()->name;
    return true;
  }
  return false;
}

DeviceParts make_devices(LoadedPlugin& plugin, uint32_t count) {
  const int32_t first = device_list().count;
  if (count > static_cast<uint32_t>(kMaxDevices - first)) {
    pg::fail_support(
        pg::format("it has %u devices; of %d in all there is room for %d", count, kMaxDevices, kMaxDevices - first));
  }
  DeviceParts made;
  for (uint32_t ordinal = 0; ordinal < count; ordinal++) {
    made.push_back(
        std::make_unique<Device>(&plugin, plugin.device, ordinal, first + static_cast<int32_t>(ordinal), ordinal));
  }
  return made;
}

void list_devices(DeviceParts made) {
  DeviceList& list = device_list();
  std::lock_guard guard(list.mutex);
  for (auto& device : made) {
    list.by_id[list.count] = device.release();
    list.count++;
  }
  if (!made.empty()) publish();
}

void drain_devices() noexcept {
  DeviceList& list = device_list();
  for (int32_t i = 0; i < list.count; i++) {
    try {
      list.by_id[i].load()->synchronize();
    } catch (const std::exception& e) {
      write_log(PG_LOG_WARNING, list.by_id[i].load()->name + std::string(": ") + e.what());
    }
  }
}

void close_devices() noexcept {
  DeviceList& list = device_list();
  for (int32_t i = list.count - 1; i >= 0; i--) list.by_id[i].load()->close();
}

const std::vector<Device*>& devices() {
  load_kind("device");
  return known_devices();
}

Device& device(int32_t id) {
  DeviceList& list = device_list();
  if (id >= kMaxDevices && id - kMaxDevices < list.absent_count.load(std::memory_order_acquire))
    return *list.absent[static_cast<size_t>(id - kMaxDevices)].load(std::memory_order_relaxed);
  const int32_t count = list.count.load(std::memory_order_acquire);
  if (id < 0 || id >= count) pg::fail_argument(pg::format("there is no device number %d; there are %d", id, count));
  return *list.by_id[id].load(std::memory_order_relaxed);
}

namespace {

Device* look_for(const DeviceName& wanted) {
  load_device_type(wanted.type);
  if (Device* found = pick(wanted)) return found;
  load_kind("device");  // an alias, or a plugin that is not named like its devices
  return pick(wanted);
}

}  // namespace

Device& find_device(const std::string& name) {
  if (Device* found = look_for(parse_name(name))) return *found;
  fail_absent(name);
}

Device& wished_device(const std::string& name) {
  const DeviceName wanted = parse_name(name);
  if (Device* found = look_for(wanted)) return *found;
  DeviceList& list = device_list();
  std::lock_guard guard(list.mutex);
  const int32_t count = list.absent_count;
  for (int32_t i = 0; i < count; i++) {
    Device* known = list.absent[static_cast<size_t>(i)];
    if (known->type == wanted.type && known->number == wanted.index) return *known;
  }
  if (count == kMaxAbsent)
    pg::fail_argument(pg::format("'%s' is not here, as are %d others that were named: there is room for no more",
                                 name.c_str(), kMaxAbsent));
  auto* made = new Device(wanted.type, wanted.index, kMaxDevices + count);
  list.absent[static_cast<size_t>(count)] = made;
  list.absent_count = count + 1;
  return *made;
}

Device* present_device(const Device& wished) { return look_for({wished.type, wished.number}); }

Device* first_accelerator() {
  for (Device* device : devices())
    if (device->accelerator && device->table()->aliases != nullptr && device->table()->aliases[0] != '\0')
      return device;
  return nullptr;
}

std::string common_name(const Device& device) {
  std::string alias;
  if (!device.absent) std::istringstream(device.table()->aliases) >> alias;
  if (!alias.empty() && alias.back() == ',') alias.pop_back();
  uint32_t index = 0;
  if (!alias.empty())
    for (Device* each : known_devices()) {
      if (each == &device) return "/" + alias + ":" + std::to_string(index);
      if (has_alias(*each, alias)) index++;
    }
  return "/" + device.name;
}

std::vector<Device*> split_device(Device& device, const std::vector<uint64_t>& limits) {
  DeviceList& list = device_list();
  std::lock_guard setting(list.setting);
  if (device.absent) fail_absent(device.name);
  std::vector<Device*> parts;
  uint32_t next = 0;
  for (int32_t i = 0; i < list.count; i++) {
    Device* each = list.by_id[static_cast<size_t>(i)];
    if (each->type == device.type) next = std::max(next, each->number + 1);
    if (each->plugin() == device.plugin() && each->ordinal == device.ordinal) parts.push_back(each);
  }
  if (parts[0] != &device) pg::fail_argument(device.name + " is itself a part of " + parts[0]->name);
  if (limits.size() < parts.size()) {
    pg::fail(PG_E_FAILED_PRECONDITION,
             pg::format("%s is %zu devices already, which cannot be taken away; %zu were given", device.name.c_str(),
                        parts.size(), limits.size()));
  }
  uint64_t sum = 0;
  for (uint64_t limit : limits) {
    if (limit == 0 || sum + limit < sum) pg::fail_argument("each part needs a limit above 0");
    sum += limit;
  }
  if (const uint64_t total = device.properties.memory_total; total != 0 && sum > total) {
    pg::fail_argument(pg::format("the parts' limits are %llu bytes in all; %s has %llu",
                                 static_cast<unsigned long long>(sum), device.name.c_str(),
                                 static_cast<unsigned long long>(total)));
  }
  DeviceParts made;
  for (size_t i = parts.size(); i < limits.size(); i++) {
    const int32_t id = list.count + static_cast<int32_t>(made.size());
    if (id >= kMaxDevices) pg::fail_support(pg::format("there is room for %d devices in all", kMaxDevices));
    made.push_back(std::make_unique<Device>(device.plugin(), device.table(), device.ordinal, id, next++));
    parts.push_back(made.back().get());
  }
  if (list.visible && !always_visible(device)) {
    std::lock_guard guard(list.mutex);
    for (auto& part : made) list.visible->push_back(part.get());
  }
  list_devices(std::move(made));
  for (size_t i = 0; i < limits.size(); i++) parts[i]->allocator.set_limit(limits[i]);
  return parts;
}

void set_visible_devices(const std::vector<std::string>* names) {
  devices();
  DeviceList& list = device_list();
  std::lock_guard setting(list.setting);
  auto show = [&](std::optional<std::vector<Device*>> visible) {
    std::lock_guard guard(list.mutex);
    list.visible = std::move(visible);
    publish();
  };
  auto before = list.visible;
  show(std::nullopt);  // names are those of the machine, whatever was visible
  if (names == nullptr) return;
  try {
    std::vector<Device*> chosen;
    for (const std::string& name : *names) {
      Device& device = find_device(name);
      if (std::find(chosen.begin(), chosen.end(), &device) != chosen.end())
        pg::fail_argument(device.name + " is named twice");
      if (!always_visible(device)) chosen.push_back(&device);
    }
    for (Device* device : known_devices()) {
      if (always_visible(*device) || std::find(chosen.begin(), chosen.end(), device) != chosen.end()) continue;
      if (device->allocator.stats().device_allocations > 0)
        pg::fail(PG_E_FAILED_PRECONDITION, device->name + " has been used and cannot be hidden any more");
    }
    show(std::move(chosen));
  } catch (...) {
    show(std::move(before));
    throw;
  }
}

Device& creation_device() { return ambient().usual < 0 ? default_device() : device(ambient().usual); }

Device& default_device() {
  static std::atomic<Device*> cached{nullptr};
  Device* found = cached.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = &find_device("cpu:0");
    cached.store(found, std::memory_order_release);
  }
  return *found;
}

}  // namespace perigee
