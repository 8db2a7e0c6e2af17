// SPDX-License-Identifier: Apache-2.0
// The plugin "formats": each other file registers one format.
#include "perigee/format.hpp"

PG_PLUGIN(pg::Provides<pg::FormatTable>, "formats", "0.1.0", "formats");
