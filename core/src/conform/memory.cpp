// SPDX-License-Identifier: Apache-2.0
// Memory as plugin.h promises it.
#include <algorithm>
#include <set>
#include <thread>

#include "conform/probe.hpp"

namespace perigee::conform {
namespace {

void describes_itself(Probe& p) {
  const pg_device_properties properties = p.properties();
  need(properties.name[0] != '\0', "the device has no name");
  need(properties.stream_count >= 1, "stream_count is 0");
  const uint32_t a = properties.alignment;
  need(a >= 16 && (a & (a - 1)) == 0, pg::format("the alignment is %u", a));
  need(properties.memory_total == 0 || properties.memory_free <= properties.memory_total,
       "more memory is free than there is");
}

// A host that knows fewer fields has a shorter struct, and something of its own behind it.
void writes_no_more_than_there_is_room(Probe& p) {
  pg_device_properties room;
  std::memset(&room, 0x5a, sizeof room);
  room.size = PG_SIZE(pg_device_properties, memory_free);
  p.ok("properties", p.t.properties, p.n, &room);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&room);
  for (size_t i = PG_SIZE(pg_device_properties, memory_free); i < sizeof room; i++)
    need(bytes[i] == 0x5a, pg::format("byte %zu is written, and the host's struct ends at %zu", i,
                                      size_t{PG_SIZE(pg_device_properties, memory_free)}));
}

void handles_differ(Probe& p) {
  std::set<uint64_t> handles;
  for (int i = 0; i < 32; i++) need(handles.insert(p.alloc(64)).second, "two blocks have one handle");
}

void blocks_are_aligned(Probe& p) {
  const pg_device_properties properties = p.properties();
  if ((properties.flags & PG_DEVICE_HOST_VISIBLE) == 0) return;  // a handle need not be an address
  for (uint64_t bytes : {1, 3, 65, 1000, 70001}) {
    const uint64_t buffer = p.alloc(bytes);
    need(buffer % properties.alignment == 0, pg::format("a block of %llu bytes is not aligned to %u",
                                                        static_cast<unsigned long long>(bytes), properties.alignment));
  }
}

void blocks_are_apart(Probe& p) {
  const uint64_t stream = p.stream();
  std::vector<std::vector<unsigned char>> contents;
  std::vector<uint64_t> blocks;
  for (size_t bytes : {1, 3, 64, 1000, 4096, 70000}) {
    blocks.push_back(p.alloc(bytes));
    contents.emplace_back(bytes, static_cast<unsigned char>(blocks.size()));
    p.upload(blocks.back(), contents.back().data(), bytes, stream);
  }
  for (size_t i = 0; i < blocks.size(); i++) {
    std::vector<unsigned char> got(contents[i].size());
    p.download(got.data(), blocks[i], got.size(), stream);
    p.sync(stream);
    need(got == contents[i], pg::format("a block of %zu bytes has lost what was written to it", got.size()));
  }
}

void exhaustion_is_said(Probe& p) {
  uint64_t buffer = 0;
  const int32_t code = p.refused("alloc of 2^58 bytes", p.t.alloc, p.n, PG_MEMORY_DEVICE, uint64_t{1} << 58, &buffer);
  need(code == PG_E_OUT_OF_MEMORY, pg::format("too large an alloc answers %d, not PG_E_OUT_OF_MEMORY", code));
  p.alloc(16);
}

void memory_comes_back(Probe& p) {
  const uint64_t total = p.properties().memory_total;
  const uint64_t bytes = std::clamp<uint64_t>(total / 8, 1 << 20, 64 << 20);
  const uint64_t before = p.properties().memory_free;
  for (int i = 0; i < 40; i++) p.free(p.alloc(bytes));
  if (before == 0 || p.device.host_visible) return;  // what a processor has free is everybody's business
  const uint64_t after = p.properties().memory_free;
  need(after + bytes >= before, pg::format("%llu bytes are missing after as much was freed as allocated",
                                           static_cast<unsigned long long>(before - after)));
}

void free_memory_is_told(Probe& p) {
  const uint64_t before = p.properties().memory_free;
  if (before < (4 << 20) || p.device.host_visible) return;
  p.alloc(2 << 20);
  need(p.properties().memory_free + (2 << 20) <= before, "memory_free does not fall with an allocation");
}

void unknown_kinds_are_refused(Probe& p) {
  uint64_t buffer = 0;
  p.refused("alloc of memory kind 77", p.t.alloc, p.n, uint32_t{77}, uint64_t{64}, &buffer);
}

void unknown_buffers_are_refused(Probe& p) {
  if (p.device.host_visible) return;  // any number may be an address
  p.refused("free of a buffer that is none", p.t.free, p.n, PG_MEMORY_DEVICE, uint64_t{0x7b0001});
}

void pinned_memory_is_the_hosts(Probe& p) {
  if (p.device.synchronous) return;
  const uint64_t stream = p.stream(), buffer = p.alloc(64);
  auto* memory = reinterpret_cast<unsigned char*>(p.alloc(64, PG_MEMORY_PINNED));
  std::memset(memory, 7, 64);
  p.upload(buffer, memory, 64, stream);
  p.sync(stream);
  std::memset(memory, 0, 64);
  p.download(memory, buffer, 64, stream);
  p.sync(stream);
  need(std::all_of(memory, memory + 64, [](unsigned char c) { return c == 7; }), "what went there has not come back");
  p.free(reinterpret_cast<uint64_t>(memory), PG_MEMORY_PINNED);
}

// What several threads do at once; the first problem is raised.
void in_threads(void (*body)(Probe&, int), Probe& p) {
  std::string problems[4];
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      try {
        Probe own(p.device);
        body(own, i);
      } catch (const std::exception& e) {
        problems[i] = e.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) need(problem.empty(), problem);
}

void threads_allocate(Probe& p) {
  in_threads(
      [](Probe& own, int thread) {
        const uint64_t stream = own.stream();
        for (int round = 0; round < 40; round++) {
          std::vector<unsigned char> bytes(static_cast<size_t>(100 + 97 * round),
                                           static_cast<unsigned char>(thread * 50 + round)),
              got(bytes.size());
          const uint64_t buffer = own.alloc(bytes.size());
          own.upload(buffer, bytes.data(), bytes.size(), stream);
          own.download(got.data(), buffer, got.size(), stream);
          own.sync(stream);
          need(got == bytes, "a block has lost what was written to it");
          own.free(buffer);
        }
      },
      p);
}

void threads_have_streams(Probe& p) {
  in_threads(
      [](Probe& own, int thread) {
        const uint64_t stream = own.stream(), event = own.event(), buffer = own.alloc(4000);
        View x(PG_F32, {1000}, {1}, buffer);
        for (int round = 0; round < 20; round++) {
          own.fill(x, pg::make_number(1.0 * (thread * 100 + round)), stream);
          own.record(event, stream);
          own.ok("event_sync", own.t.event_sync, own.n, event);
          float got[1000];
          own.download(got, buffer, 4000, stream);
          own.sync(stream);
          for (float v : got) need(v == static_cast<float>(thread * 100 + round), "another thread's numbers are read");
        }
      },
      p);
}

}  // namespace

std::vector<Check> memory_checks() {
  return {{"memory", "a device says what it is", describes_itself},
          {"memory", "properties write no more than there is room for", writes_no_more_than_there_is_room},
          {"memory", "blocks have handles of their own", handles_differ},
          {"memory", "blocks begin where the alignment says", blocks_are_aligned},
          {"memory", "blocks lie apart and keep their bytes", blocks_are_apart},
          {"memory", "what cannot be had is out of memory, with a reason", exhaustion_is_said},
          {"memory", "what is freed can be had again", memory_comes_back},
          {"memory", "free memory is told", free_memory_is_told},
          {"memory", "an unknown kind of memory is refused", unknown_kinds_are_refused},
          {"memory", "a buffer that is none is refused", unknown_buffers_are_refused},
          {"memory", "pinned memory is the host's", pinned_memory_is_the_hosts},
          {"threads", "threads allocate at once", threads_allocate},
          {"threads", "threads have streams of their own", threads_have_streams}};
}

}  // namespace perigee::conform
