// SPDX-License-Identifier: Apache-2.0
// Collectives over devices as perigee/device_collectives.h promises them, of two devices whose type has an engine.
#include <memory>

#include "collective/devices.hpp"
#include "conform/probe.hpp"

namespace perigee::conform {
namespace {

constexpr size_t kMembers = 2;

pg_device_group group_of(const uint32_t (&devices)[kMembers]) {
  pg_device_group info{};
  info.size = PG_SIZE(pg_device_group, look);
  info.count = info.total = kMembers;
  info.devices = devices;
  info.processes = 1;
  return info;
}

// A group of the device that is asked and another one, each with a stream. Members are in the order that was asked for.
class Pair {
 public:
  Pair(Probe& first, Device& other)
      : second_(other),
        engine_(find_device_engine(first.device.type)),
        probes{&first, &second_},
        t(*engine_->device_collectives) {
    for (Probe* probe : probes) streams.push_back(probe->stream());
    make();
  }
  Pair(const Pair&) = delete;
  ~Pair() {
    pg_error error = pg::make_error();
    for (size_t k = 0; k < kMembers; k++) probes[k]->t.stream_sync(probes[k]->self, probes[k]->n, streams[k], &error);
    t.group_destroy(self(), group, &error);
  }

  void make() {
    const uint32_t devices[kMembers] = {probes[0]->n, probes[1]->n};
    const pg_device_group info = group_of(devices);
    ok("group_create", t.group_create, &info, &group);
  }
  void destroy() { ok("group_destroy", t.group_destroy, group); }
  void* self() const { return engine_->self; }  // another plugin's than the devices' perhaps
  template <class F, class... A>
  void ok(const char* what, F entry, A... arguments) {
    pg_error error = pg::make_error();
    const int32_t code = entry(self(), arguments..., &error);
    need(code == PG_OK, std::string(what) + " fails: " + pg::message_of(code, error));
  }

  pg_collective call(uint32_t kind, size_t member, uint64_t count, uint64_t input, uint64_t output) {
    pg_collective call{};
    call.size = PG_SIZE(pg_collective, what);
    call.kind = kind, call.dtype = PG_F32, call.count = count;
    call.input.buffer = input, call.output.buffer = output;
    call.stream = streams[member], call.sequence = probes[member]->number();
    call.what = "conform";
    return call;
  }
  int32_t submit(const std::vector<pg_collective>& calls, pg_error& error) {
    std::vector<const pg_collective*> list;
    for (const pg_collective& each : calls) list.push_back(&each);
    return t.submit(self(), group, static_cast<uint32_t>(calls.size() / kMembers), list.data(), &error);
  }
  void submit(const std::vector<pg_collective>& calls) {
    pg_error error = pg::make_error();
    const int32_t code = submit(calls, error);
    need(code == PG_OK, "submit fails: " + pg::message_of(code, error));
  }

 private:
  Probe second_;
  LoadedPlugin* const engine_;

 public:
  Probe* const probes[kMembers];
  const pg_device_collectives& t;
  std::vector<uint64_t> streams;
  uint64_t group = 0;
};

std::unique_ptr<Pair> make_pair(Probe& p) {
  for (Device* other : devices())
    if (other->plugin() == p.device.plugin() && other->ordinal != p.n) return std::make_unique<Pair>(p, *other);
  wrong("the plugin has no second device");  // then nobody asks
}

using Row = std::vector<float>;

// Member k's input is 10 k + 1, 10 k + 2, ...; what their outputs have then, which were -1 before. Nobody waits between
// uploads, the call and downloads. `optional`: an engine may lack it, and says so; then there is no result.
std::vector<Row> run(Pair& m, uint32_t kind, uint32_t reduction, int32_t peer, size_t in, size_t out, size_t count,
                     bool in_place, bool optional = false) {
  std::vector<Row> inputs, outputs;
  std::vector<pg_collective> calls;
  for (size_t k = 0; k < kMembers; k++) {
    Row values;
    for (size_t i = 0; i < in; i++) values.push_back(static_cast<float>(10 * k + i + 1));
    inputs.push_back(values);
    outputs.emplace_back(out, -1.0f);
  }
  std::vector<uint64_t> targets;
  for (size_t k = 0; k < kMembers; k++) {
    const uint64_t x = m.probes[k]->alloc(in * 4), y = in_place ? x : m.probes[k]->alloc(out * 4);
    if (!in_place) m.probes[k]->upload(y, outputs[k].data(), out * 4, m.streams[k]);
    m.probes[k]->upload(x, inputs[k].data(), in * 4, m.streams[k]);
    calls.push_back(m.call(kind, k, count, x, y));
    calls.back().reduction = reduction, calls.back().peer = peer;
    targets.push_back(y);
  }
  pg_error error = pg::make_error();
  const int32_t code = m.submit(calls, error);
  if (optional && code == PG_E_NOT_SUPPORTED) {
    need(error.message[0] != '\0', "a call is refused without a message");
    for (size_t k = 0; k < kMembers; k++) m.probes[k]->sync(m.streams[k]);  // uploads read what goes with this frame
    return {};
  }
  need(code == PG_OK, "submit fails: " + pg::message_of(code, error));
  std::vector<Row> got;
  for (size_t k = 0; k < kMembers; k++) got.emplace_back(out, 0.0f);
  for (size_t k = 0; k < kMembers; k++) m.probes[k]->download(got[k].data(), targets[k], out * 4, m.streams[k]);
  for (size_t k = 0; k < kMembers; k++) m.probes[k]->sync(m.streams[k]);
  return got;
}

void expect(const char* what, const std::vector<Row>& got, const std::vector<Row>& expected) {
  for (size_t k = 0; k < got.size(); k++)
    for (size_t i = 0; i < expected[k].size(); i++)
      need(got[k][i] == expected[k][i],
           pg::format("%s: element %zu of member %zu is %g; expected %g", what, i, k, static_cast<double>(got[k][i]),
                      static_cast<double>(expected[k][i])));
}

void kinds_do_what_they_say(Probe& p) {
  const auto pair = make_pair(p);
  Pair& m = *pair;
  for (const bool in_place : {false, true}) {
    expect("all_reduce", run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_SUM, 0, 2, 2, 2, in_place), {{12, 14}, {12, 14}});
    expect("all_reduce mean", run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MEAN, 0, 1, 1, 1, in_place), {{6}, {6}});
    expect("all_reduce max", run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MAX, 0, 1, 1, 1, in_place, true), {{11}, {11}});
    expect("all_reduce min", run(m, PG_COLLECTIVE_ALL_REDUCE, PG_REDUCE_MIN, 0, 1, 1, 1, in_place, true), {{1}, {1}});
    expect("broadcast", run(m, PG_COLLECTIVE_BROADCAST, 0, 1, 1, 1, 1, in_place), {{11}, {in_place ? 11.f : -1.f}});
  }
  expect("reduce", run(m, PG_COLLECTIVE_REDUCE, PG_REDUCE_SUM, 1, 1, 1, 1, false), {{-1}, {12}});
  expect("all_gather", run(m, PG_COLLECTIVE_ALL_GATHER, 0, 0, 1, 2, 1, false), {{1, 11}, {1, 11}});
  expect("reduce_scatter", run(m, PG_COLLECTIVE_REDUCE_SCATTER, PG_REDUCE_SUM, 0, 2, 1, 1, false), {{12}, {14}});
  expect("all_to_all", run(m, PG_COLLECTIVE_ALL_TO_ALL, 0, 0, 2, 2, 1, false), {{1, 11}, {2, 12}});
}

void rows_are_done_in_order(Probe& p) {
  const auto pair = make_pair(p);
  Pair& m = *pair;
  const float values[kMembers] = {1, 2};
  uint64_t x[kMembers];
  std::vector<pg_collective> calls;
  for (size_t k = 0; k < kMembers; k++) {
    x[k] = m.probes[k]->alloc(4);
    m.probes[k]->upload(x[k], &values[k], 4, m.streams[k]);
  }
  for (int row = 0; row < 3; row++)  // 3, 6, 12
    for (size_t k = 0; k < kMembers; k++) calls.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, x[k], x[k]));
  m.submit(calls);
  for (size_t k = 0; k < kMembers; k++) {
    float got = 0;
    m.probes[k]->download(&got, x[k], 4, m.streams[k]);
    m.probes[k]->sync(m.streams[k]);
    need(got == 12,
         pg::format("three sums of 1 and 2 in place are %g at member %zu; expected 12", static_cast<double>(got), k));
  }
}

void sends_pair_up(Probe& p) {
  const auto pair = make_pair(p);
  Pair& m = *pair;
  const float value = 7;
  const uint64_t x = m.probes[1]->alloc(4), y = m.probes[0]->alloc(4);
  m.probes[1]->upload(x, &value, 4, m.streams[1]);
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_RECEIVE, 0, 1, 0, y), m.call(PG_COLLECTIVE_SEND, 1, 1, x, 0)};
  calls[0].peer = 1, calls[1].peer = 0;
  m.submit(calls);
  float got = 0;
  m.probes[0]->download(&got, y, 4, m.streams[0]);
  m.probes[0]->sync(m.streams[0]);
  m.probes[1]->sync(m.streams[1]);
  need(got == 7, pg::format("what was sent as 7 arrives as %g", static_cast<double>(got)));
}

void nonsense_is_refused(Probe& p) {
  const auto pair = make_pair(p);
  Pair& m = *pair;
  const uint32_t twice[kMembers] = {p.n, p.n};
  const pg_device_group info = group_of(twice);
  uint64_t group = 0;
  pg_error twice_error = pg::make_error();
  need(m.t.group_create(m.self(), &info, &group, &twice_error) != PG_OK, "a group with one device twice is taken");
  need(twice_error.message[0] != '\0', "a group with one device twice is refused without a message");
  const uint64_t x = m.probes[0]->alloc(4), y = m.probes[1]->alloc(4);
  std::vector<pg_collective> calls{m.call(PG_COLLECTIVE_BROADCAST, 0, 1, x, x),
                                   m.call(PG_COLLECTIVE_BROADCAST, 1, 1, y, y)};
  const auto refused = [&](const char* what) {
    pg_error error = pg::make_error();
    need(m.submit(calls, error) != PG_OK, std::string(what) + " is taken");
    need(error.message[0] != '\0', std::string(what) + " is refused without a message");
  };
  calls[0].peer = calls[1].peer = 2;
  refused("a root that is no member");
  calls[0].peer = calls[1].peer = 0;
  calls[1].kind = PG_COLLECTIVE_ALL_REDUCE;
  refused("another call of one member");
}

void broken_groups_fail_until_they_go(Probe& p) {
  const auto pair = make_pair(p);
  Pair& m = *pair;
  const float value = 1;
  std::vector<pg_collective> calls;
  uint64_t x[kMembers];
  for (size_t k = 0; k < kMembers; k++) {
    x[k] = m.probes[k]->alloc(4);
    m.probes[k]->upload(x[k], &value, 4, m.streams[k]);
    m.probes[k]->sync(m.streams[k]);
    calls.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, x[k], x[k]));
  }
  m.ok("abort", m.t.abort, m.group, "it is enough");
  pg_error error = pg::make_error();
  bool failed = m.submit(calls, error) != PG_OK;
  if (failed) need(error.message[0] != '\0', "a call on a broken group is refused without a message");
  for (size_t k = 0; k < kMembers; k++)
    failed = m.probes[k]->t.stream_sync(m.probes[k]->self, m.probes[k]->n, m.streams[k], &error) != PG_OK || failed;
  need(failed, "a call on a group that was aborted succeeds");
  m.destroy();
  m.make();
  for (size_t k = 0; k < kMembers; k++) {
    m.probes[k]->upload(x[k], &value, 4, m.streams[k]);
    calls[k] = m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, x[k], x[k]);
  }
  m.submit(calls);
  float got = 0;
  m.probes[0]->download(&got, x[0], 4, m.streams[0]);
  m.probes[0]->sync(m.streams[0]);
  m.probes[1]->sync(m.streams[1]);
  need(got == 2, pg::format("in a group made anew 1 + 1 is %g", static_cast<double>(got)));
}

}  // namespace

std::vector<Check> collective_checks(const Device& device) {
  bool several = false;
  for (const Device* other : devices())
    several = several || (other->plugin() == device.plugin() && other->ordinal != device.ordinal);
  if (!several) return {};
  return {{"collectives", "every kind does what it says, in place too", kinds_do_what_they_say},
          {"collectives", "rows are done in their order", rows_are_done_in_order},
          {"collectives", "sends and receives pair up", sends_pair_up},
          {"collectives", "what makes no sense is refused", nonsense_is_refused},
          {"collectives", "a broken group fails until it is destroyed", broken_groups_fail_until_they_go}};
}

}  // namespace perigee::conform
