// SPDX-License-Identifier: Apache-2.0
// How many elements are made at once: of quick ones several, for which threads then meet once.
#pragma once

#include <algorithm>
#include <cstdint>

namespace perigee {

class AtOnce {
 public:
  static constexpr int64_t kMost = 32;
  int64_t count(int64_t most) const { return std::min(count_, most); }
  // As many have taken so long.
  void took(int64_t count, int64_t ns) {
    if (ns > kMoment) {
      count_ = std::max<int64_t>(count * kMoment / ns, 1);
    } else if (count == count_ && ns < kMoment / 2) {
      count_ = std::min(2 * count_, kMost);
    }
  }

 private:
  static constexpr int64_t kMoment = 100000;  // ns: what a wait may be longer by, and memory held longer
  int64_t count_ = 1;
};

}  // namespace perigee
