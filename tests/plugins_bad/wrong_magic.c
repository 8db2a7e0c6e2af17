/* SPDX-License-Identifier: Apache-2.0
 * The symbol is there, the magic is not. */
#include "common.h"

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    0x12345678u, PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "wrong_magic", "1.0.0", "ops", plain_open, no_iface,
    plain_close};
