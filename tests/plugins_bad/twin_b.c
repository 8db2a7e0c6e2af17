/* SPDX-License-Identifier: Apache-2.0
 * One of two plugins that claim the same name. */
#include "common.h"

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC, PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "twin", "1.0.0", "", plain_open, no_iface, plain_close};
