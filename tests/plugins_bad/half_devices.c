/* SPDX-License-Identifier: Apache-2.0
 * The second of its two devices is broken. */
#define DEVICE_TYPE "half_devices"
#include "devices.h"

static int32_t device_count(void* self, uint32_t* count, pg_error* error) {
  (void)self, (void)error;
  *count = 2;
  return PG_OK;
}
static int32_t device_properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) {
  (void)self;
  if (device == 0) return synchronous(out, 64);
  strcpy(error->message, "this one is broken");
  return PG_E_INTERNAL;
}

DEVICE_PLUGIN("half_devices");
