/* SPDX-License-Identifier: Apache-2.0
 * Nobody could name its devices: "Big:0" is looked up as "big:0". */
#define DEVICE_TYPE "Big"
#include "devices.h"

static int32_t device_count(void* self, uint32_t* count, pg_error* error) {
  (void)self, (void)error;
  *count = 1;
  return PG_OK;
}
static int32_t device_properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) {
  (void)self, (void)device, (void)error;
  return synchronous(out, 64);
}

DEVICE_PLUGIN("capital_device");
