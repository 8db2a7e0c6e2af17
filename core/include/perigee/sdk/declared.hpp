// SPDX-License-Identifier: Apache-2.0
// What a plugin's initialisers declare, in the order that they ran. For the sources beside it.
#pragma once

#include <vector>

namespace pg {

// Of internal linkage: plugins that export their symbols would share one list.
template <class Info>
static std::vector<const Info*>& declared() {
  static auto* entries = new std::vector<const Info*>();  // never destroyed: tables point into it
  return *entries;
}

}  // namespace pg
