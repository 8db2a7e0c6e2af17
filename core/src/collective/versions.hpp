// SPDX-License-Identifier: Apache-2.0
// Whether processes that work together run the same Perigee and the same versions of plugins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace perigee {

constexpr size_t kVersionsLength = 4096;  // bytes that a rank sends

// "perigee 0.1.0\ncpu 0.1.0\n": this library, and every plugin that is loaded or could be; at most kVersionsLength - 1
// bytes of whole lines.
std::string own_versions();

// What differs between what ranks have said, of something that two of them have; "" for nothing. A plugin that some
// have not is no difference: who needs it says so. `ranks`: their numbers in messages.
std::string versions_that_differ(const std::vector<std::string>& said, const std::vector<int32_t>& ranks);

}  // namespace perigee
