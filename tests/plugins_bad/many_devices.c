/* SPDX-License-Identifier: Apache-2.0
 * More devices than there is room for. */
#define DEVICE_TYPE "many_devices"
#include "devices.h"

static int32_t device_count(void* self, uint32_t* count, pg_error* error) {
  (void)self, (void)error;
  *count = 300;
  return PG_OK;
}
static int32_t device_properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) {
  (void)self, (void)device, (void)error;
  return synchronous(out, 64);
}

DEVICE_PLUGIN("many_devices");
