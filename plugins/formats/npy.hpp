// SPDX-License-Identifier: Apache-2.0
// The contents of a .npy file (NumPy's format, versions 1 to 3: numpy.lib.format), wherever they lie.
#pragma once

#include <functional>
#include <string>

#include "perigee/format.hpp"

namespace formats {

// Bytes that are read from first to last.
struct Source {
  std::string where;  // for messages
  uint64_t size;
  std::function<void(void* target, uint64_t bytes)> read;
};

void read_npy(const Source& source, const std::string& name, pg::Sink& sink);
// What stands before the data. Throws for dtypes that NumPy has not.
std::string npy_header(const pg::Item& item);

}  // namespace formats
