// SPDX-License-Identifier: Apache-2.0
// Quick elements are made several at a time: their order, errors, ends and memory are as if they were made one by one.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/rng.hpp"
#include "data/at_once.hpp"
#include "data/run.hpp"
#include "data/timed.hpp"
#include "sources.hpp"

using namespace perigee;

namespace {

constexpr double kBad = 701;  // odd, unlike what is doubled
std::atomic<size_t> most_at_once{0};

// 1: doubled, but that kBad fails; 2: what is drawn for it; 3: as 1, but that all are taken before the first answer.
int32_t serve(uint32_t function, void* raw) {
  if (function == kWorkerEnds) return 0;
  auto& exchange = *static_cast<Exchange*>(raw);
  std::vector<Element> taken;
  std::vector<double> drawn;
  size_t all = 0;
  const auto answer = [&](Element in, double draw) {
    double& number = in.leaves[0].number;
    if (function != 2 && number == kBad) return exchange.fail("bad");
    number = function == 2 ? draw : 2 * number;
    exchange.answer(std::move(in));
  };
  for (Element* element = exchange.take(); element != nullptr; element = exchange.take(), all++) {
    const auto draw = static_cast<double>(perigee::draw(1).seed % 1000003);
    if (function == 3) {
      taken.push_back(std::move(*element));
    } else {
      answer(std::move(*element), draw);
    }
  }
  for (Element& element : taken) answer(std::move(element), 0);
  size_t before = most_at_once;
  while (before < all && !most_at_once.compare_exchange_weak(before, all)) {
  }
  return 0;
}

std::shared_ptr<Workers> crew(size_t count) {
  auto made = std::make_shared<Workers>();
  for (size_t i = 0; i < count; i++) {
    made->list.push_back(std::make_unique<Worker>());
    made->list[i]->call = serve;
    made->list[i]->close = [](void*) {};
  }
  return made;
}

// The numbers of a run, and what it failed with.
std::vector<double> numbers(Run& run, std::string& failure) {
  std::vector<double> list;
  Element element;
  try {
    for (Step step = run.next(element); step != Step::end; step = run.next(element)) {
      if (step == Step::element) list.push_back(element.leaves[0].number);
    }
  } catch (const std::exception& e) {
    failure = e.what();
  }
  while (!run.close()) {
  }
  return list;
}

}  // namespace

TEST_CASE("quick elements are made several at a time, slow ones one by one") {
  AtOnce at_once;
  CHECK(at_once.count(100) == 1);
  for (int i = 0; i < 20; i++) {
    const int64_t many = at_once.count(100);
    at_once.took(many, many * 1000);
  }
  CHECK(at_once.count(100) == AtOnce::kMost);
  CHECK(at_once.count(3) == 3);
  at_once.took(3, 3000);  // fewer than there could be: that says nothing
  CHECK(at_once.count(100) == AtOnce::kMost);
  at_once.took(AtOnce::kMost, AtOnce::kMost * 50000);
  CHECK(at_once.count(100) == 2);
  at_once.took(2, 10000000);
  CHECK(at_once.count(100) == 1);
}

TEST_CASE("elements made several at a time come in order, from any position on") {
  for (const uint32_t function : {1u, 3u}) {
    most_at_once = 0;
    for (const size_t threads : {1u, 3u}) {
      for (const int64_t first : {0, 333}) {
        const StageRef stage =
            map_stage(map_stage(window_stage(range_stage(400), 600, 400, 1, 0), 1, 0, 1), function, 0, 1);
        Run run(stage, first, {0, 128}, crew(threads));
        std::string failure;
        const auto list = numbers(run, failure);
        CHECK(failure.empty());
        REQUIRE(list.size() == static_cast<size_t>(600 - first));
        for (size_t i = 0; i < list.size(); i++) {
          const auto position = static_cast<int64_t>(i) + first;
          CHECK(list[i] == 4 * static_cast<double>(position % 400));
        }
      }
    }
    CHECK(most_at_once > 1);
    CHECK(most_at_once <= AtOnce::kMost);
  }
}

TEST_CASE("an error among several elements comes in its turn") {
  for (const uint32_t function : {1u, 3u}) {
    for (const size_t threads : {1u, 3u}) {
      Run run(map_stage(range_stage(1000), function, 0, 1), 0, {0, 128}, crew(threads));
      std::string failure;
      CHECK(numbers(run, failure).size() == static_cast<size_t>(kBad));
      CHECK(failure == "bad");
      const auto skips = std::make_shared<Skips>("a test");
      Run rest(map_or_skip_stage(range_stage(1000), function, 0, 1, skips), 0, {0, 128}, crew(threads));
      failure.clear();
      CHECK(numbers(rest, failure).size() == 999);
      CHECK(failure.empty());
      CHECK(skips->count() == 1);
    }
  }
}

TEST_CASE("an error inside of a batch of quick elements fails that batch alone") {
  const StageRef batches = batch_stage(map_stage(range_stage(1000), 3, 0, 1), 50, false, PG_F64);
  Run run(batches, 0, {0, 4}, crew(2));
  Element element;
  int64_t given = 0;
  std::string failure;
  try {
    for (Step step = run.next(element); step != Step::end; step = run.next(element)) given += step == Step::element;
  } catch (const std::exception& e) {
    failure = e.what();
  }
  CHECK(given == static_cast<int64_t>(kBad) / 50);
  CHECK(failure == "bad");
  while (!run.close()) {
  }
}

TEST_CASE("draws are an element's own, however many are made at once") {
  const auto draws = [](size_t threads, uint32_t capacity) {
    Run run(map_stage(range_stage(500), 2, 3, 1), 0, {0, capacity}, crew(threads));
    std::string failure;
    return numbers(run, failure);
  };
  const auto one = draws(1, 1);
  REQUIRE(one.size() == 500);
  CHECK(one == draws(1, 128));
  CHECK(one == draws(3, 128));
  CHECK(std::adjacent_find(one.begin(), one.end()) == one.end());
}

TEST_CASE("a run of several elements is left between two of them") {
  class Slower : public Stage {  // quick at first
   public:
    Slower() : Stage({int64_t{1} << 40}), layout_(parse_layout("N")) {}
    Element get(int64_t i) const override {
      if (i >= 256) {
        slow++;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return {layout_, std::vector<Leaf>(1)};
    }
    mutable std::atomic<int> slow{0};

   private:
    const LayoutRef layout_;
  };
  const auto slower = std::make_shared<Slower>();
  {
    Run run(slower, 0, {1, 512}, nullptr);
    while (slower->slow == 0) std::this_thread::yield();
  }
  const int began = slower->slow;  // the thread may be at one more
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (run_threads() > 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(run_threads() == 0);
  CHECK(slower->slow <= began + 2);
}

TEST_CASE("elements made several at a time are counted one by one") {
  auto times = std::make_shared<StageTimes>();
  Run run(timed_stage(map_stage(range_stage(1000), 1, 0, 1), times), 0, {0, 128}, crew(2));
  std::string failure;
  CHECK(numbers(run, failure).size() == static_cast<size_t>(kBad));
  CHECK(times->elements >= static_cast<int64_t>(kBad));
  CHECK(times->elements <= 999);  // all but the one that failed
}
