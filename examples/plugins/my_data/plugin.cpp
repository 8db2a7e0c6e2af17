// SPDX-License-Identifier: Apache-2.0
// The plugin: the sum of what the other files register.
#include <perigee/data.hpp>

PG_PLUGIN(pg::Provides<pg::DataTable>, "my_data", "1.0.0", "data");
