// SPDX-License-Identifier: Apache-2.0
// The plugin "formats": each other file registers one format, or one codec of pictures.
#include "perigee/data.hpp"
#include "perigee/format.hpp"

using Formats = pg::Provides<pg::FormatTable, pg::DataTable>;
PG_PLUGIN(Formats, "formats", "0.1.0", "formats,data");
