// SPDX-License-Identifier: Apache-2.0
#include "base/profile.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>

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

TEST_CASE("threads that help note for the session that is under way, and for no other") {
  ProfileHelper here("helper");
  here.look();
  CHECK(ambient().profile == nullptr);
  std::shared_ptr<ProfileSession> session = begin_profile(64);
  CHECK_THROWS_WITH(begin_profile(1), "a profile is under way");
  ambient().profile = &session->first();
  ProfileSpan().done(ProfileKind::op, "mine", 0);
  std::thread([] {
    ProfileHelper helper("helper");
    helper.look();
    helper.look();
    for (int i = 0; i < 100; i++) ProfileSpan().done(ProfileKind::stage, "theirs", -1);
  }).join();
  ambient().profile = nullptr;
  end_profile();
  ProfileRecord told{};
  told.begin = monotonic_ns();
  told.end = told.begin + 1;
  told.thread = kProfileDevice;
  uint64_t lost = 0;
  std::vector<ProfileRecord> all = session->collect({told}, lost);
  CHECK(lost == 84);  // of its quarter, 16
  REQUIRE(all.size() == 1 + 16 + 1);
  CHECK(session->thread_names() == std::vector<std::string>{"script", "helper 1"});
  for (size_t i = 0; i < all.size(); i++) {
    CHECK((all[i].end >= all[i].begin && all[i].begin >= session->begin_ns()));
    if (i > 0) CHECK(all[i].end >= all[i - 1].end);
  }
  CHECK(std::string(all[0].name) == "mine");
  CHECK((all[0].thread == 0 && all[1].thread == 1 && all.back().thread == kProfileDevice));
}

TEST_CASE("a thread that goes on after the end of a session notes nothing more") {
  std::shared_ptr<ProfileSession> session = begin_profile(16);
  {
    ProfileHelper helper("helper");
    helper.look();
    end_profile();
    uint64_t lost = 0;
    CHECK(session->collect({}, lost).empty());
    ProfileSpan().done(ProfileKind::stage, "late", -1);
    CHECK(session->collect({}, lost).empty());
    helper.look();
    CHECK(ambient().profile == nullptr);
  }
  CHECK(ambient().profile == nullptr);
}
