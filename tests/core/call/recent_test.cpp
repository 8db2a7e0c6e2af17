// SPDX-License-Identifier: Apache-2.0
// What a thread keeps of the signatures that it used lately.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <thread>

#include "call/signature.hpp"

using namespace perigee;

TEST_CASE("threads that come and go keep no more signatures than there are threads at a time") {
  const auto live_and_go = [] { std::thread([] { CHECK(recent_signature(SignatureKey{}, 0) == nullptr); }).join(); };
  for (int i = 0; i < 4; i++) live_and_go();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; i++) live_and_go();
  CHECK(mallinfo2().uordblks < before + 100 * 1024);
}
