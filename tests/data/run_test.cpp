// SPDX-License-Identifier: Apache-2.0
// Order, ends and errors of runs, whatever threads take part.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "base/profile.hpp"
#include "base/rng.hpp"
#include "data/cache.hpp"
#include "data/run.hpp"
#include "data/timed.hpp"
#include "sources.hpp"

using namespace perigee;

namespace {

std::atomic<int> closed{0};
std::atomic<int64_t> most_begun{0};

void answer(uint32_t function, Element in, Exchange& exchange) {
  if (function == 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return exchange.answer(std::move(in));
  }
  const double n = in.leaves[0].number;
  if ((function == 2 && n == 5) || (function == 6 && static_cast<int64_t>(n) % 3 == 0))
    return exchange.fail(n == 5 ? "five" : "a multiple of three");
  int64_t before = most_begun;
  while (before < static_cast<int64_t>(n) && !most_begun.compare_exchange_weak(before, static_cast<int64_t>(n))) {
  }
  if (function == 4) {  // of a filter: multiples of 3
    in.layout = parse_layout("B");
    in.leaves[0].number = static_cast<int64_t>(n) % 3 == 0;
  } else {
    in.leaves[0].number = function == 3 ? static_cast<double>(draw(4).seed) : 2 * n;
  }
  exchange.answer(std::move(in));
}

int32_t twice(uint32_t function, void* raw) {
  if (function == kWorkerEnds) return 0;
  auto& exchange = *static_cast<Exchange*>(raw);
  while (Element* element = exchange.take()) answer(function, std::move(*element), exchange);
  return 0;
}

std::shared_ptr<Workers> make_workers(size_t count) {
  auto made = std::make_shared<Workers>();
  for (size_t i = 0; i < count; i++) {
    made->list.push_back(std::make_unique<Worker>());
    made->list[i]->call = twice;
    made->list[i]->close = [](void*) { closed++; };
  }
  return made;
}

std::vector<double> all(Run& run) {
  std::vector<double> list;
  Element element;
  for (Step step = run.next(element); step != Step::end; step = run.next(element)) {
    if (step == Step::element) list.push_back(element.leaves[0].number);
  }
  return list;
}

bool threads_leave() {
  for (int i = 0; i < 500 && run_threads() > 0; i++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return run_threads() == 0;
}

}  // namespace

TEST_CASE("elements come in order with any number of threads") {
  const StageRef stage = map_stage(window_stage(range_stage(50), 40, 40, 1, 3), 1, 0, 1);
  for (size_t threads : {1u, 2u, 4u}) {
    Run run(stage, 1, {0, 3}, make_workers(threads));
    const auto list = all(run);
    REQUIRE(list.size() == 39);
    for (size_t i = 0; i < list.size(); i++) CHECK(list[i] == 2.0 * static_cast<double>(i + 4));
  }
  Run ahead(range_stage(100), 0, {3, 8}, nullptr);
  CHECK(all(ahead).size() == 100);
  CHECK(threads_leave());
}

TEST_CASE("profiles see what threads make, and begin and end while they do") {
  const StageRef stage = noted_stage(map_stage(range_stage(400), 1, 0, 1), "map", interned("train.lua:3"));
  uint64_t seen = 0;
  {
    Run run(stage, 1, {0, 3}, make_workers(2));
    Element element;
    for (int round = 0; round < 4; round++) {
      std::shared_ptr<ProfileSession> session = begin_profile(1024);
      for (int i = 0; i < 60;) i += run.next(element) == Step::element;
      uint64_t lost = 0;
      const std::vector<ProfileRecord> records = session->collect({}, lost);
      end_profile();
      CHECK(lost == 0);
      const std::vector<std::string> names = session->thread_names();
      for (const ProfileRecord& record : records) {
        seen += record.bytes;
        REQUIRE((record.kind == ProfileKind::stage && record.thread > 0 && record.thread < names.size()));
        CHECK((std::string(record.name) == "map" && std::string(record.origin) == "train.lua:3"));
        CHECK((record.begin >= session->begin_ns() && record.begin <= record.end));
      }
    }
  }
  CHECK((seen > 100 && seen <= 400));
  CHECK(threads_leave());
}

TEST_CASE("a run that is dropped leaves no thread and closes its workers") {
  closed = 0;
  most_begun = 0;
  {
    Run run(map_stage(range_stage(100000), 1, 0, 1), 0, {0, 4}, make_workers(2));
    Element element;
    while (run.next(element) == Step::waiting) {
    }
  }
  CHECK(threads_leave());
  CHECK(closed == 2);
  CHECK(most_begun <= 6);  // four ahead of the one that was taken
}

TEST_CASE("workers pass from a run that was left to the next") {
  const StageRef stage = map_stage(range_stage(40), 1, 0, 1);
  auto workers = make_workers(2);
  Run left(stage, 0, {0, 3}, workers);
  Element element;
  while (left.next(element) == Step::waiting) {
  }
  Run next(stage, 0, {0, 3}, workers);
  CHECK(all(next).size() == 40);
  CHECK(left.next(element) == Step::end);
}

TEST_CASE("an error comes in its turn, and again when asked again") {
  Run run(map_stage(range_stage(20), 2, 0, 1), 0, {0, 4}, make_workers(2));
  Element element;
  int count = 0;
  const auto take = [&] {
    Step step;
    while ((step = run.next(element)) == Step::waiting) {
    }
    count += step == Step::element;
  };
  for (int i = 0; i < 5; i++) take();
  CHECK_THROWS_WITH(take(), "five");
  CHECK_THROWS_WITH(take(), "five");
  CHECK(count == 5);
  while (!run.close()) {
  }
  CHECK(threads_leave());
}

TEST_CASE("what a worker draws depends on seed, epoch and element alone") {
  const auto draws = [](uint64_t seed, uint64_t epoch, size_t threads) {
    Run run(map_stage(range_stage(30), 3, seed, epoch), 0, {0, 4}, make_workers(threads));
    return all(run);
  };
  const auto one = draws(1, 1, 1);
  CHECK(one == draws(1, 1, 3));
  CHECK(one != draws(2, 1, 1));
  CHECK(one != draws(1, 2, 1));
  CHECK(std::set<double>(one.begin(), one.end()).size() == 30);
}

TEST_CASE("what a function fails of is left out, whatever the threads, and counted") {
  std::vector<double> expected;
  for (int n = 0; n < 100; n++) {
    if (n % 3 != 0) expected.push_back(2 * n);
  }
  for (size_t threads : {1u, 2u, 4u}) {
    for (uint32_t capacity : {1u, 4u, 64u}) {
      const auto skips = std::make_shared<Skips>("a test");
      const StageRef stage = map_or_skip_stage(range_stage(100), 6, 0, 1, skips);
      {
        Run run(stage, 0, {0, capacity}, make_workers(threads));
        CHECK(all(run) == expected);
      }
      CHECK(skips->count() == 34);
      REQUIRE(skips->message(33) != nullptr);
      CHECK(skips->message(34) == nullptr);
      CHECK(std::string(skips->message(0)).ends_with("a multiple of three"));
      Run again(repeat_stage(stage->again(), 2), 60, {0, capacity}, make_workers(threads));
      CHECK(all(again).size() == 72);  // 66 twice, less 60
      CHECK(skips->count() == 3 * 34);
    }
  }
}

TEST_CASE("filters give the same whatever the threads, also through buffers and again") {
  const auto make = [] {
    const StageRef filter = filter_stage(range_stage(100), 4, 0, 1);
    return repeat_stage(mix_stage(filter, 1, 1, 7), 3);
  };
  const auto run_all = [&](int64_t first, size_t threads) {
    Run run(make(), first, {0, 4}, make_workers(threads));
    return all(run);
  };
  const auto one = run_all(0, 1);
  REQUIRE(one.size() == 102);  // 34 of 100, three times
  CHECK(std::set<double>(one.begin(), one.end()).size() == 34);
  CHECK(std::vector<double>(one.begin(), one.begin() + 34) == std::vector<double>(one.begin() + 34, one.begin() + 68));
  for (size_t threads : {2u, 4u}) CHECK(run_all(0, threads) == one);
  CHECK(run_all(20, 3) == std::vector<double>(one.begin() + 20, one.end()));
  Run behind(make(), 103, {0, 4}, make_workers(2));
  CHECK_THROWS_WITH(all(behind), Catch::Contains("behind the end"));
  while (!behind.close()) {
  }
  CHECK(make()->count == kUnknown);
  Run part(window_stage(make(), 5, 5, 7, 3), 1, {0, 2}, make_workers(2));
  CHECK(all(part) == std::vector<double>{one[10], one[17], one[24], one[31]});
  CHECK(threads_leave());
}

TEST_CASE("a cache is filled by several threads, and by several runs at once") {
  const std::string path = std::filesystem::temp_directory_path() / ("run_test." + std::to_string(::getpid()));
  for (const bool in_file : {false, true}) {
    const CacheRef cache = in_file ? file_cache(path, "numbers") : memory_cache();
    const auto make = [&] { return cache_stage(filter_stage(range_stage(300), 4, 0, 1), cache); };
    Run one(make(), 0, {0, 8}, make_workers(3)), two(make(), 0, {0, 8}, make_workers(2));
    std::vector<double> first;
    Element element;
    for (int i = 0; i < 40;) {
      i += one.next(element) == Step::element;
      if (two.next(element) == Step::element) first.push_back(element.leaves[0].number);
    }
    CHECK(cache->count() == -1);
    const auto rest = all(two);
    first.insert(first.end(), rest.begin(), rest.end());
    REQUIRE(first.size() == 100);
    // A thread of the other run may have put an element there that it has not counted yet.
    for (int i = 0; i < 5000 && cache->count() < 0; i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(cache->count() == 100);
    CHECK(all(one).size() == 60);
    Run again(make(), 0, {3, 8}, nullptr);  // without workers: nothing is computed
    CHECK(all(again) == first);
  }
  CHECK(file_cache(path, "numbers")->count() == 100);
  CHECK_THROWS_WITH(file_cache(path, "others"), Catch::Contains("its stage 1 is numbers, here it is others"));
  std::filesystem::remove(path);
  CHECK(threads_leave());
}

TEST_CASE("an order through a buffer is that of draw_order") {
  for (int64_t buffer : {1, 3, 8, 100}) {
    std::vector<int64_t> order(20);
    draw_order(20, 5, 2, buffer, order.data());
    const StageRef mixed = mix_stage(range_stage(20), 5, 2, buffer);
    for (int64_t i = 0; i < 20; i++)
      CHECK(mixed->get(i).leaves[0].number == static_cast<double>(order[static_cast<size_t>(i)] - 1));
    CHECK(!mixed->get(20).layout);
  }
}

TEST_CASE("threads are fed by who takes the elements") {
  static const LayoutRef number = parse_layout("N");
  const auto serve = [](Feeds& feeds, int64_t count) {
    for (Feeds::Request request; feeds.next(request);) {
      Element made;
      if (request.position < count) {
        made = {number, std::vector<Leaf>(1)};
        made.leaves[0].number = static_cast<double>(request.position);
      }
      if (request.position == 1000) {
        feeds.fail(request, "a thousand");
      } else {
        feeds.answer(request, std::move(made));
      }
    }
  };
  for (int64_t count : {0, 1, 50, 5000}) {
    auto feeds = std::make_shared<Feeds>();
    const StageRef stage = map_stage(feed_stage(feeds, 0, kUnknown, true), 1, 0, 1);
    Run run(stage, 0, {0, 8}, make_workers(2), feeds);
    std::vector<double> list;
    Element element;
    std::string failure;
    try {
      for (Step step = run.next(element); step != Step::end; step = run.next(element)) {
        if (step == Step::asked) serve(*feeds, count);
        if (step == Step::element) list.push_back(element.leaves[0].number);
      }
    } catch (const std::exception& e) {
      failure = e.what();
    }
    while (!run.close()) {
    }
    REQUIRE(list.size() == static_cast<size_t>(std::min<int64_t>(count, 1000)));
    for (size_t i = 0; i < list.size(); i++) CHECK(list[i] == 2.0 * static_cast<double>(i));
    CHECK(failure == (count > 1000 ? "a thousand" : ""));
  }
  {  // left while threads wait for what nobody will make
    auto feeds = std::make_shared<Feeds>();
    Run run(filter_stage(feed_stage(feeds, 0, 100, false), 4, 0, 1), 0, {0, 8}, make_workers(3), feeds);
    Element element;
    while (run.next(element) != Step::asked) {
    }
  }
  CHECK(threads_leave());
}

TEST_CASE("a run that tunes itself grows where its consumer waits, within its limits") {
  std::vector<std::string> texts(400, std::string(1000, 'x'));
  Pace pace{1, 64, true, true, 20000};
  Run run(map_stage(texts_stage("t", texts), 5, 0, 1), 0, pace, make_workers(3));
  CHECK(run.state().threads == 1);
  Element element;
  for (int given = 0; given < 200;) given += run.next(element) == Step::element;
  const RunState hungry = run.state();
  CHECK(hungry.threads == 3);
  CHECK(hungry.element_bytes == 1000);
  CHECK(hungry.capacity > 2);
  CHECK(hungry.capacity <= 20);
  CHECK(hungry.starved > 0);
  CHECK(hungry.given == 200);
  for (int given = 0; given < 190;) {  // a consumer that is slower than one thread
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    given += run.next(element) == Step::element;
  }
  CHECK(run.state().threads < 3);
}

TEST_CASE("what stages take is measured") {
  auto times = std::make_shared<StageTimes>();
  auto inner = std::make_shared<StageTimes>();
  std::vector<std::string> texts(20, "x");
  const StageRef source = timed_stage(texts_stage("t", texts), inner);
  Run run(timed_stage(map_stage(source, 5, 0, 1), times), 0, {0, 4}, make_workers(2));
  Element element;
  for (Step step = run.next(element); step != Step::end; step = run.next(element)) {
  }
  CHECK(times->elements == 20);
  CHECK(inner->elements == 20);
  CHECK(times->own_ns > 20 * 1000000);  // a millisecond each, and more
  CHECK(inner->own_ns < times->own_ns);
}

TEST_CASE("layouts are checked") {
  CHECK(parse_layout("{s5:valueNi2;{}s1:xT}")->leaves == 2);
  for (const char* text : {"", "{", "{s5:val", "X", "{s1:xN}N", "{i3N}", "{s99999999999999999999:x"})
    CHECK_THROWS(parse_layout(text));
  CHECK_THROWS(parse_layout(std::string(200, '{')));
  std::string deep;
  for (int i = 0; i < 300; i++) deep += "{i1;";
  CHECK_THROWS(parse_layout(deep));
}

TEST_CASE("a run that is dropped is left between the elements that one is made of") {
  class Slow : public Stage {
   public:
    explicit Slow(bool one_by_one) : Stage({int64_t{1} << 40, one_by_one}) {}
    Element get(int64_t) const override {
      made++;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Element element{parse_layout("N"), std::vector<Leaf>(1)};
      return element;
    }
    mutable std::atomic<int64_t> made{0};
  };
  for (const int way : {0, 1, 2}) {
    const auto slow = std::make_shared<Slow>(way == 2);
    StageRef stage = batch_stage(slow, int64_t{1} << 20, false, PG_F32);  // takes a quarter of an hour
    if (way == 1) stage = batch_stage(mix_stage(slow, 1, 1, int64_t{1} << 20), 4, false, PG_F32);
    {
      Run run(stage, 0, {2, 2}, nullptr);
      while (slow->made < 3) std::this_thread::yield();
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (run_threads() > 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(run_threads() == 0);
  }
}
