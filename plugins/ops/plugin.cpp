// SPDX-License-Identifier: Apache-2.0
// The schemas of Perigee's operators. Each file declares its own; nothing is listed here.
#include "perigee/op.hpp"

PG_PLUGIN(pg::Provides<pg::OpTable>, "ops", "0.1.0", "ops");
