// SPDX-License-Identifier: Apache-2.0
// What some layers apply to their result in the same pass.
#pragma once

#include <cstdint>

namespace pg {

struct Activation {
  enum : int32_t { kNone, kRelu };
  static constexpr const char* kNames[] = {"none", "relu"};
};

}  // namespace pg
