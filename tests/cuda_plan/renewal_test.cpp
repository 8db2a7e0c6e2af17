// SPDX-License-Identifier: Apache-2.0
// Numbers of captured launches on the host's side (runtime_block.hpp): what a kernel asks for, what it writes, and that
// other work than was captured is refused. Nothing is launched.
#include <catch2/catch.hpp>
#include <vector>

#include "kernel.hpp"

namespace {

struct Numbers {
  int op = 0;
  double factor = 0, term = 0;
};
void once() {}
void twice() {}

// Run-time attributes: how often, of which operator, by which factor.
struct Attrs {
  int64_t times, op;
  double factor;
};

struct Scale final : cuda::Kernel {
  bool renewing = true;
  int launched = 0;
  std::vector<const Numbers*> places;
  bool renews() const override { return renewing; }
  void run(const cuda::Launch& launch) override {
    const Attrs& attrs = *static_cast<const Attrs*>(launch.raw.attrs);
    for (int64_t i = 0; i < attrs.times; i++) {
      Numbers f{static_cast<int>(attrs.op), attrs.factor, static_cast<double>(i)};
      const Numbers* at = nullptr;
      if (cuda::is_renewed(f, at)) places.push_back(at);
      if (cuda::is_dry(reinterpret_cast<const void*>(attrs.times == 1 ? &once : &twice), 7)) continue;
      launched++;
    }
  }
};

pg_launch call_of(const Attrs& attrs) {
  pg_launch launch{};
  launch.attrs = &attrs;
  return launch;
}
uint64_t runtime(Scale& kernel, const Attrs& attrs, void* image) { return kernel.runtime(call_of(attrs), image); }

constexpr uint64_t kHead = sizeof(cuda::BlockHead), kEach = 32;

Numbers read(const std::vector<char>& image, uint64_t i) {
  Numbers found;
  std::memcpy(&found, image.data() + kHead + i * kEach, sizeof found);
  return found;
}

}  // namespace

TEST_CASE("what a captured launch reads is written as its launch would be given it") {
  Scale kernel;
  CHECK(runtime(kernel, {2, 1, 0.5}, nullptr) == kHead + 2 * kEach);
  std::vector<char> image(kHead + 2 * kEach);
  for (double factor : {0.5, 0.25}) {
    CHECK(runtime(kernel, {2, 1, factor}, image.data()) == image.size());
    for (uint64_t i : {0u, 1u}) {
      CHECK(read(image, i).factor == factor);
      CHECK(read(image, i).term == static_cast<double>(i));
    }
  }
  CHECK(kernel.launched == 0);
  CHECK(cuda::runtime_block == nullptr);
}

TEST_CASE("a captured launch finds its numbers where they are written, in order") {
  Scale kernel;
  const Attrs attrs{2, 1, 0.5};
  kernel.launch_captured(call_of(attrs), {4096, 64});
  REQUIRE(kernel.launched == 2);
  for (uint64_t i : {0u, 1u}) CHECK(reinterpret_cast<uint64_t>(kernel.places[i]) == 4096 + 64 + kHead + i * kEach);
  kernel.places.clear();
  kernel.launch_captured(call_of(attrs), {0, 0});  // none of its attributes are of run time
  CHECK(kernel.launched == 4);
  CHECK(kernel.places.empty());
}

TEST_CASE("numbers that want other work than was captured are refused, and nothing beyond the block is written") {
  Scale kernel;
  std::vector<char> image(kHead + kEach + 8, '\0');
  std::fill(image.end() - 8, image.end(), '#');
  runtime(kernel, {1, 1, 0.5}, image.data());
  for (const Attrs& other : {Attrs{2, 1, 0.5}, Attrs{1, 2, 0.5}, Attrs{0, 1, 0.5}}) {
    try {
      runtime(kernel, other, image.data());
      FAIL("it is not refused");
    } catch (const pg::Error& e) {
      CHECK(e.code == PG_E_FAILED_PRECONDITION);
    }
    CHECK(std::string(image.end() - 8, image.end()) == "########");
  }
  runtime(kernel, {1, 1, 0.75}, image.data());
  CHECK(read(image, 0).factor == 0.75);
}

TEST_CASE("a kernel that does not renew its numbers keeps them") {
  Scale kernel;
  kernel.renewing = false;
  CHECK(runtime(kernel, {2, 1, 0.5}, nullptr) == 0);
}

TEST_CASE("what is launched inside of such a launch may leave the block alone") {
  cuda::RuntimeBlock block;
  cuda::InBlock in(&block);
  CHECK_THROWS_AS(cuda::refuse_renewal(), pg::Error);
  {
    cuda::InBlock none(nullptr);
    const Numbers* at = nullptr;
    CHECK(!cuda::is_renewed(Numbers{}, at));
    CHECK(!cuda::is_dry(nullptr, 1));
    cuda::refuse_renewal();
  }
  CHECK(cuda::runtime_block == &block);
}
