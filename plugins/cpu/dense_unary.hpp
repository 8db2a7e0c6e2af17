// SPDX-License-Identifier: Apache-2.0
// An elementwise function over a dense tensor of floats, in place and by threads: what kernels that have no place for
// it in their own loops do to their results.
#pragma once

#include "storage.hpp"

namespace cpu {

class DenseUnary {
 public:
  DenseUnary(Primitive op, uint32_t dtype);
  void run(void* data, int64_t count) const;

 private:
  Storage storage_, wide_;  // the function's own type; converted in blocks where they differ
  UnaryFn function_;
};

}  // namespace cpu
