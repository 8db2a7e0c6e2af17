// SPDX-License-Identifier: Apache-2.0
// Streams, events, failures and the end of a device.
#include "device/device.hpp"

#include "base/ambient.hpp"
#include "base/log.hpp"
#include "base/profile.hpp"
#include "device/captured.hpp"
#include "device/state.hpp"
#include "registry/plugin.hpp"

namespace perigee {

Device::Device(LoadedPlugin* plugin, const pg_device* table, uint32_t ordinal, int32_t id, uint32_t number)
    : id(id),
      ordinal(ordinal),
      number(number),
      type(table->type),
      name(type + ":" + std::to_string(number)),
      allocator(*this),
      plugin_(plugin),
      table_(table),
      state_(std::make_unique<State>()) {
  try {
    read_properties();
  } catch (...) {
    allocator.close();  // it asks this device, whose state goes before it
    throw;
  }
  allocator.configure(properties.alignment, synchronous);
}

Device::Device(const std::string& type, uint32_t number, int32_t id)
    : id(id),
      ordinal(number),
      number(number),
      type(type),
      name(type + ":" + std::to_string(number)),
      allocator(*this),
      plugin_(nullptr),
      table_(nullptr),
      state_(std::make_unique<State>()) {
  synchronous = accelerator = absent = true;
  allocator.configure(16, true);
}

void Device::read_properties() {
  pg_error error = pg::make_error();
  properties.size = PG_SIZE(pg_device_properties, reserved);
  check(table_->properties(self(), ordinal, &properties, &error), error, "properties");
  properties.name[sizeof properties.name - 1] = '\0';
  if (const uint32_t a = properties.alignment; a < 16 || (a & (a - 1)) != 0) {
    pg::fail(PG_E_INTERNAL,
             pg::format("%s: properties: the alignment is %u; expected a power of two, at least 16", name.c_str(), a));
  }
  host_visible = (properties.flags & PG_DEVICE_HOST_VISIBLE) != 0;
  synchronous = (properties.flags & PG_DEVICE_SYNCHRONOUS) != 0;
  accelerator = (properties.flags & PG_DEVICE_ACCELERATOR) != 0;
}

Device::~Device() { close(); }

void* Device::self() const { return plugin_->self; }

bool Device::lost() const { return state_->lost.load(std::memory_order_acquire); }

void Device::check_alive() const {
  if (absent) fail_absent(name);
  if (state_->closed.load(std::memory_order_relaxed)) {
    pg::fail(PG_E_FAILED_PRECONDITION, name + " has been shut down");
  }
  if (lost()) throw pg::Error(PG_E_INTERNAL, name + " is lost: " + state_->lost_reason, 0, PG_ERROR_DEVICE_LOST);
}

void Device::fail(int32_t code, const pg_error& error, const char* what) {
  const auto sequence = static_cast<uint64_t>(error.native);
  const uint64_t next = state_->next_sequence.load(std::memory_order_relaxed);
  std::string message = pg::message_of(code, error);
  std::string text;
  // Only a synchronisation reports in `native` the number of what failed.
  const bool asynchronous = what == nullptr && sequence > 0 && sequence < next;
  if (asynchronous && next - sequence < State::kRing) {
    const char* op = state_->names[sequence % State::kRing].load(std::memory_order_relaxed);
    const char* origin = state_->origins[sequence % State::kRing].load(std::memory_order_relaxed);
    text = pg::format("%s (number %llu): ", op == nullptr ? "?" : op, static_cast<unsigned long long>(sequence));
    if (origin != nullptr) text.replace(text.size() - 2, 2, std::string(", called at ") + origin + ": ");
    // The plugin and the kernel may each have named the operator already.
    for (std::string again = std::string(op == nullptr ? "?" : op) + ": "; message.starts_with(again);)
      message.erase(0, again.size());
  } else if (asynchronous) {
    text = pg::format("operator number %llu: ", static_cast<unsigned long long>(sequence));
  } else {
    text = name + ": " + (what == nullptr ? "synchronize" : what) + ": ";
  }
  text += message;
  if ((error.flags & PG_ERROR_DEVICE_LOST) != 0) {
    std::lock_guard guard(state_->mutex);
    if (!state_->lost.load()) {
      state_->lost_reason = asynchronous ? text : message;
      state_->lost.store(true, std::memory_order_release);
    }
  }
  throw pg::Error(code, text, error.native, error.flags);
}

void Device::warn(const char* what, const pg_error& error) noexcept {
  write_log(PG_LOG_WARNING, name + ": " + what + ": " + error.message);
}

std::unique_lock<std::recursive_mutex> Device::lock(uint32_t stream) {
  if (synchronous) return {};
  if (stream >= State::kStreams) this->stream(stream);  // raises
  return std::unique_lock(state_->submission[stream]);
}

uint64_t Device::stream(uint32_t index) {
  if (index >= State::kStreams) {
    pg::fail_argument(
        pg::format("stream %u is out of range on %s; streams are 0 to %u", index, name.c_str(), State::kStreams - 1));
  }
  if (state_->lost.load(std::memory_order_relaxed) || state_->closed.load(std::memory_order_relaxed)) check_alive();
  uint64_t handle = state_->streams[index].load(std::memory_order_acquire);
  if (handle != 0) return handle;
  if (absent) check_alive();
  std::lock_guard guard(state_->submission[index]);
  handle = state_->streams[index].load();
  if (handle != 0) return handle;
  pg_error error = pg::make_error();
  check(table_->stream_create(self(), ordinal, &handle, &error), error, "stream_create");
  if (handle == 0) pg::fail(PG_E_INTERNAL, name + ": stream_create: the plugin gave the handle 0");
  state_->streams[index].store(handle, std::memory_order_release);
  return handle;
}

uint32_t Device::stream_number(uint64_t handle) const {
  for (uint32_t i = 0; i < State::kStreams; i++)
    if (state_->streams[i].load(std::memory_order_relaxed) == handle) return i;
  return 0;
}

uint64_t Device::sequence(const char* what, const char* origin) {
  if (synchronous) return 0;
  if (ambient().capture != nullptr) [[unlikely]]
    return ambient().capture->sequence(what, origin);
  uint64_t number = state_->next_sequence.fetch_add(1, std::memory_order_relaxed);
  state_->names[number % State::kRing].store(what, std::memory_order_relaxed);
  state_->origins[number % State::kRing].store(origin, std::memory_order_relaxed);
  return number;
}

Event Device::record(uint32_t stream) {
  if (synchronous) return {};
  const uint64_t handle = this->stream(stream);
  uint64_t event = 0;
  pg_error error = pg::make_error();
  {
    std::lock_guard guard(state_->mutex);
    if (!state_->free_events.empty()) {
      event = state_->free_events.back();
      state_->free_events.pop_back();
    }
  }
  if (event == 0) {
    check(table_->event_create(self(), ordinal, &event, &error), error, "event_create");
    std::lock_guard guard(state_->mutex);
    state_->events.push_back(event);
  }
  Event result(this, event);  // goes back to the pool should the recording fail
  auto submitting = lock(stream);
  check(table_->event_record(self(), ordinal, event, handle, &error), error, "event_record");
  return result;
}

void Device::wait(uint32_t stream, const Event& event) {
  if (!event) return;
  if (event.device_->plugin_ != plugin_) {  // the interface promises nothing for events of another plugin
    event.wait();
    return;
  }
  const uint64_t handle = this->stream(stream);
  pg_error error = pg::make_error();
  auto submitting = lock(stream);
  check(table_->event_wait(self(), ordinal, event.handle(), handle, &error), error, "event_wait");
}

void Device::synchronize(uint32_t stream) {
  if (synchronous) return;
  const uint64_t handle = this->stream(stream);
  std::optional<pg::Error> kept;
  {
    std::lock_guard guard(state_->mutex);
    kept.swap(state_->failure[stream]);
  }
  pg_error error = pg::make_error();
  ProfileSpan span;
  int32_t code = table_->stream_sync(self(), ordinal, handle, &error);
  span.done(ProfileKind::wait, "synchronize", id);
  if (kept) throw *kept;
  check(code, error, nullptr);
  check_collectives(true);
}

void Device::ask_after_waiting(LoadedPlugin* engine) { state_->engine.store(engine, std::memory_order_release); }

void Device::check_collectives(bool take) {
  LoadedPlugin* engine = state_->engine.load(std::memory_order_acquire);
  if (engine == nullptr) return;
  pg_error error = pg::make_error();
  const int32_t code = engine->device_collectives->take_failure(engine->self, ordinal, &error);
  std::lock_guard guard(state_->mutex);
  std::optional<pg::Error>& failure = state_->collective_failure;
  if (code != PG_OK && !failure) failure.emplace(code, name + ": " + pg::message_of(code, error), error.native);
  if (!failure) return;
  const pg::Error thrown = *failure;
  if (take) failure.reset();
  throw thrown;
}

void Device::synchronize() {
  if (synchronous) return;
  check_alive();
  std::optional<pg::Error> first;
  for (uint32_t i = 0; i < State::kStreams; i++) {
    if (state_->streams[i].load() == 0) continue;
    try {
      synchronize(i);
    } catch (const pg::Error& error) {
      if (!first) first = error;
    }
  }
  if (first) throw *first;
}

void Device::drain() noexcept {
  if (synchronous || lost()) return;
  for (uint32_t i = 0; i < State::kStreams; i++) {
    if (state_->streams[i].load() == 0) continue;
    try {
      synchronize(i);
    } catch (const pg::Error& error) {
      std::lock_guard guard(state_->mutex);
      if (!state_->failure[i]) state_->failure[i] = error;
    } catch (const std::exception& error) {
      write_log(PG_LOG_WARNING, name + ": " + error.what());
    }
  }
}

void Device::close() noexcept {
  if (state_->closed) return;
  drain();
  allocator.close();
  for (State::Staged& upload : state_->staged) release(upload.pinned);
  state_->staged.clear();  // their events go back to the pool
  state_->closed = true;
  empty_pinned();
  pg_error error = pg::make_error();
  for (uint64_t event : state_->events) {  // those too that somebody still has
    if (table_->event_destroy(self(), ordinal, event, &error) != PG_OK) warn("event_destroy", error);
  }
  state_->events.clear();
  state_->free_events.clear();
  for (auto& stream : state_->streams) {
    const uint64_t handle = stream.exchange(0);
    if (handle != 0 && table_->stream_destroy(self(), ordinal, handle, &error) != PG_OK) warn("stream_destroy", error);
  }
}

bool Device::map(uint64_t bytes, uint64_t& buffer, pg_error& error) {
  if (absent) check_alive();
  int32_t code = table_->alloc(self(), ordinal, PG_MEMORY_DEVICE, bytes, &buffer, &error);
  if (code == PG_E_OUT_OF_MEMORY) return false;
  check(code, error, "alloc");
  if (buffer == 0) pg::fail(PG_E_INTERNAL, name + ": alloc: the plugin gave the handle 0");
  return true;
}

uint64_t Device::memory_free() {
  if (absent || host_visible) return 0;  // a processor's memory is for everybody
  pg_device_properties now{};
  now.size = PG_SIZE(pg_device_properties, reserved);
  pg_error error = pg::make_error();
  check(table_->properties(self(), ordinal, &now, &error), error, "properties");
  return now.memory_free;
}

void Device::unmap(uint64_t buffer) noexcept {
  pg_error error = pg::make_error();
  if (table_->free(self(), ordinal, PG_MEMORY_DEVICE, buffer, &error) != PG_OK) warn("free", error);
}

uint64_t Device::mark(uint32_t stream) { return record(stream).release(); }

bool Device::passed(uint64_t mark) {
  if (lost()) return true;
  pg_error error = pg::make_error();
  return table_->event_query(self(), ordinal, mark, &error) != PG_E_BUSY;
}

void Device::wait(uint64_t mark) noexcept {
  Event event(this, mark);
  try {
    event.wait();
  } catch (const std::exception&) {  // poisoned: nothing behind it will run
  }
  event.release();
}

void Device::forget(uint64_t mark) noexcept { Event(this, mark); }

Event& Event::operator=(Event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (device_ == nullptr) return;
  Device::State& state = *device_->state_;
  std::lock_guard guard(state.mutex);
  if (state.closed) {  // outlived its device's end: its plugin may be gone
    return;
  }
  try {
    state.free_events.push_back(handle_);
  } catch (const std::bad_alloc&) {  // not used again
  }
}

bool Event::passed() const { return device_ == nullptr || device_->passed(handle_); }

void Event::wait() const {
  if (device_ == nullptr) return;
  device_->check_alive();
  pg_error error = pg::make_error();
  device_->check(device_->table()->event_sync(device_->self(), device_->ordinal, handle_, &error), error, nullptr);
  device_->check_collectives(false);
}

}  // namespace perigee
