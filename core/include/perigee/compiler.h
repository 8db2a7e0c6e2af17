/* SPDX-License-Identifier: Apache-2.0
 *
 * perigee/compiler.h: pg.compiler/0, several operators as one kernel. A part of the specification that plugin.h is, in a
 * header of its own because a draft that few include may change without all others being built anew. What plugin.h says
 * of sizes, strings, threads and lifetimes holds here; so do its tags.
 *
 * A region is a stretch of recorded work: values, and nodes that make them from others. The host shows a compiler what a
 * compiled function launches on one device; `claim` says which nodes it would compute together; the host cuts what can
 * be moved together without changing a result, and each piece with two nodes or more is handed to `compile`. What comes
 * back is launched like any prepared kernel, in place of its nodes. A value that nobody outside of the piece reads is
 * never given memory.
 *
 * A compiled region computes the bits that its nodes compute one by one: each result is rounded to its dtype before it
 * is used, and nothing is contracted. (Which of several NaN comes out, and its sign, is left open.) Only nodes that the
 * compiler's own plugin has the kernels of are shown, so that it knows what those bits are, and the device's casts and
 * clones.
 *
 * Regions of frozen calls (PG_REGION_FROZEN) promise less, and allow more: their results may differ from the nodes' one by
 * one as other orders of sums would, so that what is known of parameters can be computed once and tensors inside may
 * lie as it suits.
 */
#ifndef PERIGEE_COMPILER_H
#define PERIGEE_COMPILER_H

#include "perigee/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PG_IFACE_COMPILER "pg.compiler/0"

#define PG_VALUE_NONE UINT32_MAX /* in place of a value's number: absent, or an input of which only the shape is used */

/* Of a region. All attributes, runtime ones too, are at each launch what they are now. Nodes are shown that may want
 * private layouts, also. */
#define PG_REGION_FROZEN 1u
/* Of a cluster's number: a piece of it may have any number of nodes and inputs. Others have 48 and 64 at most. */
#define PG_CLUSTER_LONG 0x80000000u

/* An operator, called. Numbers are those of values. Inputs are flat and may be PG_VALUE_NONE; one that is written in
 * place is followed by a value of its own, in the same memory. */
typedef struct pg_node {
  uint32_t size;
  uint32_t in_place;       /* 1: output 0 lies where input 0 does */
  const pg_op_info *op;
  uint32_t input_count, output_count;
  const uint32_t *inputs;
  const uint32_t *groups;  /* tensors in each declared input */
  const uint32_t *outputs; /* hidden ones last */
  const void *attrs;       /* the static part is meaningful */
  uint64_t attrs_offset;   /* where its packed struct begins in pg_launch.attrs */
} pg_node;

typedef struct pg_region {
  uint32_t size;
  uint32_t device;
  uint32_t value_count, node_count;
  const pg_tensor *const *values; /* descriptions; buffer is 0 */
  const pg_node *const *nodes;    /* each behind those whose outputs it reads */
  /* Of a piece, in the order of pg_launch.input and output. Nothing else leaves it. */
  uint32_t input_count, output_count;
  const uint32_t *inputs;
  const uint32_t *outputs;
  /* By output, a bit an input (of the first 64): what may be written over. The output of a launch lies exactly where
   * one of these does, or shares memory with no input. Two outputs never share memory. */
  const uint64_t *overwrites;
  uint32_t flags; /* PG_REGION_* */
  uint32_t reserved;
  /* By value, where the region is frozen: 1: it comes from outside and is the same from launch to launch, but that it
   * may be written to in between (parameters, statistics). NULL: none is. */
  const uint8_t *constant;
} pg_region;

typedef struct pg_compiler {
  uint32_t size;
  uint32_t reserved;
  const char *device_type; /* the pg_device.type it compiles for */
  /* Required. claim sets cluster[i] of each node (0 before the call): nodes of one number from 1 on are wanted in one
   * kernel, 0 is left alone. A claim promises that compile takes any part of a cluster, but for what it cannot know
   * then: how large a piece is. inputs and outputs of its region are not meaningful. */
  int32_t (*claim)(void *self, const pg_region *region, uint32_t *cluster, pg_error *error); /* [any] */
  /* PG_E_NOT_SUPPORTED: the nodes are launched one by one. pack_bytes[0], of a frozen piece: bytes of what is made of its
   * constant inputs, see pack; the others stay 0. */
  int32_t (*compile)(void *self, const pg_region *piece, pg_prepared *out, pg_error *error); /* [any] */
  /* As pg_kernels.launch. attrs: the packed structs of all nodes, of this very call. What fails names the operator of
   * the node in error->where. */
  int32_t (*launch)(void *self, void *kernel, const pg_launch *launch, pg_error *error); /* [stream] */
  void (*release)(void *self, void *kernel);                                             /* [any] */
  /* Writes what is made of the constant inputs of a frozen piece, pack_bytes[0] bytes. Called before the first launch,
   * and before one that finds an input written to, or elsewhere, since. launch->packed[0] is `target` afterwards. NULL:
   * never asked for. */
  int32_t (*pack)(void *self, void *kernel, const pg_launch *launch, pg_address target, pg_error *error); /* [stream] */
  /* What has been done beyond joining nodes, for who asks: a line that lives as long as the kernel. May be NULL, and
   * answer NULL. */
  const char *(*describe)(void *self, void *kernel); /* [any] */
  /* Optional, all three or none, where the device captures: as the functions of pg_capture (perigee/capture.h), for kernels
   * of this compiler, which then may be a part of a plan. PG_E_NOT_SUPPORTED of measure, and NULL: plans are cut around
   * them. A workspace is the plan's own. */
  int32_t (*measure)(void *self, void *kernel, const pg_launch *launch, uint64_t *bytes, pg_error *error);            /* [any] */
  int32_t (*launch_captured)(void *self, void *kernel, const pg_launch *launch, pg_address runtime, pg_error *error); /* [stream] */
  int32_t (*write)(void *self, void *kernel, const pg_launch *launch, void *block, pg_error *error);                  /* [any] */
} pg_compiler;

#ifdef __cplusplus
}
#endif

#endif
