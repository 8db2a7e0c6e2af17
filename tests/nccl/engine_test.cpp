// SPDX-License-Identifier: Apache-2.0
// Collectives over the devices of one process: kinds, dtypes, rows, what is refused, and what fails.
#include <cmath>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "fixture.hpp"
#include "perigee/kernels/float16.hpp"
#include "standin.hpp"

using namespace nccl_test;
using Rows = std::vector<std::vector<float>>;

namespace {

struct World {
  explicit World(int devices, int jitter = 100) {
    standin::reset();
    standin::set_devices(devices);
    standin::set_jitter(jitter);
    cuda.emplace(CUDA_PLUGIN);
    REQUIRE(cuda->count() == static_cast<uint32_t>(devices));
  }
  ~World() {
    cuda.reset();
    standin::set_jitter(0);
  }
  std::optional<contract::Plugin> cuda;
  Engine engine;
};

// One call of every member, with inputs 10 k + i + 1 and outputs of -1: outputs by member.
Rows run(Members& m, uint32_t kind, uint32_t reduction, int32_t peer, size_t in, size_t out, size_t count,
         bool in_place = false) {
  std::vector<pg_collective> calls;
  std::vector<uint64_t> outputs;
  for (size_t k = 0; k < m.devices.size(); k++) {
    std::vector<float> values;
    for (size_t i = 0; i < in; i++) values.push_back(static_cast<float>(10 * k + i + 1));
    const uint64_t x = m.tensor(k, values);
    const uint64_t y = in_place ? x : m.tensor(k, std::vector<float>(out, -1));
    calls.push_back(m.call(kind, k, count, x, y));
    calls.back().reduction = reduction, calls.back().peer = peer;
    outputs.push_back(y);
  }
  const Code code = m.submit(calls);
  INFO(code.message());
  REQUIRE(code.code == PG_OK);
  Rows results;
  for (size_t k = 0; k < m.devices.size(); k++) results.push_back(m.read<float>(k, outputs[k], out));
  return results;
}

// A sum in place on all members.
struct Sum {
  explicit Sum(Members& m, uint64_t count = 1, double deadline = 0) {
    for (size_t k = 0; k < m.devices.size(); k++) {
      x.push_back(m.tensor(k, std::vector<float>(count, static_cast<float>(k + 1))));
      calls.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, count, x[k], x[k]));
      calls.back().deadline = deadline;
    }
  }
  std::vector<uint64_t> x;
  std::vector<pg_collective> calls;
};

// The stream gets no further before the event of `host`.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  void close_on(Members& m, size_t k) {
    uint64_t native = 0;
    m.cuda.ok(m.cuda.device->native, m.devices[k], "stream", m.streams[k], &native);
    int before = 0;
    cudaGetDevice(&before);
    cudaSetDevice(static_cast<int>(m.devices[k]));
    REQUIRE(cudaLaunchHostFunc(
                reinterpret_cast<cudaStream_t>(native),
                [](void* self) {
                  auto* gate = static_cast<Gate*>(self);
                  std::unique_lock lock(gate->mutex);
                  gate->changed.wait(lock, [&] { return gate->open; });
                },
                this) == cudaSuccess);
    cudaSetDevice(before);
  }
  void release() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
};

}  // namespace

TEST_CASE("Every kind of collective, over devices in any order") {
  World world(4);
  Members m(world.engine, *world.cuda, {2, 0, 3});
  REQUIRE(m.make().code == PG_OK);
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 2, 2, 2) == Rows{{33, 36}, {33, 36}, {33, 36}});
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MEAN, 0, 2, 2, 2, true) == Rows{{11, 12}, {11, 12}, {11, 12}});
  CHECK(run(m, PG_COLLECTIVE_REDUCE, PG_REDUCE_SUM, 1, 1, 1, 1) == Rows{{-1}, {33}, {-1}});
  CHECK(run(m, PG_COLLECTIVE_BROADCAST, 0, 2, 2, 2, 2) == Rows{{21, 22}, {21, 22}, {-1, -1}});
  CHECK(run(m, PG_COLLECTIVE_ALL_GATHER, 0, 0, 1, 3, 1) == Rows{{1, 11, 21}, {1, 11, 21}, {1, 11, 21}});
  CHECK(run(m, PG_COLLECTIVE_REDUCE_SCATTER, PG_REDUCE_SUM, 0, 3, 1, 1) == Rows{{33}, {36}, {39}});
  CHECK(run(m, PG_COLLECTIVE_ALL_TO_ALL, 0, 0, 3, 3, 1) == Rows{{1, 11, 21}, {2, 12, 22}, {3, 13, 23}});
}

TEST_CASE("A group of one, and calls of nothing") {
  World world(1);
  Members m(world.engine, *world.cuda, {0});
  REQUIRE(m.make().code == PG_OK);
  CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MEAN, 0, 2, 2, 2) == Rows{{1, 2}});
  CHECK(run(m, PG_COLLECTIVE_ALL_GATHER, 0, 0, 2, 2, 2) == Rows{{1, 2}});
  CHECK(m.submit({m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 0, 0, 0)}).code == PG_OK);
  CHECK(m.submit({m.call(PG_COLLECTIVE_BARRIER, 0, 0, 0, 0)}).code == PG_OK);
  CHECK(m.sync(0).code == PG_OK);
}

TEST_CASE("Sums in every dtype that NCCL has; others are refused by name, and break nothing") {
  World world(2);
  Members m(world.engine, *world.cuda, {0, 1});
  REQUIRE(m.make().code == PG_OK);
  const auto sum = [&](uint32_t dtype, auto a, auto b) {
    using T = decltype(a);
    const uint64_t x = m.tensor(0, std::vector<T>{a}), y = m.tensor(1, std::vector<T>{b});
    std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, x, x),
                                     m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, y, y)};
    calls[0].dtype = calls[1].dtype = dtype;
    const Code code = m.submit(calls);
    INFO(code.message());
    REQUIRE(code.code == PG_OK);
    const T first = m.read<T>(0, x, 1)[0], second = m.read<T>(1, y, 1)[0];
    CHECK(std::memcmp(&first, &second, sizeof first) == 0);
    return first;
  };
  CHECK(sum(PG_I8, int8_t{-3}, int8_t{5}) == 2);
  CHECK(sum(PG_U8, uint8_t{200}, uint8_t{50}) == 250);
  CHECK(sum(PG_I32, int32_t{1} << 30, int32_t{7}) == (1 << 30) + 7);
  CHECK(sum(PG_I64, int64_t{1} << 60, int64_t{7}) == (int64_t{1} << 60) + 7);
  CHECK(sum(PG_F64, 0.5, 1e-12) == 0.5 + 1e-12);
  CHECK(std::isinf(sum(PG_F32, INFINITY, 1.0f)));
  CHECK(sum(PG_F16, uint16_t{0x3c00}, uint16_t{0x4000}) == 0x4200);   // 1 + 2
  CHECK(sum(PG_BF16, uint16_t{0x3f80}, uint16_t{0x4000}) == 0x4040);  // 1 + 2

  const auto refused = [&](const std::function<void(pg_collective&)>& change, const std::string& why) {
    const uint64_t x = m.tensor(0, std::vector<double>{1, 1}), y = m.tensor(1, std::vector<double>{1, 1});
    std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, x, x),
                                     m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, y, y)};
    for (pg_collective& call : calls) change(call);
    const Code code = m.submit(calls);
    CHECK(code.code == PG_E_NOT_SUPPORTED);
    CHECK_THAT(code.message(), Catch::Contains(why));
    CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 1, 1, 1) == Rows{{12}, {12}});
  };
  refused([](pg_collective& c) { c.dtype = PG_I16; }, "int16");
  refused([](pg_collective& c) { c.dtype = PG_C64; }, "complex64");
  refused([](pg_collective& c) { c.dtype = PG_B8; }, "bool");
  refused([](pg_collective& c) { c.reduction = PG_REDUCE_MAX; }, "the max of float32: NCCL's passes NaN over");
  refused([](pg_collective& c) { c.reduction = PG_REDUCE_MIN, c.dtype = PG_F64; }, "the min of float64");
  refused([](pg_collective& c) { c.reduction = PG_REDUCE_MEAN, c.dtype = PG_I32; }, "int32");
  refused([](pg_collective& c) { c.kind = PG_COLLECTIVE_ALL_GATHER; }, "a test on its own input");
}

TEST_CASE("What is only moved may be of any dtype; the largest of integers") {
  World world(2);
  Members m(world.engine, *world.cuda, {0, 1});
  REQUIRE(m.make().code == PG_OK);
  std::vector<std::vector<double>> values{{1.5, -2.5}, {0, 0}};
  const uint64_t x = m.tensor(0, values[0]), y = m.tensor(1, values[1]);
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_BROADCAST, 0, 1, x, x),
                                   m.call(PG_COLLECTIVE_BROADCAST, 1, 1, y, y)};
  calls[0].dtype = calls[1].dtype = PG_C128;
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK(m.read<double>(1, y, 2) == values[0]);
  const uint64_t a = m.tensor(0, std::vector<int32_t>{-5}), b = m.tensor(1, std::vector<int32_t>{3});
  calls = {m.call(PG_COLLECTIVE_ALL_REDUCE, 0, 1, a, a), m.call(PG_COLLECTIVE_ALL_REDUCE, 1, 1, b, b)};
  calls[0].dtype = calls[1].dtype = PG_I32, calls[0].reduction = calls[1].reduction = PG_REDUCE_MAX;
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK(m.read<int32_t>(0, a, 1)[0] == 3);
}

TEST_CASE("Rows: one behind the other where they touch, together where they do not; pairs of sends and receives") {
  World world(3);
  Members m(world.engine, *world.cuda, {0, 1, 2});
  REQUIRE(m.make().code == PG_OK);
  Sum sum(m);  // 6, 18, 54
  std::vector<pg_collective> calls;
  for (int row = 0; row < 3; row++) calls.insert(calls.end(), sum.calls.begin(), sum.calls.end());
  REQUIRE(m.submit(calls).code == PG_OK);
  for (size_t k = 0; k < 3; k++) CHECK(m.read<float>(k, sum.x[k], 1)[0] == 54);

  standin::forget_calls();
  std::vector<Sum> several;
  calls.clear();
  for (int row = 0; row < 5; row++) {
    several.emplace_back(m, 4);
    calls.insert(calls.end(), several.back().calls.begin(), several.back().calls.end());
  }
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK(standin::calls()["ncclGroupStart"] == 1);
  for (const Sum& each : several) CHECK(m.read<float>(1, each.x[1], 4) == std::vector<float>(4, 6));

  // 0 to 1 and 1 to 0 in one row, 2 has no part; then 2 to 0.
  const uint64_t a = m.tensor(0, std::vector<float>{7}), b = m.tensor(1, std::vector<float>{8});
  const uint64_t c = m.tensor(0, std::vector<float>{0}), d = m.tensor(2, std::vector<float>{9});
  calls = {m.call(PG_COLLECTIVE_SEND, 0, 1, a, 0),
           m.call(PG_COLLECTIVE_RECEIVE, 1, 1, 0, b),
           pg_collective{},
           m.call(PG_COLLECTIVE_RECEIVE, 0, 1, 0, c),
           pg_collective{},
           m.call(PG_COLLECTIVE_SEND, 2, 1, d, 0)};
  calls[0].peer = 1, calls[1].peer = 0, calls[3].peer = 2, calls[5].peer = 0;
  REQUIRE(m.submit(calls).code == PG_OK);
  CHECK(m.read<float>(1, b, 1)[0] == 7);
  CHECK(m.read<float>(0, c, 1)[0] == 9);
}

TEST_CASE("Calls are queued: nobody waits, and streams go on") {
  World world(2);
  Members m(world.engine, *world.cuda, {0, 1});
  REQUIRE(m.make().code == PG_OK);
  Sum sum(m, 3);
  Gate gate;
  gate.close_on(m, 1);
  const Code code = m.submit(sum.calls);  // returns though device 1 is not there yet
  INFO(code.message());
  REQUIRE(code.code == PG_OK);
  CHECK(m.cuda
            .call(m.cuda.device->event_query, 0u,
                  [&] {
                    const uint64_t event = m.cuda.event(0);
                    m.cuda.ok(m.cuda.device->event_record, 0u, event, m.streams[0]);
                    return event;
                  }())
            .code == PG_E_BUSY);
  gate.release();
  for (size_t k = 0; k < 2; k++) CHECK(m.read<float>(k, sum.x[k], 3) == std::vector<float>(3, 3));
}

TEST_CASE("What fails behind submit is told where the stream is waited for, and breaks the group") {
  World world(2);
  Members m(world.engine, *world.cuda, {0, 1});
  REQUIRE(m.make().code == PG_OK);
  const auto broken = [&](const std::string& why) {
    const Code code = m.submit(Sum(m).calls);
    CHECK(code.code != PG_OK);
    CHECK_THAT(code.message(), Catch::Contains("the group is broken: ") && Catch::Contains(why));
    CHECK(m.sync(0).code == PG_OK);  // told once
    m.destroy();
    REQUIRE(m.make().code == PG_OK);
    CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 1, 1, 1) == Rows{{12}, {12}});
  };
  SECTION("a member that is late") {
    Gate gate;
    Sum sum(m, 2, 0.1);
    gate.close_on(m, 1);
    REQUIRE(m.submit(sum.calls).code == PG_OK);
    const Code code = m.sync(0);
    CHECK(code.code == PG_E_DEADLINE_EXCEEDED);
    CHECK_THAT(code.message(),
               Catch::Contains("a test: took more than 0.1 seconds: ") && Catch::Contains("cuda:1 has not come to it"));
    gate.release();
    CHECK(m.sync(1).code == PG_E_DEADLINE_EXCEEDED);
    broken("took more than 0.1 seconds");
  }
  SECTION("a network that is gone") {
    standin::fail("ncclRemote", 1, cudaErrorUnknown);
    REQUIRE(m.submit(Sum(m).calls).code == PG_OK);
    const Code code = m.sync(0);
    CHECK(code.code == PG_E_FAILED_PRECONDITION);
    CHECK_THAT(code.message(), Catch::Contains("a test: remote process exited"));
    CHECK(m.sync(1).code == PG_E_FAILED_PRECONDITION);
    broken("remote process exited");
  }
  SECTION("aborted meanwhile") {
    Gate gate;
    Sum sum(m);
    gate.close_on(m, 1);
    REQUIRE(m.submit(sum.calls).code == PG_OK);
    REQUIRE(m.engine.call(m.engine.table->abort, m.group, "enough").code == PG_OK);
    CHECK_THAT(m.sync(0).message(), Catch::Contains("enough"));
    gate.release();
    CHECK_THAT(m.sync(1).message(), Catch::Contains("enough"));
    broken("enough");
  }
  SECTION("a call that NCCL does not take") {
    standin::fail("ncclAllReduce", 2, cudaErrorUnknown);
    const Code code = m.submit(Sum(m).calls);
    CHECK(code.code == PG_E_INTERNAL);
    CHECK_THAT(code.message(), Catch::Contains("ncclAllReduce: unhandled cuda error"));
    broken("ncclAllReduce");
  }
}

TEST_CASE("Nonsense is refused") {
  World world(2);
  Members m(world.engine, *world.cuda, {0, 0});
  const Code twice = m.make();
  CHECK(twice.code == PG_E_INVALID_ARGUMENT);
  CHECK_THAT(twice.message(), Catch::Contains("device 0 is named twice"));
  Members n(world.engine, *world.cuda, {0, 1});
  REQUIRE(n.make().code == PG_OK);
  Sum sum(n);
  sum.calls[1].kind = PG_COLLECTIVE_BROADCAST;
  CHECK_THAT(n.submit(sum.calls).message(), Catch::Contains("member 1 makes another call than the others"));
  sum.calls[0].kind = PG_COLLECTIVE_BROADCAST;
  sum.calls[0].peer = sum.calls[1].peer = 2;
  CHECK_THAT(n.submit(sum.calls).message(), Catch::Contains("member 2; expected 0..1"));
  sum.calls[0].peer = sum.calls[1].peer = 0;
  sum.calls[0].input.buffer = 0;
  CHECK_THAT(n.submit(sum.calls).message(), Catch::Contains("cuda:0 has no address"));
}

TEST_CASE("Each call into NCCL and the runtime fails once: an error, no hang, and the next group works") {
  for (const char* name : {"ncclGetUniqueId", "ncclCommInitRankConfig", "ncclGroupStart", "ncclBroadcast",
                           "cudaEventCreateWithFlags", "cudaEventRecord", "cudaStreamIsCapturing"}) {
    INFO(name);
    World world(2, 0);
    Members m(world.engine, *world.cuda, {0, 1});
    standin::fail(name, 1, cudaErrorUnknown);
    Code code = m.make();
    if (code.code == PG_OK) {
      Sum sum(m);
      for (pg_collective& call : sum.calls) call.kind = PG_COLLECTIVE_BROADCAST;
      code = m.submit(sum.calls);
    }
    CHECK(code.code != PG_OK);
    CHECK_THAT(code.message(), Catch::Contains(std::string(name)));
    if (m.group != 0) m.destroy();
    REQUIRE(m.make().code == PG_OK);
    CHECK(run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 1, 1, 1) == Rows{{12}, {12}});
  }
}
