// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "copy.hpp"
#include "simd.hpp"

namespace cpu {
namespace {

constexpr uint64_t kAlignment = 64;  // a cache line, and the widest vector
constexpr uint64_t kHugePage = uint64_t{2} << 20;

struct EventTime {
  std::chrono::steady_clock::time_point at;
};

std::string read_model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(": ");
    if (line.compare(0, 10, "model name") == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

uint32_t Device::count(std::string&) { return 1; }

void Device::properties(uint32_t, pg_device_properties& out) {
  static const std::string model = read_model_name();
  out.flags = PG_DEVICE_HOST_VISIBLE | PG_DEVICE_SYNCHRONOUS;
  std::snprintf(out.name, sizeof out.name, "%s (%s)", model.c_str(), simd->name);
  auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  out.memory_total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  out.memory_free = static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
  out.stream_count = 1;
  out.alignment = kAlignment;
  out.compute_units = std::thread::hardware_concurrency();
}

uint64_t Device::alloc(uint32_t, uint32_t, uint64_t bytes) {
  // Huge pages halve the cost of first use and of missing the TLB; blocks below one page do not profit.
  bool large = bytes >= kHugePage;
  uint64_t alignment = large ? kHugePage : kAlignment;
  if (bytes > UINT64_MAX - alignment) pg::fail(PG_E_OUT_OF_MEMORY, "allocation size overflows");
  uint64_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size);
  if (memory == nullptr) {
    pg::fail(PG_E_OUT_OF_MEMORY,
             pg::format("the system has no %llu bytes of memory", static_cast<unsigned long long>(bytes)));
  }
  if (large) madvise(memory, size, MADV_HUGEPAGE);  // a hint: failing changes nothing
  return reinterpret_cast<uint64_t>(memory);
}

void Device::free(uint32_t, uint32_t, uint64_t buffer) { std::free(reinterpret_cast<void*>(buffer)); }

uint64_t Device::stream_create(uint32_t) { return 1; }
uint64_t Device::event_create(uint32_t) { return reinterpret_cast<uint64_t>(new EventTime()); }
void Device::event_destroy(uint32_t, uint64_t event) { delete reinterpret_cast<EventTime*>(event); }
void Device::event_record(uint32_t, uint64_t event, uint64_t) {
  reinterpret_cast<EventTime*>(event)->at = std::chrono::steady_clock::now();
}
double Device::event_elapsed(uint32_t, uint64_t start, uint64_t stop) {
  auto time = reinterpret_cast<EventTime*>(stop)->at - reinterpret_cast<EventTime*>(start)->at;
  return std::chrono::duration<double>(time).count();
}

void Device::upload(uint32_t, pg_address target, const void* source, uint64_t bytes, pg::Ticket) {
  if (bytes > 0) std::memcpy(reinterpret_cast<char*>(target.buffer + target.offset), source, bytes);
}
void Device::download(uint32_t, void* target, pg_address source, uint64_t bytes, pg::Ticket) {
  if (bytes > 0) std::memcpy(target, reinterpret_cast<const char*>(source.buffer + source.offset), bytes);
}
void Device::copy(uint32_t, const pg_tensor& target, const pg_tensor& source, pg::Ticket) {
  copy_tensor(target, source);
}
void Device::fill(uint32_t, const pg_tensor& target, const pg_number& value, pg::Ticket) { fill_tensor(target, value); }

}  // namespace cpu
