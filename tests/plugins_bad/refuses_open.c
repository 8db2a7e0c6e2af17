/* SPDX-License-Identifier: Apache-2.0
 * Cannot be opened here, and says why: how an absent driver looks. */
#include <stdio.h>

#include "common.h"

static int32_t refuse(const pg_host* host, void** self, pg_error* error) {
  (void)host;
  (void)self;
  error->code = PG_E_NOT_FOUND;
  snprintf(error->message, sizeof error->message, "no driver for the quantum abacus");
  return PG_E_NOT_FOUND;
}

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "refuses_open", "1.0.0", "ops", refuse, no_iface,
    plain_close};
