/* SPDX-License-Identifier: Apache-2.0
 * Needs a function that nobody defines: must fail at load, not kill the process at the first call. */
#include "common.h"

int32_t nobody_defines_this(const pg_host* host, void** self, pg_error* error);

static int32_t open_it(const pg_host* host, void** self, pg_error* error) {
  return nobody_defines_this(host, self, error);
}

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "undefined_symbol", "1.0.0", "ops", open_it, no_iface,
    plain_close};
