// SPDX-License-Identifier: Apache-2.0
// NCCL itself on real GPUs, of which one is enough: groups of one device, and of all that there are.
#include <iostream>
#include <optional>

#include "../../nccl/fixture.hpp"

using namespace nccl_test;

namespace {

// False, and said in the words that CTest takes for a skipped test, where there is no device.
bool has_devices(contract::Plugin& cuda) {
  std::string reason;
  if (cuda.count(&reason) > 0) return true;
  std::cout << "nccl: skipped, no device: " << reason << std::endl;
  return false;
}

std::vector<std::vector<uint32_t>> device_lists(contract::Plugin& cuda) {
  std::vector<std::vector<uint32_t>> lists{{0}};
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < cuda.count(); i++) all.push_back(i);
  if (all.size() > 1) lists.push_back(all);
  return lists;
}

// Element i of member k: small whole numbers, which every dtype holds and every order of additions sums alike.
template <class T>
std::vector<T> values(size_t member, size_t count) {
  std::vector<T> list;
  for (size_t i = 0; i < count; i++) list.push_back(static_cast<T>((i * 7 + member * 3) % 11));
  return list;
}

template <class T>
struct Call {
  Call(Members& m, uint32_t kind, uint32_t dtype, size_t in, size_t out, size_t count, int32_t peer = 0) {
    for (size_t k = 0; k < m.devices.size(); k++) {
      const uint64_t x = m.tensor(k, values<T>(k, in)), y = m.tensor(k, std::vector<T>(out, T(100)));
      outputs.push_back(y);
      calls.push_back(m.call(kind, k, count, x, y));
      calls.back().dtype = dtype, calls.back().peer = peer;
      calls.back().deadline = 60;
    }
    const Code code = m.submit(calls);
    INFO(code.message());
    REQUIRE(code.code == PG_OK);
    for (size_t k = 0; k < m.devices.size(); k++) results.push_back(m.read<T>(k, outputs[k], out));
  }
  std::vector<uint64_t> outputs;
  std::vector<pg_collective> calls;
  std::vector<std::vector<T>> results;
};

template <class T>
void check_kinds(Members& m, uint32_t dtype) {
  INFO(pg::dtype_name(dtype) << " on " << m.devices.size() << " devices");
  const size_t n = m.devices.size(), count = 1000, last = n - 1;
  std::vector<std::vector<T>> whole;
  for (size_t k = 0; k < n; k++) whole.push_back(values<T>(k, n * count));
  const auto total = [&](size_t i) {
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += static_cast<double>(whole[k][i]);
    return static_cast<T>(sum);
  };
  Call<T> sums(m, PG_COLLECTIVE_ALL_REDUCE, dtype, count, count, count);
  Call<T> sum(m, PG_COLLECTIVE_REDUCE, dtype, count, count, count, static_cast<int32_t>(last));
  Call<T> gathered(m, PG_COLLECTIVE_ALL_GATHER, dtype, count, n * count, count);
  Call<T> scattered(m, PG_COLLECTIVE_REDUCE_SCATTER, dtype, n * count, count, count);
  Call<T> spread(m, PG_COLLECTIVE_BROADCAST, dtype, count, count, count, static_cast<int32_t>(last));
  Call<T> exchanged(m, PG_COLLECTIVE_ALL_TO_ALL, dtype, n * count, n * count, count);
  size_t wrong = 0;
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; i < count; i++) {
      wrong += sums.results[k][i] != total(i);
      wrong += sum.results[k][i] != (k == last ? total(i) : T(100));
      wrong += scattered.results[k][i] != total(k * count + i);
      wrong += spread.results[k][i] != (k == last ? T(100) : whole[last][i]);
      for (size_t j = 0; j < n; j++) {
        wrong += gathered.results[k][j * count + i] != whole[j][i];
        wrong += exchanged.results[k][j * count + i] != whole[j][k * count + i];
      }
    }
  }
  CHECK(wrong == 0);
}

// body(engine, members, devices): with a group that is made, of each list of devices.
template <class Body>
void for_each_group(Body&& body) {
  contract::Plugin cuda(CUDA_PLUGIN);
  if (!has_devices(cuda)) return;
  Engine engine;
  for (const std::vector<uint32_t>& devices : device_lists(cuda)) {
    Members m(engine, cuda, devices);
    const Code made = m.make();
    INFO(made.message());
    REQUIRE(made.code == PG_OK);
    body(engine, m, devices);
  }
}

}  // namespace

TEST_CASE("Every kind of collective in every dtype of C++, on one device and on all") {
  for_each_group([](Engine&, Members& m, const std::vector<uint32_t>&) {
    check_kinds<float>(m, PG_F32);
    check_kinds<double>(m, PG_F64);
    check_kinds<int64_t>(m, PG_I64);
    check_kinds<int32_t>(m, PG_I32);
    check_kinds<int8_t>(m, PG_I8);
    check_kinds<uint8_t>(m, PG_U8);
  });
}

TEST_CASE("Sums of 16-bit floats, means, barriers, rows that build on each other, large ones") {
  for_each_group([](Engine&, Members& m, const std::vector<uint32_t>& devices) {
    const size_t n = devices.size(), large = size_t{1} << 22;
    INFO(n << " devices");
    const auto submit = [&](std::vector<pg_collective> calls) {
      for (pg_collective& call : calls) call.deadline = 60;
      const Code code = m.submit(calls);
      INFO(code.message());
      REQUIRE(code.code == PG_OK);
    };
    std::vector<pg_collective> halves, brains, means, barriers, rows;
    std::vector<uint64_t> h, b, x, y;
    for (size_t k = 0; k < n; k++) {
      h.push_back(m.tensor(k, std::vector<uint16_t>(3, 0x3c00)));  // 1
      b.push_back(m.tensor(k, std::vector<uint16_t>(3, 0x3f80)));
      x.push_back(m.tensor(k, std::vector<float>(large, static_cast<float>(k + 1))));
      y.push_back(m.tensor(k, std::vector<float>(1, 1)));
      halves.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 3, h[k], h[k]));
      halves.back().dtype = PG_F16;
      brains.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 3, b[k], b[k]));
      brains.back().dtype = PG_BF16, brains.back().reduction = PG_REDUCE_MEAN;
      means.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, large, x[k], x[k]));
      means.back().reduction = PG_REDUCE_MEAN;
      barriers.push_back(m.call(PG_COLLECTIVE_BARRIER, k, 0, 0, 0));
    }
    for (int row = 0; row < 3; row++)
      for (size_t k = 0; k < n; k++) rows.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, y[k], y[k]));
    submit(halves);
    submit(brains);
    submit(means);
    submit(barriers);
    submit(rows);
    const float cube = static_cast<float>(n * n * n);
    for (size_t k = 0; k < n; k++) {
      if (n == 1) CHECK(m.read<uint16_t>(k, h[k], 3) == std::vector<uint16_t>(3, 0x3c00));
      if (n == 2) CHECK(m.read<uint16_t>(k, h[k], 3) == std::vector<uint16_t>(3, 0x4000));
      CHECK(m.read<uint16_t>(k, b[k], 3) == std::vector<uint16_t>(3, 0x3f80));
      CHECK(m.read<float>(k, x[k], large) == std::vector<float>(large, static_cast<float>(n + 1) / 2));
      CHECK(m.read<float>(k, y[k], 1)[0] == cube);
    }
  });
}

TEST_CASE("Refusals break nothing; a group that was aborted does, until it is made anew") {
  for_each_group([](Engine& engine, Members& m, const std::vector<uint32_t>& devices) {
    std::vector<pg_collective> calls;
    for (size_t k = 0; k < devices.size(); k++) {
      const uint64_t x = m.tensor(k, std::vector<float>{1});
      calls.push_back(m.call(PG_COLLECTIVE_ALL_REDUCE, k, 1, x, x));
    }
    for (pg_collective& call : calls) call.reduction = PG_REDUCE_MAX;
    CHECK(m.submit(calls).code == PG_E_NOT_SUPPORTED);
    for (pg_collective& call : calls) call.reduction = PG_REDUCE_SUM;
    CHECK(m.submit(calls).code == PG_OK);
    for (size_t k = 0; k < devices.size(); k++) CHECK(m.sync(k).code == PG_OK);
    REQUIRE(engine.call(engine.table->abort, m.group, "enough").code == PG_OK);
    CHECK_THAT(m.submit(calls).message(), Catch::Contains("the group is broken: enough"));
    for (size_t k = 0; k < devices.size(); k++) m.sync(k);
    m.destroy();
    REQUIRE(m.make().code == PG_OK);
    CHECK(m.submit(calls).code == PG_OK);
    for (size_t k = 0; k < devices.size(); k++) CHECK(m.sync(k).code == PG_OK);
  });
}
