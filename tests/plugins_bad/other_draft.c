/* SPDX-License-Identifier: Apache-2.0
 * Says that it has operators, but in a draft of the interface that this host does not speak. */
#include "common.h"

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "other_draft", "1.0.0", "ops", plain_open, no_iface,
    plain_close};
