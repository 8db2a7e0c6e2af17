/* SPDX-License-Identifier: Apache-2.0
 * Built for a second major version of the interface. */
#include "common.h"

PG_EXPORT const pg_plugin pg_plugin_v2 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "wrong_major", "1.0.0", "ops", plain_open, no_iface,
    plain_close};
