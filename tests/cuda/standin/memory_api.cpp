// SPDX-License-Identifier: Apache-2.0
// Allocation. A block of device memory ends where its pages end, before a page that nobody may touch, and is filled
// with 0xff (NaN); what lies between its last byte and that page is checked when it is freed.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "stream.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

namespace {

using namespace standin;

constexpr unsigned char kFill = 0xff, kZone = 0xa5;
constexpr size_t kQuarantine = 256;  // blocks

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

struct Zones {  // what surrounds a block within its pages
  char *head, *tail;
  size_t head_bytes, tail_bytes;
};
Zones zones(const Block& block) {
  char *first = block.mapped + page(), *end = block.mapped + block.mapped_bytes - page();
  char* last = block.begin + block.bytes;
  return {first, last, static_cast<size_t>(block.begin - first), static_cast<size_t>(end - last)};
}

Block map_block(int device, size_t bytes) {
  Block block;
  size_t rounded = round_up(bytes, state().alignment), pages = round_up(rounded, page());
  block.device = device;
  block.bytes = bytes;
  block.mapped_bytes = pages + 2 * page();
  void* mapped = mmap(nullptr, block.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return Block();
  block.mapped = static_cast<char*>(mapped);
  if (mprotect(block.mapped + page(), pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapped, block.mapped_bytes);
    return Block();
  }
  block.begin = block.mapped + page() + (pages - rounded);
  std::memset(block.begin, kFill, bytes);
  Zones z = zones(block);
  std::memset(z.head, kZone, z.head_bytes);
  std::memset(z.tail, kZone, z.tail_bytes);
  ASAN_POISON_MEMORY_REGION(z.head, z.head_bytes);
  ASAN_POISON_MEMORY_REGION(z.tail, z.tail_bytes);
  return block;
}

void check_zone(const char* zone, size_t bytes, const Block& block, const char* where) {
  for (size_t i = 0; i < bytes; i++) {
    if (static_cast<unsigned char>(zone[i]) == kZone) continue;
    mistake("a block of " + std::to_string(block.bytes) + " bytes was written " + where + " its bounds, " +
            std::to_string(i) + " bytes into the zone there");
  }
}

// The addresses stay taken for a while, so that whoever still uses them is caught.
void unmap_block(State& s, const Block& block) {
  Zones z = zones(block);
  ASAN_UNPOISON_MEMORY_REGION(z.head, z.head_bytes);
  ASAN_UNPOISON_MEMORY_REGION(z.tail, z.tail_bytes);
  check_zone(z.head, z.head_bytes, block, "before");
  check_zone(z.tail, z.tail_bytes, block, "behind");
  mmap(block.mapped, block.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  s.freed.push_back(block);
  if (s.freed.size() > kQuarantine) {
    munmap(s.freed.front().mapped, s.freed.front().mapped_bytes);
    s.freed.pop_front();
  }
}

}  // namespace

cudaError_t cudaMalloc(void** address, size_t bytes) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  if (address == nullptr) return finish(cudaErrorInvalidValue);
  *address = nullptr;
  if (bytes == 0) return cudaSuccess;
  DeviceState& device = s.device[thread_state().device];
  if (bytes > s.memory || device.used + bytes > s.memory) return finish(cudaErrorMemoryAllocation);
  Block block = map_block(thread_state().device, bytes);
  if (block.mapped == nullptr) return finish(cudaErrorMemoryAllocation);
  device.used += bytes;
  s.blocks[block.begin] = block;
  *address = block.begin;
  return cudaSuccess;
}

cudaError_t cudaFree(void* address) {
  if (cudaError_t refused = enter(__func__); refused != cudaSuccess) {
    // The memory of a lost device is gone with it.
    State& s = state();
    std::lock_guard lock(s.mutex);
    if (auto it = s.blocks.find(static_cast<char*>(address)); is_sticky(refused) && it != s.blocks.end()) {
      s.device[it->second.device].used -= it->second.bytes;
      unmap_block(s, it->second);
      s.blocks.erase(it);
    }
    return finish(refused);
  }
  if (address == nullptr) return cudaSuccess;
  State& s = state();
  const Block* found = find_block(address, 0);
  if (found == nullptr || found->begin != address) return finish(cudaErrorInvalidValue);
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  drain_device(found->device);
  std::lock_guard lock(s.mutex);
  auto it = s.blocks.find(static_cast<char*>(address));
  s.device[it->second.device].used -= it->second.bytes;
  unmap_block(s, it->second);
  s.blocks.erase(it);
  return finish(lost(thread_state().device));
}

cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (cudaError_t refused = refuse_while_capturing(); refused != cudaSuccess) return finish(refused);
  *address = std::aligned_alloc(64, round_up(bytes, 64));
  if (*address == nullptr) return finish(cudaErrorMemoryAllocation);
  std::memset(*address, kFill, bytes);
  s.host_blocks[static_cast<char*>(*address)] = bytes;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** address, size_t bytes) { return cudaHostAlloc(address, bytes, 0); }

cudaError_t cudaFreeHost(void* address) {
  cudaError_t refused = enter(__func__);
  if (refused != cudaSuccess && !is_sticky(refused)) return finish(refused);
  if (address == nullptr) return finish(refused);
  State& s = state();
  for (int i = 0; refused == cudaSuccess && i < s.devices; i++) drain_device(i);
  std::lock_guard lock(s.mutex);
  if (s.host_blocks.erase(static_cast<char*>(address)) == 0) return finish(cudaErrorInvalidValue);
  std::free(address);
  return finish(refused);
}

cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  *total = s.memory;
  *left = s.memory - s.device[thread_state().device].used;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* address) {
  STANDIN_ENTER();
  State& s = state();
  std::lock_guard lock(s.mutex);
  *out = cudaPointerAttributes{};
  out->type = cudaMemoryTypeUnregistered;
  out->hostPointer = const_cast<void*>(address);
  if (const Block* block = find_block(address, 1)) {
    out->type = cudaMemoryTypeDevice;
    out->device = block->device;
    out->devicePointer = const_cast<void*>(address);
    out->hostPointer = nullptr;
    return cudaSuccess;
  }
  auto it = s.host_blocks.upper_bound(static_cast<const char*>(address));
  if (it != s.host_blocks.begin() && static_cast<const char*>(address) < (--it)->first + it->second) {
    out->type = cudaMemoryTypeHost;
    out->devicePointer = const_cast<void*>(address);
  }
  return cudaSuccess;
}
