// SPDX-License-Identifier: Apache-2.0
// Grids: every item has a thread, no limit of the hardware is passed, and nothing is launched for nothing.
#include "grid.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "units.hpp"

using namespace cuda;

TEST_CASE("divide_up rounds up, and does not overflow") {
  CHECK(divide_up(0, 256) == 0);
  CHECK(divide_up(1, 256) == 1);
  CHECK(divide_up(256, 256) == 1);
  CHECK(divide_up(257, 256) == 2);
  CHECK(divide_up(std::numeric_limits<int64_t>::max(), 2) == (int64_t{1} << 62));
  CHECK(divide_up(std::numeric_limits<int64_t>::max(), 1) == std::numeric_limits<int64_t>::max());
}

TEST_CASE("a grid covers every item once, in strides of the grid") {
  for (uint32_t threads : {32u, 128u, 256u, 1024u}) {
    for (int64_t per_thread : {1, 4, 8}) {
      for (int64_t base : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{256}, int64_t{65536}, kMaxBlocks * 256,
                           int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62}) {
        for (int64_t count : {base - 1, base, base + 1}) {
          if (count < 0) continue;
          CAPTURE(threads, per_thread, count);
          Grid grid = grid_for(count, per_thread, threads);
          CHECK(grid.threads == threads);
          CHECK(grid.y == 1);
          CHECK(grid.z == 1);
          CHECK(grid.x <= kMaxBlocks);
          CHECK((grid.x == 0) == (count == 0));
          int64_t at_once = int64_t{grid.x} * threads * per_thread;
          if (grid.x < kMaxBlocks) {
            CHECK(at_once >= count);
            CHECK(at_once - int64_t{threads} * per_thread < count + (count == 0));
          }
        }
      }
    }
  }
}

TEST_CASE("limits are the hardware's") {
  CHECK(kMaxBlocks <= std::numeric_limits<int32_t>::max());  // gridDim.x
  CHECK(kMaxBlocksY == 65535);                               // gridDim.y and z
  // A 32-bit index that walks on by the whole grid from below 2^31 stays below 2^32.
  CHECK((int64_t{1} << 31) + kMaxBlocks * 1024 < (int64_t{1} << 32));
}

TEST_CASE("the widest unit that divides sizes, strides and addresses") {
  CHECK(unit_of(0) == 16);
  CHECK(unit_of(16) == 16);
  CHECK(unit_of(48 | 8) == 8);
  CHECK(unit_of(12) == 4);
  CHECK(unit_of(6) == 2);
  CHECK(unit_of(7) == 1);
  CHECK(unit_of((uint64_t{1} << 63) | 4) == 4);
}
