// SPDX-License-Identifier: Apache-2.0
#include "device/fake_device.hpp"

#include <cstdlib>
#include <cstring>

namespace perigee::test {

// The table's functions; on a host-visible buffer the handle is the address, as the allocator never looks inside.
struct FakeTable {
  static FakePlugin& of(void* self) { return *static_cast<FakePlugin*>(self); }

  static int32_t count(void*, uint32_t* count, pg_error*) {
    *count = 2;
    return PG_OK;
  }

  static int32_t properties(void* self, uint32_t, pg_device_properties* out, pg_error*) {
    FakePlugin& p = of(self);
    out->flags = p.options.synchronous ? PG_DEVICE_SYNCHRONOUS | PG_DEVICE_HOST_VISIBLE : PG_DEVICE_ACCELERATOR;
    std::snprintf(out->name, sizeof out->name, "fake");
    out->memory_total = p.options.memory;
    if (p.options.memory != 0) out->memory_free = p.options.memory - p.allocated;
    out->stream_count = 2;
    out->alignment = p.options.alignment;
    return PG_OK;
  }

  static int32_t alloc(void* self, uint32_t, uint32_t kind, uint64_t bytes, uint64_t* buffer, pg_error* error) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    if (p.options.no_handles) return PG_OK;
    if (kind == PG_MEMORY_DEVICE) {
      p.allocations++;
      const bool injected = p.fail_allocation > 0 && --p.fail_allocation == 0;
      if (injected || (p.options.memory != 0 && p.allocated + bytes > p.options.memory)) {
        return pg::set_error(error, PG_E_OUT_OF_MEMORY, "alloc", "the fake is full");
      }
      p.allocated += bytes;
    }
    // Mapped only when touched, so that large segments cost the test nothing.
    *buffer = reinterpret_cast<uint64_t>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    p.sizes_[*buffer] = bytes;
    (kind == PG_MEMORY_DEVICE ? p.buffers : p.pinned).insert(*buffer);
    return PG_OK;
  }

  static int32_t free(void* self, uint32_t, uint32_t kind, uint64_t buffer, pg_error* error) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    auto& known = kind == PG_MEMORY_DEVICE ? p.buffers : p.pinned;
    if (known.erase(buffer) == 0) return pg::set_error(error, PG_E_INVALID_ARGUMENT, "free", "not a buffer");
    if (kind == PG_MEMORY_DEVICE) p.allocated -= p.sizes_[buffer];
    std::free(reinterpret_cast<void*>(buffer));
    return PG_OK;
  }

  static int32_t stream_create(void* self, uint32_t device, uint64_t* stream, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    p.streams_.emplace_back().device = device;
    *stream = p.streams_.size();
    return PG_OK;
  }
  static int32_t stream_destroy(void*, uint32_t, uint64_t, pg_error*) { return PG_OK; }

  static int32_t stream_sync(void* self, uint32_t, uint64_t stream, pg_error* error) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    p.run(static_cast<uint32_t>(stream - 1));
    auto& s = p.at(stream);
    if (s.failed == 0) return PG_OK;
    pg::set_error(error, PG_E_INTERNAL, "stream_sync", s.message.c_str(), s.failed, s.flags);
    s.failed = 0;
    return PG_E_INTERNAL;
  }

  static int32_t event_create(void* self, uint32_t, uint64_t* event, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    *event = p.next_event_++;
    p.live_events++;
    return PG_OK;
  }
  static int32_t event_destroy(void* self, uint32_t, uint64_t event, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    p.events_.erase(event);
    p.live_events--;
    return PG_OK;
  }
  static int32_t event_record(void* self, uint32_t, uint64_t event, uint64_t stream, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    auto flag = std::make_shared<bool>(false);
    p.events_[event] = flag;
    p.at(stream).work.push_back([flag] { *flag = true; });
    return PG_OK;
  }
  static int32_t event_wait(void* self, uint32_t, uint64_t event, uint64_t stream, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    auto flag = p.events_.at(event);
    p.at(stream).work.push_back([&p, flag] {
      for (uint32_t i = 0; !*flag && i < p.streams_.size(); i++) p.run(i);
    });
    return PG_OK;
  }
  static int32_t event_query(void* self, uint32_t, uint64_t event, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    return *p.events_.at(event) ? PG_OK : PG_E_BUSY;
  }
  static int32_t event_sync(void* self, uint32_t, uint64_t event, pg_error*) {
    FakePlugin& p = of(self);
    std::lock_guard guard(p.mutex_);
    auto flag = p.events_.at(event);
    for (uint32_t i = 0; !*flag && i < p.streams_.size(); i++) p.run(i);
    return PG_OK;
  }

  // Copies read and write when they happen, not when they are submitted.
  static void move(FakePlugin& p, uint64_t stream, void* target, const void* source, uint64_t bytes) {
    std::lock_guard guard(p.mutex_);
    p.at(stream).work.push_back([=] { std::memcpy(target, source, bytes); });
  }
  static int32_t upload(void* self, uint32_t, uint64_t buffer, uint64_t offset, const void* source, uint64_t bytes,
                        uint64_t stream, uint64_t, pg_error*) {
    move(of(self), stream, reinterpret_cast<void*>(buffer + offset), source, bytes);
    return PG_OK;
  }
  static int32_t download(void* self, uint32_t, void* target, uint64_t buffer, uint64_t offset, uint64_t bytes,
                          uint64_t stream, uint64_t, pg_error*) {
    move(of(self), stream, target, reinterpret_cast<void*>(buffer + offset), bytes);
    return PG_OK;
  }
  // Of tensors of one dtype: element by element, by their strides. visit(a, b): where one lies in each.
  template <class Visit>
  static void each_element(const pg_tensor& a, const pg_tensor& b, Visit&& visit) {
    const int64_t item = a.dtype_bits / 8;
    int64_t count = 1;
    for (uint32_t i = 0; i < a.rank; i++) count *= a.shape[i];
    for (int64_t n = 0; n < count; n++) {
      int64_t rest = n, at_a = 0, at_b = 0;
      for (uint32_t i = a.rank; i-- > 0; rest /= a.shape[i]) {
        at_a += rest % a.shape[i] * a.stride[i];
        at_b += rest % a.shape[i] * b.stride[i];
      }
      visit(reinterpret_cast<char*>(a.buffer + a.offset) + at_a * item,
            reinterpret_cast<char*>(b.buffer + b.offset) + at_b * item, static_cast<size_t>(item));
    }
  }
  // What streams hold back is not described by values that live as long, so only synchronous devices compute here.
  static int32_t copy(void* self, uint32_t, const pg_tensor* target, const pg_tensor* source, uint64_t, uint64_t,
                      pg_error*) {
    if (!of(self).options.synchronous) return PG_OK;
    each_element(*target, *source, [](char* y, char* x, size_t item) { std::memcpy(y, x, item); });
    return PG_OK;
  }
  // Zeros alone.
  static int32_t fill(void* self, uint32_t, const pg_tensor* target, const pg_number*, uint64_t, uint64_t, pg_error*) {
    if (!of(self).options.synchronous) return PG_OK;
    each_element(*target, *target, [](char* y, char*, size_t item) { std::memset(y, 0, item); });
    return PG_OK;
  }
  static int32_t peer(void* self, uint32_t, uint64_t target, uint64_t target_offset, uint32_t, uint64_t source,
                      uint64_t source_offset, uint64_t bytes, uint64_t stream, uint64_t, pg_error* error) {
    FakePlugin& p = of(self);
    if (!p.options.peer) return pg::set_error(error, PG_E_UNIMPLEMENTED, "peer", "no");
    p.peer_copies++;
    move(p, stream, reinterpret_cast<void*>(target + target_offset), reinterpret_cast<void*>(source + source_offset),
         bytes);
    return PG_OK;
  }
};

FakePlugin::FakePlugin(FakeOptions wanted) : options(std::move(wanted)) {
  using T = FakeTable;
  table = {PG_SIZE(pg_device, peer),
           0,
           options.type.c_str(),
           "",
           T::count,
           T::properties,
           T::alloc,
           T::free,
           T::stream_create,
           T::stream_destroy,
           T::stream_sync,
           T::event_create,
           T::event_destroy,
           T::event_record,
           T::event_wait,
           T::event_query,
           T::event_sync,
           T::upload,
           T::download,
           T::copy,
           T::fill,
           T::peer,
           nullptr,  // event_elapsed, native
           nullptr,
           nullptr,  // capture
           nullptr,
           nullptr,
           nullptr};
  loaded.name = options.type;
  loaded.self = this;
  loaded.device = &table;
}

FakePlugin::~FakePlugin() {
  for (uint64_t buffer : buffers) std::free(reinterpret_cast<void*>(buffer));
  for (uint64_t buffer : pinned) std::free(reinterpret_cast<void*>(buffer));
}

void FakePlugin::run(uint32_t stream, size_t count) {
  std::lock_guard guard(mutex_);
  Stream& s = streams_.at(stream);
  for (; count > 0 && !s.work.empty(); count--) {
    auto work = std::move(s.work.front());
    s.work.pop_front();
    work();
  }
}

size_t FakePlugin::pending(uint32_t stream) {
  std::lock_guard guard(mutex_);
  return stream < streams_.size() ? streams_[stream].work.size() : 0;
}

void FakePlugin::submit_failure(uint32_t stream, uint64_t sequence, std::string message, uint32_t flags) {
  std::lock_guard guard(mutex_);
  streams_.at(stream).work.push_back([this, stream, sequence, message, flags] {
    Stream& s = streams_[stream];
    s.failed = static_cast<int64_t>(sequence);
    s.message = message;
    s.flags = flags;
  });
}

std::unique_ptr<Device> make_device(FakePlugin& plugin, uint32_t ordinal, int32_t id) {
  return std::make_unique<Device>(&plugin.loaded, &plugin.table, ordinal, id, ordinal);
}

}  // namespace perigee::test
