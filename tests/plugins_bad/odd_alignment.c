/* SPDX-License-Identifier: Apache-2.0
 * Its alignment is no power of two. */
#define DEVICE_TYPE "odd_alignment"
#include "devices.h"

static int32_t device_count(void* self, uint32_t* count, pg_error* error) {
  (void)self, (void)error;
  *count = 1;
  return PG_OK;
}
static int32_t device_properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error) {
  (void)self, (void)device, (void)error;
  return synchronous(out, 48);
}

DEVICE_PLUGIN("odd_alignment");
