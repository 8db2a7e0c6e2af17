/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/device_collectives.h: pg.device_collectives/0, an engine that carries tensors between devices of one type in one
 * process.
 *
 * pg.collectives (plugin.h) is for a process that is one rank and waits for its calls. Here each of several devices is a
 * member, one call has all members' parts, and it is queued on their streams: nobody waits. The caveats and thread tags
 * are plugin.h's. A plugin with this table has "device_collectives" among its kinds; hosts that do not know the interface
 * never ask for it. Where no plugin has it for a type of device, the host copies from device to device.
 */
#ifndef PERIGEE_DEVICE_COLLECTIVES_H
#define PERIGEE_DEVICE_COLLECTIVES_H

#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PG_IFACE_DEVICE_COLLECTIVES "pg.device_collectives/0"

typedef struct pg_device_group {
  uint32_t size;
  uint32_t count;          /* members, 2 or more */
  const uint32_t *devices; /* by member: another one each, as the pg_device that has them counts */
} pg_device_group;

/* A call that fails breaks its group: what is still pending fails, and so does every later call, until it is destroyed.
 * What fails behind submit fails on the members' streams, as a kernel does (PG_E_DEADLINE_EXCEEDED where the deadline has
 * passed), and names the members' devices. Calls whose streams hold up behind failed work are failures of the others. */
typedef struct pg_device_collectives {
  uint32_t size, reserved;
  const char *name;        /* "nccl" */
  const char *device_type; /* "cuda": whose devices it serves */
  /* All required. [one at a time] group_create: PG_E_NOT_SUPPORTED where the engine is not for these devices, between
   * which the host then copies. */
  int32_t (*group_create)(void *self, const pg_device_group *info, uint64_t *group, pg_error *error);
  int32_t (*group_destroy)(void *self, uint64_t group, pg_error *error); /* waits for nothing: the host has */
  /* Queues `rows` collectives, all together. calls[i * count + k] is member k's part of the i-th, with its stream and
   * sequence number; `peer` is a member. Parts of one row agree in all but addresses, streams and sequence numbers, other
   * than sends and receives, which pair up within the call: a member that has neither in a row has NULL. Streams go on
   * with what is queued later once their own part is over. */
  int32_t (*submit)(void *self, uint64_t group, uint32_t rows, const pg_collective *const *calls, pg_error *error);
  /* Pending calls, and all later ones, fail with this reason. */
  int32_t (*abort)(void *self, uint64_t group, const char *reason, pg_error *error);
} pg_device_collectives;

#ifdef __cplusplus
}
#endif

#endif
