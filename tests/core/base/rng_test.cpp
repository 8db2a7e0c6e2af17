// SPDX-License-Identifier: Apache-2.0
// The generator's state: what is handed out never overlaps, and a failed call gives its share back.
#include "base/rng.hpp"

#include <catch2/catch.hpp>

using namespace perigee;

TEST_CASE("draws follow each other", "[rng]") {
  manual_seed(7);
  RngState a = draw(10), b = draw(0), c = draw(5);
  CHECK(a.seed == 7);
  CHECK(a.offset == 0);
  CHECK(b.offset >= 10);
  CHECK(c.offset > b.offset);
}

TEST_CASE("the last draw can be given back, an earlier one cannot", "[rng]") {
  manual_seed(7);
  RngState a = draw(10);
  undo_draw(10, a);
  CHECK(rng_state().offset == a.offset);
  a = draw(10);
  draw(3);
  uint64_t before = rng_state().offset;
  undo_draw(10, a);
  CHECK(rng_state().offset == before);
}

TEST_CASE("a saved state draws the same again", "[rng]") {
  manual_seed(1);
  draw(100);
  RngState saved = rng_state();
  RngState first = draw(4);
  set_rng_state(saved);
  RngState second = draw(4);
  CHECK(first.offset == second.offset);
  CHECK(first.seed == second.seed);
}
