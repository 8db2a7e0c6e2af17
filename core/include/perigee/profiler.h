/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/profiler.h: pg.profiler/0, what a device did, and when. The C++ header over it is profiler.hpp.
 *
 * The host sees an asynchronous device from outside: when it submitted something, and how long it waited. A plugin that
 * knows more tells it with this interface, for the devices of one type. What is told is tied to operators by the
 * sequence numbers that the host gave with the work (pg_launch.sequence, and those of uploads, downloads, copies, fills
 * and peer copies). The caveats and thread tags are plugin.h's. A plugin with this table has "profiler" among its kinds;
 * hosts that do not know the interface never ask for it.
 */
#ifndef PERIGEE_PROFILER_H
#define PERIGEE_PROFILER_H

#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PG_IFACE_PROFILER "pg.profiler/0"

/* What an activity is. */
#define PG_ACTIVITY_KERNEL 1u   /* of an operator, or the device's copy or fill */
#define PG_ACTIVITY_UPLOAD 2u   /* bytes from the host */
#define PG_ACTIVITY_DOWNLOAD 3u /* to the host */
#define PG_ACTIVITY_PEER 4u     /* from another device */

/* One piece of work that a device has done. */
typedef struct pg_activity {
  uint32_t size;
  uint32_t kind;     /* PG_ACTIVITY_* */
  uint32_t device;   /* within the plugin, as pg_device counts */
  uint32_t reserved;
  uint64_t stream;   /* the handle; activities of one stream do not overlap */
  uint64_t sequence; /* of the call that asked for it; several activities may have one. 0: not known */
  int64_t begin, end; /* nanoseconds of the host's CLOCK_MONOTONIC; begin <= end */
  uint64_t bytes;    /* that were copied; 0 of kernels */
  const char *name;  /* of the vendor's kernel, where no launch is known by the sequence; NULL: none. Valid during add */
} pg_activity;

typedef struct pg_activity_sink {
  uint32_t size, reserved;
  void *context;
  void (*add)(void *context, const pg_activity *activity); /* [call] */
} pg_activity_sink;

/* start, stop and drain are called by one thread at a time, in this order; work may be submitted meanwhile, from any
 * thread. Between start and stop the plugin notes what its devices do, in memory that start takes, and the newest are
 * kept where there is no room. drain hands out what was noted and forgets it; the host has waited for all streams before.
 * Outside of start and stop it must cost a launch next to nothing. */
typedef struct pg_profiler {
  uint32_t size, reserved;
  const char *device_type; /* "cuda": whose devices it tells about */
  int32_t (*start)(void *self, uint64_t capacity, pg_error *error); /* room for at least so many activities */
  int32_t (*stop)(void *self, pg_error *error);
  int32_t (*drain)(void *self, const pg_activity_sink *sink, uint64_t *lost, pg_error *error); /* *lost: had no room */
} pg_profiler;

#ifdef __cplusplus
}
#endif

#endif
