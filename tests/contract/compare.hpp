// SPDX-License-Identifier: Apache-2.0
// A kernel against the definition of its operator: the reference plugin (sim) computes the same call in float64.
#pragma once

#include <memory>

#include "random.hpp"

namespace contract {

// How far results may be from the reference, relative to its largest element: by the dtype of the result.
double tolerance(uint32_t dtype);

// How to compare. Random operators draw the same bits in their own dtype; so do integers.
enum class Precision { kFloat64, kExact };

// The plugin with the definitions; where it is the one under test, it is its own reference in another dtype.
class Reference {
 public:
  explicit Reference(Plugin& subject);
  Plugin& operator*() { return own_ == nullptr ? subject_ : *own_; }

 private:
  Plugin& subject_;
  std::unique_ptr<Plugin> own_;
};

struct Report {
  int compared = 0, refused = 0;
};

// Runs the call on both and compares all outputs and kept inputs; then, where the kernel can spare hidden outputs, runs
// it without them, which must give the same; then, where the device can capture, as a plan, likewise. A refusal counts:
// it must have a reason.
void compare(Plugin& subject, Plugin& reference, const Call& call, Report& report,
             Precision precision = Precision::kFloat64, double slack = 1);

}  // namespace contract
