// SPDX-License-Identifier: Apache-2.0
// A step that must not happen where a flag on the device is true, without anybody waiting for the flag: the host hands
// it to the operators that write (PG_INPUT_CONDITION). Operators that cannot look at it are decided here, which waits.
#pragma once

#include <vector>

#include "builder/builder.hpp"
#include "tape/tape.hpp"

namespace perigee {

struct Condition {
  TensorRef skip;                    // [] bool
  std::vector<TensorRef> elsewhere;  // its copies on other devices
  int known = -1;                    // what it holds, once somebody had to wait for it

  explicit Condition(TensorRef flag);
  bool read();
  Tensor& on(Device& device);
};

// Applies the condition in force to a call that writes. Answers true when the call was dropped, and then `outputs` hold
// what it would have written into, as it was; otherwise `inputs` may have become longer by the flag.
bool apply_condition(const Op& op, SmallVector<Tensor*, 8>& inputs, const void* attrs, uint32_t flags,
                     TensorRef* outputs, uint32_t output_count);

}  // namespace perigee
