// SPDX-License-Identifier: Apache-2.0
// One run through everything that a device offers, in which any call may fail.
#pragma once

#include <string>
#include <vector>

#include "../contract/host.hpp"

namespace scenario {

struct Failure {
  std::string step;
  contract::Code code;
};

struct Outcome {
  std::vector<Failure> failures;                       // what table calls answered
  std::vector<std::string> warnings;                   // what was logged
  bool opened = false, closed = false, right = false;  // `right`: the results, where nothing failed
  std::string text() const;
};

// Opens the plugin, uses `devices` of its devices, puts away what it made, closes it.
Outcome run(uint32_t devices);

}  // namespace scenario
