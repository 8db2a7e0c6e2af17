// SPDX-License-Identifier: Apache-2.0
// Collectives over devices: every kind and dtype by numbers worked out here, and what goes wrong at one at all.
#include <chrono>
#include <cmath>
#include <cstring>

#include "harness.hpp"
#include "perigee/device_collectives.h"
#include "perigee/kernels/float16.hpp"

using namespace test;

namespace {

struct Members {
  Sim& sim;
  const pg_device_collectives* table;
  uint64_t group = 0;
  std::vector<uint32_t> devices;
  std::vector<uint64_t> streams;

  Members(Sim& sim, std::vector<uint32_t> on) : sim(sim), devices(std::move(on)) {
    table = static_cast<const pg_device_collectives*>(library().iface(sim.self, PG_IFACE_DEVICE_COLLECTIVES));
    REQUIRE(table != nullptr);
    make();
    for (uint32_t device : devices) streams.push_back(sim.stream(device));
  }
  ~Members() {
    for (size_t k = 0; k < devices.size(); k++) sim.call(sim.device->stream_sync, devices[k], streams[k]);
    sim.call(table->group_destroy, group);
  }
  void make() {
    pg_device_group info{};
    info.size = PG_SIZE(pg_device_group, look);
    info.count = info.total = static_cast<uint32_t>(devices.size());
    info.devices = devices.data();
    info.processes = 1;
    sim.ok(table->group_create, &info, &group);
  }
  pg_collective call(uint32_t kind, size_t member, uint64_t count, uint64_t input, uint64_t output) {
    pg_collective call{};
    call.size = PG_SIZE(pg_collective, what);
    call.kind = kind, call.dtype = PG_F32, call.count = count;
    call.input.buffer = input, call.output.buffer = output;
    call.stream = streams[member], call.sequence = ++sim.sequence;
    call.what = "a test";
    return call;
  }
  Code submit(const std::vector<pg_collective>& calls) {
    std::vector<const pg_collective*> list;
    for (const pg_collective& each : calls) list.push_back(each.size == 0 ? nullptr : &each);
    return sim.call(table->submit, group, static_cast<uint32_t>(calls.size() / devices.size()), list.data());
  }
  Code sync(size_t k) { return sim.call(sim.device->stream_sync, devices[k], streams[k]); }
};

template <class T>
std::vector<T> numbers(size_t member, size_t count) {
  std::vector<T> list;
  for (size_t i = 0; i < count; i++) list.push_back(static_cast<T>(10 * member + i + 1));
  return list;
}

// One call of every member, with inputs 10 k + i + 1: outputs by member.
std::vector<std::vector<float>> run(Members& m, uint32_t kind, uint32_t reduction, int32_t peer, size_t in, size_t out,
                                    size_t count, bool in_place = false) {
  std::vector<pg_collective> calls;
  std::vector<uint64_t> outputs;
  for (size_t k = 0; k < m.devices.size(); k++) {
    const uint64_t x = m.sim.alloc(4 * in, m.devices[k]);
    const uint64_t y = in_place ? x : m.sim.alloc(4 * out, m.devices[k]);
    const std::vector<float> values = numbers<float>(k, in), zeros(out, -1);
    if (!in_place) m.sim.upload(y, zeros.data(), 4 * out, m.streams[k], m.devices[k]);
    m.sim.upload(x, values.data(), 4 * in, m.streams[k], m.devices[k]);
    REQUIRE(m.sync(k).code == PG_OK);
    calls.push_back(m.call(kind, k, count, x, y));
    calls.back().reduction = reduction, calls.back().peer = peer;
    outputs.push_back(y);
  }
  const Code code = m.submit(calls);
  INFO(code.message());
  REQUIRE(code.code == PG_OK);
  std::vector<std::vector<float>> results;
  for (size_t k = 0; k < m.devices.size(); k++) {
    std::vector<float> got(out);
    m.sim.download(got.data(), outputs[k], 4 * out, m.streams[k], m.devices[k]);
    REQUIRE(m.sync(k).code == PG_OK);
    results.push_back(got);
  }
  return results;
}

using Rows = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("Every kind of collective, over devices in any order") {
  Sim sim({{"DEVICES", "4"}, {"JITTER", "200"}, {"RACES", "1"}});
  Members m(sim, {2, 0, 3});
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 2, 2, 2) == Rows{{33, 36}, {33, 36}, {33, 36}});
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MEAN, 0, 2, 2, 2, true) == Rows{{11, 12}, {11, 12}, {11, 12}});
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MAX, 0, 1, 1, 1) == Rows{{21}, {21}, {21}});
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MIN, 0, 1, 1, 1) == Rows{{1}, {1}, {1}});
  CHECK(run(m, PG_COLLECTIVE_REDUCE, PG_REDUCE_SUM, 1, 1, 1, 1) == Rows{{-1}, {33}, {-1}});
  CHECK(run(m, PG_COLLECTIVE_BROADCAST, 0, 2, 2, 2, 2) == Rows{{21, 22}, {21, 22}, {-1, -1}});
  CHECK(run(m, PG_COLLECTIVE_ALL_GATHER, 0, 0, 1, 3, 1) == Rows{{1, 11, 21}, {1, 11, 21}, {1, 11, 21}});
  CHECK(run(m, PG_COLLECTIVE_REDUCE_SCATTER, PG_REDUCE_SUM, 0, 3, 1, 1) == Rows{{33}, {36}, {39}});
  CHECK(run(m, PG_COLLECTIVE_ALL_TO_ALL, 0, 0, 3, 3, 1) == Rows{{1, 11, 21}, {2, 12, 22}, {3, 13, 23}});
}

TEST_CASE("Sums in every dtype that has them, rounded at each step") {
  Sim sim({{"DEVICES", "2"}});
  Members m(sim, {0, 1});
  const auto sum = [&](uint32_t dtype, auto a, auto b) {
    using T = decltype(a);
    const T values[2] = {a, b};
    std::vector<pg_collective> calls;
    std::vector<uint64_t> buffers;
    for (size_t k = 0; k < 2; k++) {
      buffers.push_back(sim.alloc(sizeof(T), m.devices[k]));
      sim.upload(buffers[k], &values[k], sizeof(T), m.streams[k], m.devices[k]);
      REQUIRE(m.sync(k).code == PG_OK);
      calls.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, buffers[k], buffers[k]));
      calls.back().dtype = dtype;
    }
    REQUIRE(m.submit(calls).code == PG_OK);
    T got[2];
    for (size_t k = 0; k < 2; k++) {
      sim.download(&got[k], buffers[k], sizeof(T), m.streams[k], m.devices[k]);
      REQUIRE(m.sync(k).code == PG_OK);
    }
    REQUIRE(std::memcmp(&got[0], &got[1], sizeof(T)) == 0);
    return got[0];
  };
  CHECK(sum(PG_F64, 0.1, 0.2) == 0.1 + 0.2);
  CHECK(sum(PG_F32, 0.1f, 0.2f) == 0.1f + 0.2f);
  CHECK(pg::to_float(sum(PG_F16, pg::to_f16(2048), pg::to_f16(1))) == 2048);
  CHECK(pg::to_float(sum(PG_BF16, pg::to_bf16(1.5f), pg::to_bf16(2.25f))) == 3.75f);
  CHECK(sum(PG_I64, int64_t{1} << 60, int64_t{3}) == (int64_t{1} << 60) + 3);
  CHECK(sum(PG_I32, int32_t{7}, int32_t{-9}) == -2);
  CHECK(sum(PG_I16, int16_t{32767}, int16_t{1}) == int16_t{-32768});
  CHECK(sum(PG_I8, int8_t{100}, int8_t{100}) == int8_t{-56});
  CHECK(sum(PG_U8, uint8_t{200}, uint8_t{100}) == uint8_t{44});
  CHECK(std::isnan(sum(PG_F32, NAN, 1.0f)));
}

TEST_CASE("Sends and receives pair up within a call; others take no part") {
  Sim sim({{"DEVICES", "3"}, {"RACES", "1"}});
  Members m(sim, {0, 1, 2});
  std::vector<uint64_t> buffers;
  for (size_t k = 0; k < 3; k++) {
    const std::vector<float> values = numbers<float>(k, 2);
    buffers.push_back(sim.alloc(8, m.devices[k]));
    sim.upload(buffers[k], values.data(), 8, m.streams[k], m.devices[k]);
    REQUIRE(m.sync(k).code == PG_OK);
  }
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_SEND, 0, 2, buffers[0], 0), pg_collective{},
                                   m.call(PG_COLLECTIVE_RECEIVE, 2, 2, 0, buffers[2])};
  calls[0].peer = 2, calls[2].peer = 0;
  REQUIRE(m.submit(calls).code == PG_OK);
  float got[2];
  sim.download(got, buffers[2], 8, m.streams[2], 2);
  REQUIRE(m.sync(2).code == PG_OK);
  CHECK((got[0] == 1 && got[1] == 2));
  calls[2].peer = 1;
  CHECK(m.submit(calls).message().find("has no counterpart at member 2") != std::string::npos);
  calls[0] = m.call(PG_COLLECTIVE_BARRIER, 0, 0, 0, 0);
  CHECK(m.submit(calls).code != PG_OK);
}

TEST_CASE("A collective that fails does so on all members' streams, and breaks the group") {
  Sim sim({{"DEVICES", "2"}, {"LINKS", "host-1:/1000000"}});
  Members m(sim, {0, 1});
  const uint64_t x[2] = {sim.alloc(4, 0), sim.alloc(4, 1)};
  const auto both = [&] {
    return std::vector<pg_collective>{m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, x[0], x[0]),
                                      m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, x[1], x[1])};
  };
  const auto again = [&] {
    sim.ok(m.table->group_destroy, m.group);
    m.make();
  };
  SECTION("the nth, by a setting") {
    uint64_t unused = 0;
    sim.ok(sim.device->native, 0u, "fail.collective", uint64_t{1}, &unused);
    REQUIRE(m.submit(both()).code == PG_OK);
    for (size_t k = 0; k < 2; k++)
      CHECK(m.sync(k).message().find("collective 1 fails because PERIGEE_SIM_FAIL says so") != std::string::npos);
    CHECK(m.submit(both()).message().find("the group is broken: a test: collective 1") != std::string::npos);
    again();
    CHECK(m.submit(both()).code == PG_OK);
    CHECK((m.sync(0).code == PG_OK && m.sync(1).code == PG_OK));
  }
  SECTION("a link that is cut, and one that is mended") {
    uint64_t unused = 0;
    sim.ok(sim.device->native, 0u, "cut", uint64_t{1}, &unused);
    REQUIRE(m.submit(both()).code == PG_OK);
    for (size_t k = 0; k < 2; k++) {
      const Code code = m.sync(k);
      CHECK(code.code == PG_E_FAILED_PRECONDITION);
      CHECK(code.message().find("a test: the link from sim:") != std::string::npos);
      CHECK(code.message().find("is cut") != std::string::npos);
    }
    sim.ok(sim.device->native, 1u, "mend", uint64_t{0}, &unused);
    again();
    REQUIRE(m.submit(both()).code == PG_OK);
    CHECK((m.sync(0).code == PG_OK && m.sync(1).code == PG_OK));
  }
  SECTION("one whose stream has failed before") {
    uint64_t unused = 0;
    const float value = 1;
    sim.ok(sim.device->native, 0u, "fail.copy", uint64_t{1}, &unused);
    sim.upload(x[1], &value, 4, m.streams[1], 1);
    REQUIRE(m.submit(both()).code == PG_OK);
    CHECK(m.sync(0).message().find("sim:1 does not come to it, since what came before it there has failed") !=
          std::string::npos);
    CHECK(m.sync(1).message().find("copy 1 fails") != std::string::npos);
  }
  SECTION("one that is late") {
    const float value = 1;
    sim.upload(x[1], &value, 4, m.streams[1], 1);  // takes a second
    auto calls = both();
    calls[0].deadline = calls[1].deadline = 0.02;
    REQUIRE(m.submit(calls).code == PG_OK);
    const Code code = m.sync(0);
    CHECK(code.code == PG_E_DEADLINE_EXCEEDED);
    CHECK(code.message().find("took more than 0.02 seconds: sim:1 has not come to it") != std::string::npos);
    CHECK(m.sync(1).code == PG_E_DEADLINE_EXCEEDED);
  }
  SECTION("one that is aborted meanwhile") {
    const float value = 1;
    sim.upload(x[1], &value, 4, m.streams[1], 1);
    REQUIRE(m.submit(both()).code == PG_OK);
    sim.ok(m.table->abort, m.group, "enough");
    CHECK(m.sync(0).message().find("the group is broken: enough") != std::string::npos);
    CHECK(m.sync(1).code != PG_OK);
  }
}

TEST_CASE("Bytes take their time on the links, and the deadline counts it") {
  Sim sim({{"DEVICES", "2"}, {"LINKS", "0-1:1MB/1000"}});
  Members m(sim, {0, 1});
  const uint64_t bytes = 50 * 1024, count = bytes / 4;
  const uint64_t x[2] = {sim.alloc(bytes, 0), sim.alloc(bytes, 1)};
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_ALL_REDUCE, 0, count, x[0], x[0]),
                                   m.call(PG_COLLECTIVE_ALL_REDUCE, 1, count, x[1], x[1])};
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK((m.sync(0).code == PG_OK && m.sync(1).code == PG_OK));
  // Twice half of the bytes, and twice the latency: at least that long, however fast the machine.
  const double least = 2 * (0.001 + 25.0 / 1024);
  CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() >= least);
  for (pg_collective& call : calls) call.deadline = 0.005;
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK(m.sync(0).message().find("took more than 0.005 seconds") != std::string::npos);
  CHECK(m.sync(1).code == PG_E_DEADLINE_EXCEEDED);
}

TEST_CASE("Races with a collective are found, and what it orders is in order") {
  Sim sim({{"DEVICES", "2"}, {"RACES", "1"}});
  Members m(sim, {0, 1});
  const uint64_t x[2] = {sim.alloc(4, 0), sim.alloc(4, 1)}, other = sim.stream(1);
  const float value = 2;
  for (size_t k = 0; k < 2; k++) {
    sim.upload(x[k], &value, 4, m.streams[k], m.devices[k]);
    REQUIRE(m.sync(k).code == PG_OK);
  }
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, x[0], x[0]),
                                   m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, x[1], x[1])};
  REQUIRE(m.submit(calls).code == PG_OK);
  float got = 0;
  const Code raced = sim.call(sim.device->download, 1u, static_cast<void*>(&got), x[1], uint64_t{0}, uint64_t{4}, other,
                              ++sim.sequence);
  CHECK(raced.message().find("race: download") != std::string::npos);
  CHECK(raced.message().find("collective (number") != std::string::npos);
  REQUIRE((m.sync(0).code == PG_OK && m.sync(1).code == PG_OK));
}

TEST_CASE("What a member does behind a collective is behind what the others did before it") {
  Sim sim({{"DEVICES", "2"}, {"RACES", "1"}});
  Members m(sim, {0, 1});
  const uint64_t x[2] = {sim.alloc(4, 0), sim.alloc(4, 1)}, y = sim.alloc(4, 1);
  const float value = 2;
  for (size_t k = 0; k < 2; k++) {
    sim.upload(x[k], &value, 4, m.streams[k], m.devices[k]);
    REQUIRE(m.sync(k).code == PG_OK);
  }
  const auto peer = [&](uint64_t from) {  // a copy on stream 0 of what device 1 has
    return sim.call(sim.device->peer, 0u, x[0], uint64_t{0}, 1u, from, uint64_t{0}, uint64_t{4}, m.streams[0],
                    ++sim.sequence);
  };
  sim.upload(y, &value, 4, m.streams[1], 1);
  CHECK(peer(y).message().find("race: peer") != std::string::npos);
  SECTION("of all with a sum") {
    REQUIRE(m.submit({m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, x[0], x[0]),
                      m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, x[1], x[1])})
                .code == PG_OK);
    CHECK(peer(y).code == PG_OK);
  }
  SECTION("of the root alone with a broadcast") {
    REQUIRE(
        m.submit({m.call(PG_COLLECTIVE_BROADCAST, 0, 1, x[0], x[0]), m.call(PG_COLLECTIVE_BROADCAST, 1, 1, x[1], x[1])})
            .code == PG_OK);
    CHECK(peer(y).message().find("race: peer") != std::string::npos);
  }
  m.sync(0);
}
