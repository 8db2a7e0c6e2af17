// SPDX-License-Identifier: Apache-2.0
// Breaks the promise that no exception leaves a function of a table.
#include <stdexcept>

extern "C" {
#include "common.h"

static int32_t open_and_throw(const pg_host*, void**, pg_error*) {
  throw std::runtime_error("the licence has run out");
}

PG_EXPORT extern const pg_plugin pg_plugin_v1;
const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "throws_in_open", "1.0.0", "ops", open_and_throw, no_iface,
    plain_close};
}
