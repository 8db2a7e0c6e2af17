/* SPDX-License-Identifier: Apache-2.0
 * Built with a later minor version: every struct has a tail that this host must neither read nor need. */
#include <string.h>

#include "common.h"

#define TAIL uint64_t tail[4]
#define POISONED \
  { ~0ull, ~0ull, ~0ull, ~0ull }

typedef struct {
  pg_attr_info known;
  TAIL;
} attr_info;
typedef struct {
  pg_input_info known;
  TAIL;
} input_info;
typedef struct {
  pg_output_info known;
  TAIL;
} output_info;
typedef struct {
  pg_op_info known;
  TAIL;
} op_info;
typedef struct {
  pg_ops known;
  TAIL;
} ops_table;
typedef struct {
  pg_plugin known;
  TAIL;
} plugin_entry;

static const double defaults[1] = {0.5};
static const attr_info rate = {{.size = sizeof(attr_info), .kind = PG_ATTR_FLOAT, .name = "rate", .doc = "a rate"},
                               POISONED};
static const pg_attr_info* const attrs[] = {&rate.known};
static const input_info x = {{sizeof(input_info), 0, PG_M_ANY, 0, "x", "", NULL}, POISONED};
static const pg_input_info* const inputs[] = {&x.known, &x.known};
static const output_info y = {{sizeof(output_info), 0, 0, 0, "y", ""}, POISONED};
static const pg_output_info* const outputs[] = {&y.known};
static const op_info op = {{.size = sizeof(op_info),
                            .name = "newer_op",
                            .input_count = 2,
                            .output_count = 1,
                            .attr_count = 1,
                            .attr_size = 8,
                            .static_size = 8,
                            .inputs = inputs,
                            .outputs = outputs,
                            .attrs = attrs,
                            .defaults = defaults,
                            .infer = same_infer},
                           POISONED};
static const pg_op_info* const all[] = {&op.known};
static const ops_table ops = {{sizeof(ops_table), 1, all}, POISONED};

static const void* iface(void* self, const char* id) {
  (void)self;
  return strcmp(id, PG_IFACE_OPS) == 0 ? &ops : 0;
}

PG_EXPORT const plugin_entry pg_plugin_v1 = {{PG_MAGIC, sizeof(plugin_entry), PG_ABI_MINOR + 7, 0, "newer_minor",
                                              "1.0.0", "ops", plain_open, iface, plain_close},
                                             POISONED};
