/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/capture.h: pg.capture/0, how kernels are launched into plans of a device (pg_device.capture_begin). A part of the
 * specification that plugin.h is, in a header of its own because a draft that few include may change without all others
 * being built anew. What plugin.h says of sizes, strings, threads and lifetimes holds here; so do its tags.
 *
 * A plan is launched again and again, while numbers of its operators change: a learning rate, the count of steps, a seed.
 * Those are run-time attributes. A captured launch does not keep them: its work reads what it needs of them from a block
 * of memory on the device, which the host writes before each launch of the plan. What stands in the block is the
 * plugin's: whatever its work would be given otherwise, computed by the host as for a launch that is not captured, so
 * that the bits are the same.
 *
 * A plugin that has this interface also says which piece of a plan has failed: within a capture `sequence` counts from 0,
 * and what fails is reported as plan_launch's `sequence` plus the number that it was captured with.
 */
#ifndef PERIGEE_CAPTURE_H
#define PERIGEE_CAPTURE_H

#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PG_IFACE_CAPTURE "pg.capture/0"

/* Of the kernels in the same plugin's pg.kernels, for its own device. `index` and `kernel` are as there. Calls with dynamic
 * outputs are not captured. */
typedef struct pg_capture {
  uint32_t size;
  uint32_t reserved;
  /* Whether the launch can be captured, and how many bytes of the block it reads, the same for each launch that differs in
   * run-time attributes alone. PG_E_NOT_SUPPORTED: it cannot, and plans are cut around it. 0 bytes: its work keeps the
   * numbers that it was captured with, and where those change, plans are cut around it. Nothing is launched. [any] */
  int32_t (*measure)(void *self, uint32_t index, void *kernel, const pg_launch *launch, uint64_t *bytes, pg_error *error);
  /* Launches into the capture of launch->stream. The work is queued and nothing else is done: nothing is allocated, nobody
   * waits, and nothing that a plan would find changed later is read by the work. `runtime` is where it finds its part of
   * the block, aligned to 16 bytes; buffer 0 where it reads nothing. [stream] */
  int32_t (*launch)(void *self, uint32_t index, void *kernel, const pg_launch *launch, pg_address runtime, pg_error *error);
  /* Writes the bytes for `launch`, which is what was captured but for the run-time part of attrs. `block` holds what was
   * written the last time, or zeros. PG_E_FAILED_PRECONDITION: these numbers want other work than what was captured. Any
   * other failure is the launch's. Nothing is launched. [any] */
  int32_t (*write)(void *self, uint32_t index, void *kernel, const pg_launch *launch, void *block, pg_error *error);
} pg_capture;

#ifdef __cplusplus
}
#endif

#endif
