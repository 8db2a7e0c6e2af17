// SPDX-License-Identifier: Apache-2.0
// Bytes on their way: staged uploads and downloads, copies on a device and between devices, pinned memory.
#include <algorithm>
#include <cstring>

#include "base/profile.hpp"
#include "device/device.hpp"
#include "device/state.hpp"

namespace perigee {

namespace {

constexpr uint64_t kPiece = 4ull << 20;          // bytes staged at a time
constexpr uint64_t kStagingLimit = 64ull << 20;  // pinned memory that uploads in flight may hold

// Sizes of pinned memory are powers of two, so that they can be used again.
uint32_t pinned_class(uint64_t bytes) {
  uint64_t size = std::max<uint64_t>(bytes, 4096);
  return 64 - static_cast<uint32_t>(__builtin_clzll(size - 1));
}

uint64_t bytes_of(const pg_tensor& t) {
  uint64_t bytes = (t.dtype_bits + 7u) / 8;
  for (uint32_t i = 0; i < t.rank; i++) bytes *= static_cast<uint64_t>(t.shape[i]);
  return bytes;
}

char* host_address(pg_address address) { return reinterpret_cast<char*>(address.buffer + address.offset); }

pg_address advanced(pg_address address, uint64_t bytes) { return {address.buffer, address.offset + bytes}; }

}  // namespace

Device::Pinned Device::pinned(uint64_t bytes) {
  const uint32_t index = pinned_class(bytes);
  {
    std::lock_guard guard(state_->mutex);
    auto& list = state_->free_pinned[index];
    if (!list.empty()) {
      Pinned found = list.back();
      list.pop_back();
      return found;
    }
  }
  check_alive();
  pg_error error = pg::make_error();
  uint64_t address = 0;
  check(table_->alloc(self(), ordinal, PG_MEMORY_PINNED, 1ull << index, &address, &error), error,
        "alloc of pinned memory");
  if (address == 0) pg::fail(PG_E_INTERNAL, name + ": alloc of pinned memory: the plugin gave the handle 0");
  return {this, reinterpret_cast<void*>(address), 1ull << index};
}

void Device::release(Pinned pinned) {
  if (pinned.data == nullptr) return;
  std::lock_guard guard(state_->mutex);
  if (!state_->closed) state_->free_pinned[pinned_class(pinned.bytes)].push_back(pinned);
}

Device::Pinned Device::staging(uint64_t bytes) {
  reclaim_staging(bytes);
  return pinned(bytes);
}

// What an upload in flight reads.
void Device::release(Pinned pinned, Event event) {
  if (pinned.data == nullptr) return;
  if (!event) return release(pinned);
  std::lock_guard guard(state_->mutex);
  if (state_->closed) return;
  state_->staged_bytes += pinned.bytes;
  state_->staged.push_back({pinned, std::move(event)});
}

void Device::empty_pinned() noexcept {
  decltype(state_->free_pinned) unused;
  {
    std::lock_guard guard(state_->mutex);
    std::swap(unused, state_->free_pinned);
  }
  pg_error error = pg::make_error();
  for (const auto& list : unused) {
    for (const Pinned& pinned : list) {
      const auto address = reinterpret_cast<uint64_t>(pinned.data);
      if (table_->free(self(), ordinal, PG_MEMORY_PINNED, address, &error) != PG_OK) warn("free", error);
    }
  }
}

Event Device::upload_pinned(pg_address target, const void* source, uint64_t bytes, uint32_t stream) {
  check_alive();
  const uint64_t handle = this->stream(stream);
  pg_error error = pg::make_error();
  auto submitting = lock(stream);
  const uint64_t number = sequence("upload");
  ProfileSpan span;
  check(table_->upload(self(), ordinal, target.buffer, target.offset, source, bytes, handle, number, &error), error,
        "upload");
  span.done(ProfileKind::launch, "upload", id, bytes, nullptr, number);
  try {
    return record(stream);
  } catch (...) {
    drain();  // nothing else tells when the memory has been read
    throw;
  }
}

void Device::upload(pg_address target, const void* source, uint64_t bytes, uint32_t stream) {
  if (bytes == 0) return;
  check_alive();
  ProfileSpan span;
  if (synchronous && host_visible) {
    std::memcpy(host_address(target), source, bytes);
  } else if (!synchronous) {
    upload_staged(target, static_cast<const char*>(source), bytes, stream);
  } else {
    pg_error error = pg::make_error();
    const uint64_t handle = this->stream(stream);
    check(table_->upload(self(), ordinal, target.buffer, target.offset, source, bytes, handle, 0, &error), error,
          "upload");
  }
  span.done(ProfileKind::upload, "upload", id, bytes);
}

void Device::upload_staged(pg_address target, const char* source, uint64_t bytes, uint32_t stream) {
  const uint64_t handle = this->stream(stream);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min(bytes - done, kPiece);
    Pinned memory = staging(piece);
    std::memcpy(memory.data, source + done, piece);
    pg_error error = pg::make_error();
    auto submitting = lock(stream);
    const uint64_t number = sequence("upload");
    ProfileSpan span;
    int32_t code = table_->upload(self(), ordinal, target.buffer, target.offset + done, memory.data, piece, handle,
                                  number, &error);
    if (code != PG_OK) {
      release(memory);
      fail(code, error, "upload");
    }
    span.done(ProfileKind::launch, "upload", id, piece, nullptr, number);
    Event event;
    try {
      event = record(stream);
    } catch (...) {
      drain();  // nothing else tells when the staging memory is free again
      release(memory);
      throw;
    }
    release(memory, std::move(event));
    done += piece;
  }
}

// Takes back the staging memory of uploads that have happened; waits for some when too much is in flight.
void Device::reclaim_staging(uint64_t wanted) {
  for (;;) {
    State::Staged oldest;
    bool crowded;
    {
      std::lock_guard guard(state_->mutex);
      if (state_->staged.empty()) return;
      crowded = state_->staged_bytes + wanted > std::max(kStagingLimit, 4 * wanted);  // two of large ones may fly
      oldest = std::move(state_->staged.front());
      state_->staged.pop_front();
    }
    if (!oldest.event.passed()) {
      if (!crowded) {
        std::lock_guard guard(state_->mutex);
        state_->staged.push_front(std::move(oldest));
        return;
      }
      try {
        oldest.event.wait();
      } catch (const pg::Error&) {  // its stream failed, which its next synchronisation will say
      }
    }
    {
      std::lock_guard guard(state_->mutex);
      state_->staged_bytes -= oldest.pinned.bytes;
    }
    release(oldest.pinned);
  }
}

void Device::download(void* target, pg_address source, uint64_t bytes, uint32_t stream) {
  if (bytes == 0) return;
  check_alive();
  ProfileSpan span;
  if (synchronous && host_visible) {
    std::memcpy(target, host_address(source), bytes);
  } else if (!synchronous) {
    download_staged(static_cast<char*>(target), source, bytes, stream);
  } else {
    pg_error error = pg::make_error();
    const uint64_t handle = this->stream(stream);
    check(table_->download(self(), ordinal, target, source.buffer, source.offset, bytes, handle, 0, &error), error,
          "download");
  }
  span.done(ProfileKind::download, "download", id, bytes);
}

// Two pieces in turn: one is copied out while the device writes the other.
void Device::download_staged(char* target, pg_address source, uint64_t bytes, uint32_t stream) {
  const uint64_t handle = this->stream(stream);
  struct Piece {
    Device* device;
    Pinned pinned;
    Event event;
    char* target = nullptr;
    uint64_t bytes = 0;
    ~Piece() {
      if (bytes != 0) device->drain();  // abandoned by an error while the device may still write to it
      device->release(pinned);
    }
    void finish() {
      if (bytes == 0) return;
      event.wait();
      std::memcpy(target, pinned.data, bytes);
      bytes = 0;
    }
  };
  const uint64_t size = std::min(bytes, kPiece);
  Piece pieces[2] = {{this, pinned(size), {}}, {this, bytes > size ? pinned(size) : Pinned{}, {}}};
  try {
    uint32_t turn = 0;
    for (uint64_t done = 0; done < bytes; turn ^= 1) {
      Piece& piece = pieces[turn];
      piece.finish();
      const uint64_t count = std::min(bytes - done, kPiece);
      pg_error error = pg::make_error();
      auto submitting = lock(stream);
      const uint64_t number = sequence("download");
      ProfileSpan span;
      check(table_->download(self(), ordinal, piece.pinned.data, source.buffer, source.offset + done, count, handle,
                             number, &error),
            error, "download");
      span.done(ProfileKind::launch, "download", id, count, nullptr, number);
      piece.bytes = count;
      piece.target = target + done;
      piece.event = record(stream);
      done += count;
    }
    synchronize(stream);  // raises what failed before the bytes were written
    pieces[turn].finish();
    pieces[turn ^ 1].finish();
  } catch (const pg::Error&) {
    synchronize(stream);  // says which operator it was, if the stream failed
    throw;
  }
}

void Device::copy(const pg_tensor& target, const pg_tensor& source, uint32_t stream, const char* what) {
  const uint64_t handle = this->stream(stream);
  pg_error error = pg::make_error();
  auto submitting = lock(stream);
  const uint64_t number = sequence(what);
  ProfileSpan span;
  check(table_->copy(self(), ordinal, &target, &source, handle, number, &error), error, what);
  if (span.on()) [[unlikely]]
    span.done(synchronous ? ProfileKind::kernel : ProfileKind::launch, what, id, 2 * bytes_of(target), nullptr, number);
}

void Device::fill(const pg_tensor& target, const pg_number& value, uint32_t stream, const char* what) {
  const uint64_t handle = this->stream(stream);
  pg_error error = pg::make_error();
  auto submitting = lock(stream);
  const uint64_t number = sequence(what);
  ProfileSpan span;
  check(table_->fill(self(), ordinal, &target, &value, handle, number, &error), error, what);
  if (span.on()) [[unlikely]]
    span.done(synchronous ? ProfileKind::kernel : ProfileKind::launch, what, id, bytes_of(target), nullptr, number);
}

void Device::copy_from(pg_address target, uint32_t stream, Device& other, pg_address source, uint32_t other_stream,
                       uint64_t bytes) {
  if (bytes == 0) return;
  check_alive();
  other.check_alive();
  if (copy_peer(target, stream, other, source, other_stream, bytes)) return;
  if (other.synchronous && other.host_visible) {
    upload(target, host_address(source), bytes, stream);
    return;
  }
  if (synchronous && host_visible) {
    other.download(host_address(target), source, bytes, other_stream);
    return;
  }
  const uint64_t size = std::min(bytes, kPiece);
  auto bounce = std::make_unique<char[]>(size);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min(bytes - done, size);
    other.download(bounce.get(), advanced(source, done), piece, other_stream);
    upload(advanced(target, done), bounce.get(), piece, stream);
    done += piece;
  }
}

bool Device::copy_peer(pg_address target, uint32_t stream, Device& other, pg_address source, uint32_t other_stream,
                       uint64_t bytes) {
  if (other.plugin_ != plugin_ || state_->no_peer.load(std::memory_order_relaxed)) return false;
  if (this != &other || stream != other_stream) wait(stream, other.record(other_stream));
  const uint64_t handle = this->stream(stream);
  pg_error error = pg::make_error();
  ProfileSpan span;
  uint64_t number = 0;
  {
    auto submitting = lock(stream);
    number = sequence("transfer");
    int32_t code = table_->peer(self(), ordinal, target.buffer, target.offset, other.ordinal, source.buffer,
                                source.offset, bytes, handle, number, &error);
    if (code == PG_E_UNIMPLEMENTED) {
      state_->no_peer = true;
      return false;
    }
    check(code, error, "transfer");
  }
  span.done(synchronous ? ProfileKind::peer : ProfileKind::launch, "transfer", id, bytes, nullptr, number);
  // The source may be written or freed on its own stream next.
  if (this != &other || stream != other_stream) other.wait(other_stream, record(stream));
  return true;
}

}  // namespace perigee
