/* SPDX-License-Identifier: Apache-2.0
 * A plugin of one operator that does nothing, in plain C, for those that are wrong, or not, in what they say of it. */
#ifndef PERIGEE_TESTS_BAD_OPERATOR_H
#define PERIGEE_TESTS_BAD_OPERATOR_H

#include <string.h>

#include "common.h"

static const pg_input_info x = {PG_SIZE(pg_input_info, doc), 0, PG_M_ANY, 0, "x", "anything", NULL};
static const pg_output_info y = {PG_SIZE(pg_output_info, doc), 0, 0, 0, "y", "the same"};
static const pg_input_info* const inputs[] = {&x};
static const pg_output_info* const outputs[] = {&y};
static const pg_op_info op = {.size = PG_SIZE(pg_op_info, write_back),
                              .name = OPERATOR_NAME,
                              .doc = "Does nothing.",
                              .input_count = 1,
                              .output_count = 1,
                              .inputs = inputs,
                              .outputs = outputs,
                              .infer = same_infer};
static const pg_op_info* const all[] = {&op};
static const pg_ops ops = {PG_SIZE(pg_ops, ops), 1, all};

static const void* iface(void* self, const char* id) {
  (void)self;
  return strcmp(id, PG_IFACE_OPS) == 0 ? &ops : 0;
}

#define OPERATOR_PLUGIN(NAME, VERSION, KINDS)                                                                      \
  PG_EXPORT const pg_plugin pg_plugin_v1 = {PG_MAGIC, PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, NAME,  VERSION, \
                                            KINDS,    plain_open,                iface,        plain_close}

#endif
