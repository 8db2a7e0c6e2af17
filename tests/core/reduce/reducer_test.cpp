// SPDX-License-Identifier: Apache-2.0
// Sums of gradients over processes, which are threads here: passes are played, and so is what a script does between.
#include "reduce/reducer.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "reduce/fake_wire.hpp"
#include "reduce/passes.hpp"

using namespace perigee;
using namespace perigee::test;
using Sizes = std::vector<int64_t>;
using Weights = Reducer::Weights;

namespace {

constexpr BucketSizes kLimits{256, 512, 1024};  // bytes: of kFour buckets of 3; 2 and 1; 0

// One process: parameters, and a reducer of their gradients.
struct Replica {
  FakePlugin plugin{host_memory()};
  std::unique_ptr<Device> device = make_device(plugin);
  std::vector<TensorRef> params;
  WireCounts counts;
  int scaled = 0;
  std::unique_ptr<Reducer> reducer;

  Replica(Meeting& meeting, const Sizes& sizes, bool overlaps = true, bool beside = true) {
    for (int64_t n : sizes) {
      params.push_back(filled(n, 0));
      set_requires_grad(*params.back(), true);
    }
    reducer = std::make_unique<Reducer>(std::make_unique<FakeWire>(meeting, counts, beside), Members{params}, kLimits,
                                        overlaps, [this](Tensor& x, double by) {
                                          scaled++;
                                          for (int64_t i = 0; i < x.meta->numel; i++)
                                            floats(x)[i] *= static_cast<float>(by);
                                        });
  }
  ~Replica() {
    reducer.reset();
    params.clear();
  }

  TensorRef filled(int64_t n, float value) { return test::filled(*device, n, value); }
  TensorRef& gradient(size_t i) { return gradient_of_param(params[i]); }
  void pass(float value, const std::vector<bool>& uses) { play_pass(*device, params, value, uses); }
  template <class Fn>
  void each_listener(size_t i, Fn&& fn) {
    test::each_listener(params[i], fn);
  }
  void zero_grad() {
    for (size_t i = 0; i < params.size(); i++) gradient(i) = nullptr;
  }
  void step(double weight, float value, const std::vector<bool>& uses) {
    zero_grad();
    reducer->set_sending(Weights{weight});
    pass(value, uses);
    reducer->set_sending(std::nullopt);
    reducer->sum({weight});
  }
  std::string seen(size_t i) { return seen_gradient(params[i]); }
};

// Runs body(rank, replica) of each process in a thread of its own.
template <class Body>
void on_ranks(int32_t ranks, const Sizes& sizes, Body&& body, bool overlaps = true, bool beside = true) {
  Meeting meeting(ranks);
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int32_t r = 0; r < ranks; r++) replicas.push_back(std::make_unique<Replica>(meeting, sizes, overlaps, beside));
  std::vector<std::thread> threads;
  std::vector<std::string> failures(static_cast<size_t>(ranks));
  for (int32_t r = 0; r < ranks; r++)
    threads.emplace_back([&, r] {
      try {
        body(r, *replicas[static_cast<size_t>(r)]);
      } catch (const std::exception& error) {
        failures[static_cast<size_t>(r)] = error.what();
        meeting.break_off();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& failure : failures) CHECK(failure == "");
  CHECK(meeting.mismatches() == 0);
}

// Catch counts in one thread alone.
void need(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}
void need_equal(const std::string& got, const std::string& expected, const std::string& what) {
  need(got == expected, what + ": " + got + "; expected " + expected);
}

}  // namespace

TEST_CASE("buckets: the last parameters first, by dtype, up to a size", "[reduce]") {
  FakePlugin plugin(host_memory());
  auto device = make_device(plugin);
  std::vector<TensorRef> params;
  auto add = [&](int64_t n, uint32_t dtype) { params.push_back(make_dense(*device, intern_meta(dtype, 1, &n))); };
  add(400, PG_F32);  // 1600 bytes: worth a message of its own
  add(3, PG_F32);
  add(100, PG_F32);
  add(7, PG_F64);
  add(0, PG_F32);
  add(10, PG_F32);
  add(10, PG_F32);
  BucketLayout layout = lay_out({params}, {1, 1, 1, 1, 1, 0, 1}, kLimits);
  REQUIRE(layout.buckets.size() == 3);
  CHECK(layout.buckets[0].index == std::vector<uint32_t>{6});
  CHECK(layout.buckets[1].index == std::vector<uint32_t>{3});
  CHECK(layout.buckets[2].index == std::vector<uint32_t>{2, 1});
  CHECK(layout.buckets[2].offsets == Sizes{0, 448});
  CHECK(layout.buckets[2].extent == 512);
  // 1600 bytes found no place in the bucket before, so theirs was the last, and is none.
  CHECK(layout.direct == std::vector<uint32_t>{0});

  Bucket& bucket = layout.buckets[2];
  open_share(bucket, 0, params);
  const Share& share = bucket.shares[0];
  const TensorRef flat = share.flat;
  open_share(bucket, 0, params);
  CHECK(share.flat.get() == flat.get());
  CHECK(share.parts[1]->storage.get() == flat->storage.get());
  CHECK(share.parts[1]->address().offset == flat->address().offset + 448);
  for (int64_t i = 103; i < 112; i++) CHECK(floats(*flat)[i] == 0);  // what lies between parts
  params.clear();
}

TEST_CASE("sums over ranks, by their weights; what some lack counts as zero there, what all lack stays away",
          "[reduce]") {
  for (int32_t ranks : {1, 2, 3})
    for (bool overlaps : {false, true})
      for (bool beside : {false, true})
        on_ranks(
            ranks, kFour,
            [&](int32_t rank, Replica& r) {
              double total = 0;
              for (int32_t k = 0; k < ranks; k++) total += k + 1;
              for (int step = 0; step < 4; step++) {
                r.step((rank + 1) / total, static_cast<float>(1 + step), {true, false, rank == 0, true});
                need_equal(r.seen(0), std::to_string(1.0f + static_cast<float>(step)), "parameter 0");
                need_equal(r.seen(1), "-", "parameter 1");
                need(std::abs(floats(*r.gradient(2))[0] - static_cast<float>((3 + step) / total)) < 1e-5,
                     "parameter 2: " + r.seen(2));
                need(r.reducer->any() == std::vector<uint8_t>{1, 0, 1, 1}, "any");
                const uint32_t most = overlaps && beside && step > 0 ? 2 : 0;  // other ranks lack parameter 2
                need(r.reducer->early() == (rank == 0 ? most : most / 2),
                     "started early: " + std::to_string(r.reducer->early()));
              }
            },
            overlaps, beside);
}

TEST_CASE("buckets start while a pass runs, each when it and all before it are full", "[reduce]") {
  on_ranks(2, kFour, [&](int32_t, Replica& r) {
    r.step(0.5, 1, kAll);
    need(r.reducer->early() == 0, "nothing is known in the first step");
    r.zero_grad();
    r.reducer->set_sending(Weights{0.5});
    // The last bucket is full first.
    for (size_t i : {size_t{0}, size_t{1}, size_t{2}}) {
      TensorRef g = r.filled(r.params[i]->meta->numel, 5);
      r.each_listener(i, [&](const Node::Listener& l) { l.who->arrived(l.number, *g, nullptr); });
      r.gradient(i) = g;
      g = nullptr;
      r.each_listener(i, [&](const Node::Listener& l) { l.who->collected(l.number, *r.gradient(i)); });
      need(r.reducer->started() == 0, "one started before its turn");
    }
    r.gradient(3) = r.filled(16, 5);
    r.each_listener(3, [&](const Node::Listener& l) { l.who->arrived(l.number, *r.gradient(3), nullptr); });
    r.each_listener(3, [&](const Node::Listener& l) { l.who->collected(l.number, *r.gradient(3)); });
    need(r.reducer->started() == 3, "not all started");
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum({0.5});
    need(r.reducer->early() == 3, "started early");
    for (size_t i = 0; i < 4; i++) need_equal(r.seen(i), std::to_string(5.0f), "parameter");
  });
}

TEST_CASE("what was sent too early is summed again, on all", "[reduce]") {
  const std::string what = GENERATE("another pass on one rank", "changed in place", "another in its place", "dropped",
                                    "another weight", "sent where none may be");
  on_ranks(2, kFour, [&](int32_t rank, Replica& r) {
    r.step(0.5, 1, kAll);
    r.zero_grad();
    r.reducer->set_sending(Weights{0.5});
    r.pass(2, kAll);
    double weight = 0.5;
    float expected = 2;
    if (what == "another pass on one rank" && rank == 1) r.pass(2, kAll);
    if (what == "another pass on one rank") expected = 3;
    if (what == "changed in place" && rank == 0) {
      for (int64_t k = 0; k < 16; k++) floats(*r.gradient(0))[k] += 4;
      r.gradient(0)->storage->version++;
    }
    if (what == "changed in place") expected = 4;
    if (what == "another in its place" && rank == 0) r.gradient(0) = r.filled(16, 8);
    if (what == "another in its place") expected = 5;
    if (what == "dropped" && rank == 1) r.zero_grad();
    if (what == "dropped") expected = 1;
    if (what == "another weight") weight = rank == 0 ? 0.25 : 0.75;
    r.reducer->set_sending(std::nullopt);
    if (what == "sent where none may be") {
      r.pass(2, kAll);
      expected = 4;
    }
    r.reducer->sum({weight});
    need(r.reducer->early() == 3, "started early");
    need_equal(r.seen(0), std::to_string(expected), what);
    r.step(0.5, 1, kAll);  // and the next one is as any other
    need_equal(r.seen(0), std::to_string(1.0f), "the next step");
  });
}

TEST_CASE("two ranks that count the same make means, and scale nothing; others make sums", "[reduce]") {
  Meeting meeting(2);
  for (double other : {0.5, 0.25}) {
    int scaled[2], means[2], sums[2];
    on_ranks(2, kFour, [&](int32_t rank, Replica& r) {
      for (int step = 0; step < 3; step++) {
        r.step(rank == 0 ? 0.5 : other, 4, kAll);
        need_equal(r.seen(0), std::to_string(other == 0.5 ? 4.0f : 3.0f), "parameter 0");
      }
      scaled[rank] = r.scaled, means[rank] = r.counts.means, sums[rank] = r.counts.sums;
    });
    if (other == 0.5) {
      for (int rank : {0, 1}) CHECK((scaled[rank] == 0 && means[rank] == 9 && sums[rank] == 0));
    } else {  // rank 0 has begun means in vain
      for (int rank : {0, 1}) CHECK((scaled[rank] >= 9 && sums[rank] >= 9));
    }
  }
}

TEST_CASE("gradients become parts of buckets where nobody else has them, and keep their place where somebody does",
          "[reduce]") {
  on_ranks(2, kFour, [&](int32_t, Replica& r) {
    r.step(0.5, 1, kAll);
    need(r.gradient(1)->storage.get() == r.gradient(2)->storage.get(), "parts of one bucket");
    need(r.gradient(1)->storage.get() != r.gradient(3)->storage.get(), "another bucket");
    const TensorRef old = r.gradient(0);  // of the step before: nobody writes to it
    r.zero_grad();
    r.reducer->set_sending(Weights{0.5});
    r.pass(7, kAll);
    const TensorRef held = r.gradient(1);
    const uint64_t version = held->storage->version;
    r.reducer->set_sending(std::nullopt);
    r.reducer->sum({0.5});
    need(floats(*old)[0] == 1, "an old gradient was written to");
    need(r.gradient(1).get() == held.get() && held->storage->version > version, "held: the same tensor, written to");
    need_equal(r.seen(1), std::to_string(8.0f), "held");
    need(r.gradient(2)->storage.get() != held->storage.get(), "the others have a bucket");
  });
}

TEST_CASE("memory that runs short in a step is asked for again, and no rank waits in vain", "[reduce]") {
  const int nth = GENERATE(1, 2, 3, 4, 5);
  on_ranks(2, {1 << 20, 1 << 21, 300 << 10}, [&](int32_t rank, Replica& r) {
    for (int step = 0; step < 3; step++) {
      r.zero_grad();
      r.reducer->set_sending(Weights{0.5});
      r.pass(3, {true, true, true});
      r.reducer->set_sending(std::nullopt);
      if (rank == 1) r.plugin.fail_allocation = nth;
      for (int attempt = 0;; attempt++) {
        try {
          r.reducer->sum({0.5});
          break;
        } catch (const pg::Error& error) {
          need(error.code == PG_E_OUT_OF_MEMORY && attempt == 0, error.what());
        }
      }
      r.plugin.fail_allocation = 0;
      need_equal(r.seen(2), std::to_string(5.0f), "parameter 2");
    }
  });
}

TEST_CASE("a reducer that goes lets go of its parameters, and of memory when that is at rest", "[reduce]") {
  int abandoned[2];
  on_ranks(2, kFour, [&](int32_t rank, Replica& r) {
    r.step(0.5, 1, kAll);
    need(has_listeners() && r.params[0]->node->rare->listeners.size() == 1, "it listens");
    r.zero_grad();
    r.reducer->set_sending(Weights{0.5});
    r.pass(2, kAll);
    need(r.reducer->started() == 3, "started");
    r.reducer.reset();
    need(r.params[0]->node->rare->listeners.empty(), "let go");
    abandoned[rank] = r.counts.abandoned;
  });
  CHECK(abandoned[0] + abandoned[1] >= 1);  // the rank that was there first
  CHECK_FALSE(has_listeners());
}

TEST_CASE("whatever steps do, all ranks have the sums", "[reduce]") {
  const uint32_t seed = GENERATE(range(1u, 21u));
  const int32_t ranks = 2 + static_cast<int32_t>(seed % 3);
  constexpr int kSteps = 25;
  const Sizes sizes{5, 300, 40, 1, 64, 129, 16, 2};
  std::vector<std::vector<std::string>> seen(static_cast<size_t>(ranks));
  on_ranks(ranks, sizes, [&](int32_t rank, Replica& r) {
    std::mt19937 draw(seed);  // all ranks draw the same, for all
    std::vector<int> before(static_cast<size_t>(ranks), 0);
    for (int step = 0; step < kSteps; step++) {
      std::vector<double> sum(sizes.size(), 0);
      std::vector<bool> any(sizes.size(), false);
      const bool even = draw() % 2 == 0;
      r.zero_grad();
      double mine = 0;
      for (int32_t k = 0; k < ranks; k++) {
        const double weight = even ? 1.0 / ranks : (k + 1) / 8.0;
        std::vector<bool> uses(sizes.size());
        for (size_t i = 0; i < sizes.size(); i++) uses[i] = draw() % 8 != 0;
        // What adds to what there is before it is sent needs an operator, which this program has not.
        const int passes = before[static_cast<size_t>(k)] == 2 ? 1 : 1 + static_cast<int>(draw() % 4 == 0);
        before[static_cast<size_t>(k)] = passes;
        for (size_t i = 0; i < sizes.size(); i++)
          if (uses[i]) any[i] = true, sum[i] += weight * passes * static_cast<double>(step + k + static_cast<int>(i));
        if (k != rank) continue;
        mine = weight;
        r.reducer->set_sending(Weights{weight});
        for (int p = 0; p < passes; p++) r.pass(static_cast<float>(step + k), uses);
        r.reducer->set_sending(std::nullopt);
      }
      r.reducer->sum({mine});
      for (size_t i = 0; i < sizes.size(); i++) {
        need(static_cast<bool>(r.gradient(i)) == any[i], "a gradient where there is none, or none");
        if (!any[i]) continue;
        const float got = floats(*r.gradient(i))[0];
        need(std::abs(got - sum[i]) <= 1e-5 * (1 + std::abs(sum[i])),
             "step " + std::to_string(step) + ", parameter " + std::to_string(i) + ": " + r.seen(i));
        for (int64_t n = 0; n < sizes[i]; n++) {
          uint32_t bits;
          std::memcpy(&bits, floats(*r.gradient(i)) + n, sizeof bits);
          seen[static_cast<size_t>(rank)].push_back(std::to_string(bits));
        }
      }
    }
  });
  for (const auto& one : seen) CHECK(one == seen[0]);
}
