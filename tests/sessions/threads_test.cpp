// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>

#include "fixture.hpp"

namespace {

constexpr int kThreads = 4, kRuns = 60;

// body(thread) on each; the first message of what failed there, "" if nothing did.
std::string on_threads(const std::function<void(int)>& body) {
  std::vector<std::string> problems(kThreads);
  std::vector<std::thread> threads;
  std::atomic<int> ready{0};
  for (int i = 0; i < kThreads; i++)
    threads.emplace_back([&, i] {
      ready++;
      while (ready < kThreads) std::this_thread::yield();
      try {
        body(i);
      } catch (const std::exception& problem) {
        problems[static_cast<size_t>(i)] = problem.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems)
    if (!problem.empty()) return problem;
  return "";
}

void need(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

TEST_CASE("threads that run one session get what they fed, whatever the others do") {
  start();
  const Recorded r = record(16, 3);
  const Session session = session_of(r);
  REQUIRE(on_threads([&](int thread) {
            for (int i = 0; i < kRuns; i++) {
              const int64_t rows = 1 + (thread + i) % 5;  // sizes of a run are that run's
              const float value = static_cast<float>(thread * 100 + i);
              const std::vector<float> got = values_of(run(session, r.y, r, filled(rows, 16, value)));
              need(got.size() == static_cast<size_t>(rows * 16), "the shape is another run's");
              for (float v : got) need(std::abs(v - value) <= 1e-3f, "the numbers are another run's");
            }
          }) == "");
}

TEST_CASE("updates of several threads are each made once, and reads see one state") {
  start();
  const Recorded r = record(8, 1);
  const Session session = session_of(r);
  REQUIRE(on_threads([&](int thread) {
            float last = 0;
            for (int i = 0; i < kRuns; i++) {
              if (thread % 2 == 0) {
                run(session, r.train, r, nullptr);
                continue;
              }
              const std::vector<float> got = values_of(run(session, r.y, r, filled(2, 8, 0)));
              for (float v : got) need(v == got[0], "an update came in the middle of a run");
              need(got[0] >= last, "an update was lost");
              last = got[0];
            }
          }) == "");
  REQUIRE(steps_of(session) == kThreads / 2 * kRuns);
}

TEST_CASE("runs that fail leave the others alone; messages are the thread's own") {
  start();
  const Recorded r = record(8, 2);
  const Session session = session_of(r);
  REQUIRE(on_threads([&](int thread) {
            for (int i = 0; i < kRuns; i++) {
              if (thread % 2 == 0) {
                need(values_of(run(session, r.y, r, filled(3, 8, 2)))[0] == 2, "the numbers are others");
                continue;
              }
              std::string message;
              try {
                run(session, r.y, r, filled(3, 7, 2));
              } catch (const std::exception& problem) {
                message = problem.what();
              }
              need(message.find("[3, 7]") != std::string::npos, "the message is not of this run");
            }
          }) == "");
}

TEST_CASE("while threads run a session others assign, look, and make sessions of the graph") {
  start();
  const Recorded r = record(8, 1);
  const Session session = session_of(r);
  const Tensor zero = filled(1, 1, 0);
  REQUIRE(on_threads([&](int thread) {
            for (int i = 0; i < kRuns; i++) {
              if (thread == 0) {
                check(pgc_session_assign(session.get(), r.steps.get(), zero.get()));
              } else if (thread == 1) {
                need(steps_of(session) >= 0, "what a variable holds is no state of it");
              } else if (thread == 2) {
                const Session own = session_of(r);
                run(own, r.train, r, nullptr);
                need(steps_of(own) == 1, "a session has another one's variables");
              } else {
                run(session, r.train, r, nullptr);
              }
            }
          }) == "");
}

TEST_CASE("large products of several threads do not share what they compute with") {
  start();
  const Recorded r = record(256, 2);
  const Session session = session_of(r);
  REQUIRE(on_threads([&](int thread) {
            for (int i = 0; i < kRuns; i++) {
              const float value = static_cast<float>(1 + thread);
              for (float v : values_of(run(session, r.y, r, filled(64, 256, value))))
                need(std::abs(v - value) <= 1e-3f, "the numbers are another run's");
            }
          }) == "");
}
