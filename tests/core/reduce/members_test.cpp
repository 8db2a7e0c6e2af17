// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over several members of one process, as devices are: one thread gives all of them their passes.
#include <catch2/catch.hpp>
#include <random>

#include "reduce/passes.hpp"
#include "reduce/reducer.hpp"

using namespace perigee;
using namespace perigee::test;

namespace {

struct RowCounts {
  int begun = 0, fail_at = 0;  // fail_at: which call fails, from 1
};

// Adds rows up when they begin.
class RowWire final : public Wire {
 public:
  explicit RowWire(RowCounts& counts) : counts_(counts) {}
  int32_t size() const override { return 1; }
  bool runs_beside(const Device&) const override { return true; }
  uint64_t begin(const Row& row, const SumKind& kind) override {
    if (++counts_.begun == counts_.fail_at) pg::fail(PG_E_FAILED_PRECONDITION, "the link is cut");
    for (int64_t i = 0; i < row[0]->meta->numel; i++) {
      float all = 0;
      for (Tensor* x : row) all += floats(*x)[i];
      for (size_t k = 0; k < row.size(); k++)
        if (k == 0 || kind.to_all) floats(*row[k])[i] = all;
    }
    return 1;
  }
  bool look(uint64_t) override { return true; }
  void finish(uint64_t) override {}
  void sum(Tensor&) override { FAIL("sums begin"); }
  void largest(int32_t*, uint32_t) override {}
  void abandon(uint64_t, std::vector<TensorRef>) noexcept override {}

 private:
  RowCounts& counts_;
};

// A model's replicas.
struct Replicas {
  FakePlugin plugin{host_memory()};
  std::unique_ptr<Device> device = make_device(plugin);
  Members members;
  RowCounts counts;
  std::unique_ptr<Reducer> reducer;

  Replicas(size_t count, const std::vector<int64_t>& sizes) : members(count) {
    for (std::vector<TensorRef>& params : members)
      for (int64_t n : sizes) {
        params.push_back(filled(*device, n, 0));
        set_requires_grad(*params.back(), true);
      }
    auto scale = [](Tensor& x, double by) {
      for (int64_t i = 0; i < x.meta->numel; i++) floats(x)[i] *= static_cast<float>(by);
    };
    reducer =
        std::make_unique<Reducer>(std::make_unique<RowWire>(counts), members, BucketSizes{256, 512, 1024}, true, scale);
  }
  ~Replicas() {
    reducer.reset();
    members.clear();
  }
  void zero_grad() {
    for (std::vector<TensorRef>& params : members)
      for (TensorRef& p : params) gradient_of_param(p) = nullptr;
  }
  void pass(size_t member, float value, const std::vector<bool>& uses) {
    play_pass(*device, members[member], value, uses);
  }
  std::string seen(size_t member, size_t i) { return seen_gradient(members[member][i]); }
};

const Reducer::Weights kWeights{0.25, 0.75};

}  // namespace

TEST_CASE("a bucket starts when all members have given their parts", "[reduce]") {
  Replicas r(2, kFour);
  for (int step = 0; step < 3; step++) {
    r.zero_grad();
    r.reducer->set_sending(kWeights);
    r.pass(0, 4, kAll);
    CHECK(r.reducer->started() == 0);
    r.pass(1, 8, kAll);
    CHECK(r.reducer->started() == (step == 0 ? 0 : 3));
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum(kWeights);
    CHECK(r.reducer->early() == (step == 0 ? 0 : 3));
    for (size_t member : {0, 1})
      for (size_t i = 0; i < 4; i++) CHECK(r.seen(member, i) == std::to_string(7.0f + static_cast<float>(i)));
  }
}

TEST_CASE("sums for the first member alone leave the others' gradients", "[reduce]") {
  Replicas r(2, kFour);
  for (bool to_all : {false, false, true, true, false}) {
    r.zero_grad();
    r.reducer->set_sending(kWeights);
    for (size_t member : {0, 1}) r.pass(member, member == 0 ? 4 : 8, kAll);
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum(kWeights, to_all);
    CHECK(r.seen(0, 0) == std::to_string(7.0f));
    CHECK(r.seen(1, 0) == std::to_string(to_all ? 7.0f : 8.0f));
  }
}

TEST_CASE("a sum that fails leaves nothing behind: the next steps are right, and start early again", "[reduce]") {
  const bool early = GENERATE(false, true);
  Replicas r(2, kFour);
  auto step = [&](float value) {
    r.zero_grad();
    r.reducer->set_sending(kWeights);
    for (size_t member : {0, 1}) r.pass(member, value, kAll);
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum(kWeights);
  };
  if (early) step(1);
  r.counts.fail_at = r.counts.begun + 2;
  CHECK_THROWS_WITH(step(2), Catch::Contains("the link is cut"));
  for (float value : {3.0f, 4.0f, 5.0f}) {
    step(value);
    for (size_t member : {0, 1}) CHECK(r.seen(member, 1) == std::to_string(value + 1));
  }
  CHECK(r.reducer->early() == 3);
}

TEST_CASE("whatever members do in their steps, all have the same sums", "[reduce]") {
  std::mt19937 draw(GENERATE(range(1u, 11u)));
  const std::vector<int64_t> sizes{5, 300, 40, 1, 64, 129, 16, 2};
  Replicas r(3, sizes);
  std::vector<int> before(3, 0);
  for (int step = 0; step < 25; step++) {
    const bool even = draw() % 2 == 0;
    const Reducer::Weights weights = even ? Reducer::Weights{0.25, 0.25, 0.5} : Reducer::Weights{0.5, 0.125, 0.375};
    std::vector<double> sum(sizes.size(), 0);
    std::vector<uint8_t> any(sizes.size(), 0);
    r.zero_grad();
    r.reducer->set_sending(weights);
    for (size_t member = 0; member < 3; member++) {
      std::vector<bool> uses(sizes.size());
      for (size_t i = 0; i < sizes.size(); i++) uses[i] = draw() % 8 != 0;
      // What adds to what there is before it is sent needs an operator, which this program has not.
      const int passes = before[member] == 2 ? 1 : 1 + static_cast<int>(draw() % 4 == 0);
      before[member] = passes;
      for (int p = 0; p < passes; p++) r.pass(member, static_cast<float>(step + static_cast<int>(member)), uses);
      for (size_t i = 0; i < sizes.size(); i++)
        if (uses[i]) any[i] = 1, sum[i] += weights[member] * passes * static_cast<double>(step + member + i);
    }
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum(weights);
    CHECK(r.reducer->any() == any);
    for (size_t i = 0; i < sizes.size(); i++)
      for (size_t member = 0; member < 3; member++) {
        const TensorRef& g = gradient_of_param(r.members[member][i]);
        REQUIRE(static_cast<bool>(g) == (any[i] != 0));
        if (!g) continue;
        CHECK(floats(*g)[0] == Approx(sum[i]).epsilon(1e-5));
        CHECK(floats(*g)[0] == floats(*gradient_of_param(r.members[0][i]))[0]);
      }
  }
}
