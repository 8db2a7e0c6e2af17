/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/device_collectives.h: pg.device_collectives/0, an engine that carries tensors between devices of one type, in one
 * process or in several.
 *
 * pg.collectives (plugin.h) is for a process that is one rank and waits for its calls. Here each of several devices is a
 * member, one call has the parts of all members that the process has, and it is queued on their streams: nobody waits.
 * The caveats and thread tags are plugin.h's. A plugin with this table has "device_collectives" among its kinds; hosts
 * that do not know the interface never ask for it. Where no plugin has it for a type of device, the host copies from
 * device to device, and between processes through host memory.
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
  uint32_t count;          /* members that this process has: all of them, 2 or more, unless there are several processes */
  const uint32_t *devices; /* by member: another one each, as the pg_device that has them counts */
  /* Of PG_DEVICE_COLLECTIVES_PROCESSES: members of all processes, the number of this process's first one, how many
   * processes, which of them this is. Of one process: count, 0, 1, 0, and exchange and look are NULL. */
  uint32_t total, first, processes, process;
  double deadline; /* seconds in which all processes must have made the group; 0: none */
  void *context;   /* lives until group_destroy */
  /* Each process gives `bytes` bytes; all of them get those of each, in the order of processes. Only in group_create, and
   * equally often by all processes. */
  int32_t (*exchange)(void *context, uint64_t bytes, const void *mine, void *all, pg_error *error);
  /* Not PG_OK: another process has ended, and `error` says which. To be asked now and then while calls are pending,
   * which fail with it, and not from within a function of this table but submit and group_create. [any] */
  int32_t (*look)(void *context, pg_error *error);
} pg_device_group;

#define PG_DEVICE_COLLECTIVES_PROCESSES 1u /* members may be in several processes, the same number in each */

/* A call that fails breaks its group: what is still pending fails, and so does every later call, until it is destroyed.
 * What fails behind submit fails on the members' streams, as a kernel does (PG_E_DEADLINE_EXCEEDED where the deadline has
 * passed), and names the members' devices. Calls whose streams hold up behind failed work are failures of the others.
 *
 * What an engine lacks (a reduction, a dtype, an output on its input) submit refuses as PG_E_NOT_SUPPORTED before anything
 * of that submit is queued, on every process alike; that breaks nothing. All engines have sums and means of float32,
 * and broadcasts. */
typedef struct pg_device_collectives {
  uint32_t size;
  uint32_t flags;          /* PG_DEVICE_COLLECTIVES_* */
  const char *name;        /* "nccl" */
  const char *device_type; /* "cuda": whose devices it serves */
  /* Required, up to abort. [one at a time] group_create: PG_E_NOT_SUPPORTED, in all processes, where the engine is not for
   * these devices, between which the host then copies. */
  int32_t (*group_create)(void *self, const pg_device_group *info, uint64_t *group, pg_error *error);
  int32_t (*group_destroy)(void *self, uint64_t group, pg_error *error); /* waits for nothing: the host has */
  /* Queues `rows` collectives, all together. calls[i * count + k] is the part of this process's member k in the i-th, with
   * its stream and sequence number; `peer` is a member. Parts of one row agree in all but addresses, streams and sequence
   * numbers, other than sends and receives, which pair up within the row: a member that has neither in a row has NULL.
   * Streams go on with what is queued later once their own part is over. Roots' outputs of broadcasts, and others'
   * outputs of reduce, are not written. */
  int32_t (*submit)(void *self, uint64_t group, uint32_t rows, const pg_collective *const *calls, pg_error *error);
  /* Pending calls, and all later ones, fail with this reason. */
  int32_t (*abort)(void *self, uint64_t group, const char *reason, pg_error *error);
  /* Optional, for engines that serve another plugin's devices and cannot make their streams fail: what failed behind submit
   * on this device since it was last asked for, once; PG_OK: nothing. The host asks whenever a stream or an event of the
   * device has been synchronised, before anybody sees results. [any] */
  int32_t (*take_failure)(void *self, uint32_t device, pg_error *error);
} pg_device_collectives;

#ifdef __cplusplus
}
#endif

#endif
