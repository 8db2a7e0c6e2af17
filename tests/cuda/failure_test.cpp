// SPDX-License-Identifier: Apache-2.0
// Every call that the plugin makes into the runtime fails once, in each of its places: each failure is told with the
// call's name, nothing is leaked, and the next run works.
#include <catch2/catch.hpp>
#include <map>

#include "scenario.hpp"
#include "standin.hpp"

namespace {

using scenario::Outcome;

constexpr uint32_t kDevices = 1;

struct Clean {  // the stand-in as it was, before and after
  Clean() { standin::reset(); }
  ~Clean() { standin::reset(); }
};

// The calls of a run without failures.
std::map<std::string, uint64_t> calls_of_a_run() {
  standin::forget_calls();
  Outcome outcome = scenario::run(kDevices);
  INFO(outcome.text());
  REQUIRE(outcome.right);
  REQUIRE(outcome.closed);
  REQUIRE(standin::live() == standin::Live{});
  auto calls = standin::calls();
  // Answers about the thread's own state, which cannot fail in CUDA.
  for (const char* name : {"cudaGetLastError", "cudaGetErrorName", "cudaGetErrorString"}) calls.erase(name);
  return calls;
}

bool is_told(const Outcome& outcome, const std::string& call) {
  // Here a launch is the emulator's.
  const char* written = call == "cudaLaunchKernel" ? "emulator::launch" : call.c_str();
  return outcome.text().find(written) != std::string::npos;
}

// What puts things away keeps them when it fails, here as in CUDA.
bool keeps_when_it_fails(const std::string& call) {
  return call.find("Destroy") != std::string::npos || call.find("Free") != std::string::npos;
}

}  // namespace

TEST_CASE("A run without failures leaves nothing") {
  Clean clean;
  calls_of_a_run();
}

TEST_CASE("Each call fails once with an error that passes") {
  Clean clean;
  std::map<std::string, std::string> quiet;
  for (const auto& [name, count] : calls_of_a_run()) {
    for (uint64_t nth = 1; nth <= count; nth++) {
      standin::fail(name, nth, cudaErrorUnknown);
      Outcome outcome = scenario::run(kDevices);
      INFO(name << " " << nth << " of " << count << "\n" << outcome.text());
      if (!is_told(outcome, name)) quiet[name] = outcome.text();
      for (const scenario::Failure& failure : outcome.failures) {
        CHECK(!failure.code.message().empty());
        CHECK((failure.code.error.flags & PG_ERROR_DEVICE_LOST) == 0);
      }
      if (outcome.opened) CHECK(outcome.closed);
      if (!keeps_when_it_fails(name)) CHECK(standin::live() == standin::Live{});
      standin::forget();
    }
  }
  for (const auto& [name, text] : quiet) {
    INFO(name << " failed and nobody was told: " << text);
    // Their failure changes an explanation only, or has another answer.
    CHECK((name == "cudaDriverGetVersion" || name == "cudaRuntimeGetVersion"));
  }
  calls_of_a_run();
}

TEST_CASE("Each call fails once with the loss of the device") {
  Clean clean;
  for (const auto& [name, count] : calls_of_a_run()) {
    for (uint64_t nth = 1; nth <= count; nth++) {
      standin::fail(name, nth, cudaErrorIllegalAddress);
      Outcome outcome = scenario::run(kDevices);
      INFO(name << " " << nth << " of " << count << "\n" << outcome.text());
      CHECK((!outcome.failures.empty() || !outcome.warnings.empty()));
      // The libraries say no more than that they failed; who asked them is told of the loss at once.
      bool vendor = name.rfind("cublas", 0) == 0 || name.rfind("cudnn", 0) == 0;
      if (vendor && !outcome.failures.empty()) {
        CHECK((outcome.failures[0].code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
      }
      if (outcome.opened) CHECK(outcome.closed);
      standin::forget();
    }
  }
  standin::reset();
  calls_of_a_run();
}

TEST_CASE("Work that fails on the device is told by who waits for it") {
  Clean clean;
  for (const char* what : {"kernel", "copy"}) {
    standin::fail(what, 1, cudaErrorIllegalAddress);
    Outcome outcome = scenario::run(kDevices);
    INFO(what << "\n" << outcome.text());
    REQUIRE(!outcome.failures.empty());
    CHECK((outcome.failures[0].code.error.flags & PG_ERROR_DEVICE_LOST) != 0);
    CHECK_THAT(outcome.failures[0].code.message(), Catch::Contains("illegal memory access"));
    CHECK(outcome.closed);
    CHECK(standin::live() == standin::Live{});
    standin::reset();
  }
}

TEST_CASE("A hundred times") {
  Clean clean;
  for (int i = 0; i < 100; i++) {
    Outcome outcome = scenario::run(kDevices);
    REQUIRE(outcome.right);
    REQUIRE(outcome.closed);
  }
  CHECK(standin::live() == standin::Live{});
}
