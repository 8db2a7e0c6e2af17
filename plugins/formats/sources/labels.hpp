// SPDX-License-Identifier: Apache-2.0
// Labels of ten classes.
#pragma once

#include <string>

#include "perigee/format.hpp"

namespace formats {

inline void check_class(const std::string& path, unsigned char label) {
  if (label > 9) pg::fail_data(path, pg::format("a label is %d; there are ten classes, 0 to 9", label));
}

}  // namespace formats
