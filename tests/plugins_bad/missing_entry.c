/* SPDX-License-Identifier: Apache-2.0
 * A device that cannot allocate. */
#include <string.h>

#include "common.h"

static int32_t count(void* self, uint32_t* count, pg_error* error) {
  (void)self;
  (void)error;
  *count = 1;
  return PG_OK;
}
static int32_t properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) {
  (void)self;
  (void)device;
  (void)out;
  (void)error;
  return PG_OK;
}
static const pg_device device = {.size = PG_SIZE(pg_device, native),
                                 .type = "missing_entry",
                                 .aliases = "",
                                 .count = count,
                                 .properties = properties};

static const void* iface(void* self, const char* id) {
  (void)self;
  return strcmp(id, PG_IFACE_DEVICE) == 0 ? &device : 0;
}

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, "missing_entry", "1.0.0", "device", plain_open, iface,
    plain_close};
