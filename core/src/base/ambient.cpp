// SPDX-License-Identifier: Apache-2.0
#include "base/ambient.hpp"

namespace perigee {

constinit thread_local Ambient thread_ambient;

}  // namespace perigee
