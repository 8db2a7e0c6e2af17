// SPDX-License-Identifier: Apache-2.0
#include "subject.hpp"

using namespace contract;

TEST_CASE("A plugin describes itself and its devices") {
  SUBJECT(plugin);
  REQUIRE(plugin.device != nullptr);
  REQUIRE(plugin.kernels != nullptr);
  CHECK(std::string(plugin.kernels->device_type) == plugin.device->type);
  CHECK(load(subject_path()).iface(plugin.self, "pg.nothing/1") == nullptr);
  for (uint32_t i = 0; i < plugin.count(); i++) {
    pg_device_properties p{};
    p.size = PG_SIZE(pg_device_properties, reserved);
    plugin.ok(plugin.device->properties, i, &p);
    CHECK(p.name[0] != '\0');
    CHECK(p.stream_count >= 1);
    CHECK((p.alignment >= 16 && (p.alignment & (p.alignment - 1)) == 0));
  }
}

TEST_CASE("Blocks are aligned, apart from each other and keep their bytes") {
  SUBJECT(plugin);
  pg_device_properties p{};
  p.size = PG_SIZE(pg_device_properties, reserved);
  plugin.ok(plugin.device->properties, 0u, &p);
  bool addresses = (p.flags & (PG_DEVICE_HOST_VISIBLE | PG_DEVICE_ACCELERATOR)) != 0;
  uint64_t s = plugin.stream();
  std::vector<uint64_t> blocks;
  std::vector<std::vector<char>> contents;
  for (uint64_t bytes : {1, 3, 64, 1000, 4096, 70000}) {
    blocks.push_back(plugin.alloc(bytes));
    if (addresses) CHECK(blocks.back() % p.alignment == 0);
    contents.emplace_back(bytes, static_cast<char>(blocks.size()));
    plugin.upload(blocks.back(), contents.back().data(), bytes, s);
  }
  for (size_t i = 0; i < blocks.size(); i++) {
    std::vector<char> got(contents[i].size());
    plugin.download(got.data(), blocks[i], got.size(), s);
    plugin.sync(s);
    CHECK(got == contents[i]);
  }
}

TEST_CASE("What cannot be allocated is refused with a reason, and the device goes on") {
  SUBJECT(plugin);
  uint64_t buffer = 0;
  Code code = plugin.call(plugin.device->alloc, 0u, PG_MEMORY_DEVICE, uint64_t{1} << 58, &buffer);
  CHECK(code.code == PG_E_OUT_OF_MEMORY);
  CHECK((code.error.flags & PG_ERROR_DEVICE_LOST) == 0);
  CHECK(!code.message().empty());
  plugin.alloc(16);
}

TEST_CASE("Pinned memory is the host's") {
  SUBJECT(plugin);
  uint64_t address = 0, s = plugin.stream(), buffer = plugin.alloc(64);
  plugin.ok(plugin.device->alloc, 0u, PG_MEMORY_PINNED, uint64_t{64}, &address);
  auto* memory = reinterpret_cast<char*>(address);
  std::memset(memory, 7, 64);
  plugin.upload(buffer, memory, 64, s);
  plugin.sync(s);
  std::memset(memory, 0, 64);
  plugin.download(memory, buffer, 64, s);
  plugin.sync(s);
  CHECK(memory[63] == 7);
  plugin.ok(plugin.device->free, 0u, PG_MEMORY_PINNED, address);
}

TEST_CASE("Uploads and downloads take offsets, and nothing for 0 bytes") {
  SUBJECT(plugin);
  uint64_t s = plugin.stream(), buffer = plugin.alloc(10);
  char bytes[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got[4] = {};
  plugin.upload(buffer, bytes, 10, s);
  plugin.ok(plugin.device->upload, 0u, buffer, uint64_t{3}, static_cast<const void*>(bytes), uint64_t{2}, s,
            ++plugin.sequence);
  plugin.ok(plugin.device->upload, 0u, buffer, uint64_t{0}, static_cast<const void*>(bytes), uint64_t{0}, s,
            ++plugin.sequence);
  plugin.ok(plugin.device->download, 0u, static_cast<void*>(got), buffer, uint64_t{2}, uint64_t{4}, s,
            ++plugin.sequence);
  plugin.sync(s);
  CHECK((got[0] == 2 && got[1] == 0 && got[2] == 1 && got[3] == 5));
}

TEST_CASE("Opening and closing can be repeated") {
  for (int i = 0; i < 20; i++) {
    SUBJECT(plugin);
    uint64_t s = plugin.stream(), buffer = plugin.alloc(8);
    int64_t value = i, got = -1;
    plugin.upload(buffer, &value, 8, s);
    plugin.download(&got, buffer, 8, s);
    plugin.sync(s);
    REQUIRE(got == i);
  }
}
