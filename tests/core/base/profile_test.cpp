// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace perigee;

namespace {

// Notes for the life of a scope.
struct Noting {
  Profile profile;
  explicit Noting(uint64_t capacity) : profile(capacity) { ambient().profile = &profile; }
  ~Noting() { ambient().profile = nullptr; }
};

}  // namespace

TEST_CASE("a span is noted with its times and what is ambient") {
  ProfileSpan before;
  REQUIRE_FALSE(before.on());
  Noting noting(4);
  before.done(ProfileKind::op, "before", 0);  // began without a profile
  Scoped<const char*> origin(ambient().origin, "a.lua:1");
  ProfileSpan span;
  REQUIRE(span.on());
  span.done(ProfileKind::kernel, "exp", 2, 64, "float32 [4]");
  REQUIRE(noting.profile.count() == 1);
  const ProfileRecord& r = noting.profile.records()[0];
  CHECK(r.end >= r.begin);
  CHECK(std::string(r.name) == "exp");
  CHECK(std::string(r.origin) == "a.lua:1");
  CHECK(std::string(r.shapes) == "float32 [4]");
  CHECK((r.layer == nullptr && r.bytes == 64 && r.device == 2 && r.kind == ProfileKind::kernel));
}

TEST_CASE("the last records are kept, the oldest first") {
  Noting noting(3);  // four
  for (int i = 0; i < 10; i++) ProfileSpan().done(ProfileKind::op, "op", i);
  CHECK(noting.profile.lost() == 6);
  noting.profile.arrange();
  REQUIRE(noting.profile.count() == 4);
  for (int i = 0; i < 4; i++) CHECK(noting.profile.records()[i].device == 6 + i);
}

TEST_CASE("a span that outlives its profile is dropped") {
  auto noting = std::make_unique<Noting>(1);
  ProfileSpan span;
  noting.reset();
  span.done(ProfileKind::op, "late", 0);
  CHECK(ambient().profile == nullptr);
}

TEST_CASE("equal texts are one") {
  CHECK(interned("a") == interned(std::string("a")));
  CHECK(interned("a") != interned("b"));
}
