/* SPDX-License-Identifier: Apache-2.0
 * Cannot do without what a later minor version of the host has. */
#include "common.h"

PG_EXPORT const pg_plugin pg_plugin_v1 = {PG_MAGIC,
                                          PG_SIZE(pg_plugin, close),
                                          PG_ABI_MINOR + 9,
                                          PG_ABI_MINOR + 9,
                                          "needs_newer_host",
                                          "1.0.0",
                                          "ops",
                                          plain_open,
                                          no_iface,
                                          plain_close};
