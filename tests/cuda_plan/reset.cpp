// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"
#include "standin.hpp"

void test::reset() { standin::reset(); }
