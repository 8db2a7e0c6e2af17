// SPDX-License-Identifier: Apache-2.0
// perigee/device.hpp: how a device is written: a class with the methods below, turned into the C table.
//
//   struct MyDevice {
//     static constexpr const char *type = "my", *aliases = "";
//     uint32_t count(std::string& reason);                          // 0 with the reason: none here
//     void properties(uint32_t device, pg_device_properties& out);  // out is zeroed, size set
//     uint64_t alloc(uint32_t device, uint32_t kind, uint64_t bytes);
//     void free(uint32_t device, uint32_t kind, uint64_t buffer);
//     uint64_t stream_create(uint32_t device);
//     void stream_destroy(uint32_t device, uint64_t stream);
//     void stream_sync(uint32_t device, uint64_t stream);
//     uint64_t event_create(uint32_t device);
//     void event_destroy(uint32_t device, uint64_t event);
//     void event_record(uint32_t device, uint64_t event, uint64_t stream);
//     void event_wait(uint32_t device, uint64_t event, uint64_t stream);
//     bool event_query(uint32_t device, uint64_t event);            // true: passed
//     void event_sync(uint32_t device, uint64_t event);
//     void upload(uint32_t device, pg_address target, const void* source, uint64_t bytes, pg::Ticket ticket);
//     void download(uint32_t device, void* target, pg_address source, uint64_t bytes, pg::Ticket ticket);
//     void copy(uint32_t device, const pg_tensor& target, const pg_tensor& source, pg::Ticket ticket);
//     void fill(uint32_t device, const pg_tensor& target, const pg_number& value, pg::Ticket ticket);
//     // optional:
//     void peer(uint32_t target_device, pg_address target, uint32_t source_device, pg_address source, uint64_t bytes,
//               pg::Ticket ticket);
//     double event_elapsed(uint32_t device, uint64_t start, uint64_t stop);  // seconds
//     uint64_t native(uint32_t device, const char* what, uint64_t handle);
//     void capture_begin(uint32_t device, uint64_t stream);                  // all four or none
//     uint64_t capture_end(uint32_t device, uint64_t stream);                // gives a plan
//     void plan_launch(uint32_t device, uint64_t plan, pg::Ticket ticket);
//     void plan_destroy(uint32_t device, uint64_t plan);
//   };
//
// The plugin is pg::Provides<pg::DeviceTable<MyDevice>, pg::KernelTable<"my">>, and pg::device<Plugin>() the device for
// its kernels; or a class with a method `MyDevice& device()` that answers iface(PG_IFACE_DEVICE) with
// &pg::device_table<Plugin>. A device without streams derives from SynchronousDevice, which has everything about
// streams and events. kernels/reference/copy.hpp has copy and fill for memory that the processor reaches. Methods throw
// pg::Error; what a stream's earlier work did wrong is thrown by stream_sync and event_sync. What each entry promises,
// and from which threads it is called, is said in plugin.h (pg_device); an exhausted alloc throws PG_E_OUT_OF_MEMORY.
// None of the optional methods may be overloaded.
#pragma once

#include "perigee/plugin.hpp"

namespace pg {

// Where in the order of things a piece of work belongs: its stream, and its number within the device. A failure that
// shows later is reported by that number: throw pg::Error(code, message, /*native=*/sequence).
struct Ticket {
  uint64_t stream, sequence;
};

// All about streams and events where every call has happened when it returns: properties finds
// PG_DEVICE_SYNCHRONOUS set.
struct SynchronousDevice {
  uint64_t stream_create(uint32_t) { return 1; }
  void stream_destroy(uint32_t, uint64_t) {}
  void stream_sync(uint32_t, uint64_t) {}
  uint64_t event_create(uint32_t) { return 1; }
  void event_destroy(uint32_t, uint64_t) {}
  void event_record(uint32_t, uint64_t, uint64_t) {}
  void event_wait(uint32_t, uint64_t, uint64_t) {}
  bool event_query(uint32_t, uint64_t) { return true; }
  void event_sync(uint32_t, uint64_t) {}
};

namespace detail {

template <class Plugin>
struct DeviceEntries {
  static auto& get(void* self) { return static_cast<Plugin*>(self)->device(); }
  using Type = std::remove_reference_t<decltype(std::declval<Plugin&>().device())>;

  static int32_t count(void* self, uint32_t* count, pg_error* error) noexcept {
    return guard(error, "count", [&] {
      std::string reason;
      *count = get(self).count(reason);
      if (*count == 0) set_error(error, PG_OK, "count", reason.c_str());
    });
  }
  static int32_t properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) noexcept {
    return guard(error, "properties", [&] {
      pg_device_properties own{};
      own.size = PG_SIZE(pg_device_properties, reserved);
      if (std::is_base_of_v<SynchronousDevice, Type>) own.flags = PG_DEVICE_SYNCHRONOUS;
      get(self).properties(device, own);
      uint32_t room = out->size < own.size ? out->size : own.size;  // an older host's struct is shorter
      if (room == 0) room = own.size;
      std::memcpy(out, &own, room);
      out->size = room;
    });
  }
  static int32_t alloc(void* self, uint32_t device, uint32_t kind, uint64_t bytes, uint64_t* buffer,
                       pg_error* error) noexcept {
    return guard(error, "alloc", [&] { *buffer = get(self).alloc(device, kind, bytes); });
  }
  static int32_t free(void* self, uint32_t device, uint32_t kind, uint64_t buffer, pg_error* error) noexcept {
    return guard(error, "free", [&] { get(self).free(device, kind, buffer); });
  }
  static int32_t stream_create(void* self, uint32_t device, uint64_t* stream, pg_error* error) noexcept {
    return guard(error, "stream_create", [&] { *stream = get(self).stream_create(device); });
  }
  static int32_t stream_destroy(void* self, uint32_t device, uint64_t stream, pg_error* error) noexcept {
    return guard(error, "stream_destroy", [&] { get(self).stream_destroy(device, stream); });
  }
  static int32_t stream_sync(void* self, uint32_t device, uint64_t stream, pg_error* error) noexcept {
    return guard(error, "stream_sync", [&] { get(self).stream_sync(device, stream); });
  }
  static int32_t event_create(void* self, uint32_t device, uint64_t* event, pg_error* error) noexcept {
    return guard(error, "event_create", [&] { *event = get(self).event_create(device); });
  }
  static int32_t event_destroy(void* self, uint32_t device, uint64_t event, pg_error* error) noexcept {
    return guard(error, "event_destroy", [&] { get(self).event_destroy(device, event); });
  }
  static int32_t event_record(void* self, uint32_t device, uint64_t event, uint64_t stream, pg_error* error) noexcept {
    return guard(error, "event_record", [&] { get(self).event_record(device, event, stream); });
  }
  static int32_t event_wait(void* self, uint32_t device, uint64_t event, uint64_t stream, pg_error* error) noexcept {
    return guard(error, "event_wait", [&] { get(self).event_wait(device, event, stream); });
  }
  static int32_t event_query(void* self, uint32_t device, uint64_t event, pg_error* error) noexcept {
    return guard(error, "event_query",
                 [&]() -> int32_t { return get(self).event_query(device, event) ? PG_OK : PG_E_BUSY; });
  }
  static int32_t event_sync(void* self, uint32_t device, uint64_t event, pg_error* error) noexcept {
    return guard(error, "event_sync", [&] { get(self).event_sync(device, event); });
  }
  static int32_t upload(void* self, uint32_t device, uint64_t buffer, uint64_t offset, const void* source,
                        uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error* error) noexcept {
    return guard(error, "upload", [&] {
      get(self).upload(device, pg_address{buffer, offset}, source, bytes, Ticket{stream, sequence});
    });
  }
  static int32_t download(void* self, uint32_t device, void* target, uint64_t buffer, uint64_t offset, uint64_t bytes,
                          uint64_t stream, uint64_t sequence, pg_error* error) noexcept {
    return guard(error, "download", [&] {
      get(self).download(device, target, pg_address{buffer, offset}, bytes, Ticket{stream, sequence});
    });
  }
  static int32_t copy(void* self, uint32_t device, const pg_tensor* target, const pg_tensor* source, uint64_t stream,
                      uint64_t sequence, pg_error* error) noexcept {
    return guard(error, "copy", [&] { get(self).copy(device, *target, *source, Ticket{stream, sequence}); });
  }
  static int32_t fill(void* self, uint32_t device, const pg_tensor* target, const pg_number* value, uint64_t stream,
                      uint64_t sequence, pg_error* error) noexcept {
    return guard(error, "fill", [&] { get(self).fill(device, *target, *value, Ticket{stream, sequence}); });
  }

  static int32_t peer(void* self, uint32_t target_device, uint64_t target, uint64_t target_offset,
                      uint32_t source_device, uint64_t source, uint64_t source_offset, uint64_t bytes, uint64_t stream,
                      uint64_t sequence, pg_error* error) noexcept {
    return guard(error, "peer", [&] {
      if constexpr (requires { &Type::peer; }) {
        get(self).peer(target_device, pg_address{target, target_offset}, source_device,
                       pg_address{source, source_offset}, bytes, Ticket{stream, sequence});
      }
    });
  }
  static int32_t event_elapsed(void* self, uint32_t device, uint64_t start, uint64_t stop, double* seconds,
                               pg_error* error) noexcept {
    return guard(error, "event_elapsed", [&] {
      if constexpr (requires { &Type::event_elapsed; }) *seconds = get(self).event_elapsed(device, start, stop);
    });
  }
  static int32_t native(void* self, uint32_t device, const char* what, uint64_t handle, uint64_t* out,
                        pg_error* error) noexcept {
    return guard(error, "native", [&] {
      if constexpr (requires { &Type::native; }) *out = get(self).native(device, what, handle);
    });
  }

  static int32_t capture_begin(void* self, uint32_t device, uint64_t stream, pg_error* error) noexcept {
    return guard(error, "capture_begin", [&] {
      if constexpr (requires { &Type::capture_begin; }) get(self).capture_begin(device, stream);
    });
  }
  static int32_t capture_end(void* self, uint32_t device, uint64_t stream, uint64_t* plan, pg_error* error) noexcept {
    *plan = 0;
    return guard(error, "capture_end", [&] {
      if constexpr (requires { &Type::capture_end; }) *plan = get(self).capture_end(device, stream);
    });
  }
  static int32_t plan_launch(void* self, uint32_t device, uint64_t plan, uint64_t stream, uint64_t sequence,
                             pg_error* error) noexcept {
    return guard(error, "plan_launch", [&] {
      if constexpr (requires { &Type::plan_launch; }) get(self).plan_launch(device, plan, Ticket{stream, sequence});
    });
  }
  static int32_t plan_destroy(void* self, uint32_t device, uint64_t plan, pg_error* error) noexcept {
    return guard(error, "plan_destroy", [&] {
      if constexpr (requires { &Type::plan_destroy; }) get(self).plan_destroy(device, plan);
    });
  }

  // Optional entries are NULL where the class has no such method; the host then answers PG_E_UNIMPLEMENTED for it.
  static constexpr pg_device table() {
    pg_device t{};
    t.size = PG_SIZE(pg_device, plan_destroy);
    t.type = Type::type;
    t.aliases = Type::aliases;
    t.count = count;
    t.properties = properties;
    t.alloc = alloc;
    t.free = free;
    t.stream_create = stream_create;
    t.stream_destroy = stream_destroy;
    t.stream_sync = stream_sync;
    t.event_create = event_create;
    t.event_destroy = event_destroy;
    t.event_record = event_record;
    t.event_wait = event_wait;
    t.event_query = event_query;
    t.event_sync = event_sync;
    t.upload = upload;
    t.download = download;
    t.copy = copy;
    t.fill = fill;
    if constexpr (requires { &Type::peer; }) t.peer = peer;
    if constexpr (requires { &Type::event_elapsed; }) t.event_elapsed = event_elapsed;
    if constexpr (requires { &Type::native; }) t.native = native;
    if constexpr (requires { &Type::capture_begin; }) {
      t.capture_begin = capture_begin;
      t.capture_end = capture_end;
      t.plan_launch = plan_launch;
      t.plan_destroy = plan_destroy;
    }
    return t;
  }
};

}  // namespace detail

template <class Plugin>
inline const pg_device device_table = detail::DeviceEntries<Plugin>::table();

// The part of a plugin that is its device.
template <class MyDevice>
class DeviceTable {
 public:
  MyDevice& device() { return device_; }

  static constexpr const char* id = PG_IFACE_DEVICE;
  template <class Plugin>
  const void* table() const {
    return &device_table<Plugin>;
  }

 private:
  MyDevice device_;
};

// The open plugin's device, for its kernels.
template <class Plugin>
auto& device() {
  return Entry<Plugin>::instance->device();
}

}  // namespace pg
