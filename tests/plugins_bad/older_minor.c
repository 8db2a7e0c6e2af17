/* SPDX-License-Identifier: Apache-2.0
 * Built when the structs ended earlier: what lies behind their ends is not theirs, and a host that reads it crashes. */
#include <string.h>

#include "common.h"

#define POISON ((void*)0xdeaddeaddeaddeadull)

/* Ends with `infer`: no gradient, decomposition or write-back was known. */
static pg_op_info op = {.size = PG_SIZE(pg_op_info, infer), .name = "older_op", .infer = same_infer};
static const pg_op_info* const all[] = {&op};
static const pg_ops ops = {PG_SIZE(pg_ops, ops), 1, all};

static int32_t supports(void* self, uint32_t index, const pg_call* call, pg_error* why) {
  (void)self, (void)index, (void)call, (void)why;
  return PG_OK;
}
static int32_t prepare(void* self, uint32_t index, const pg_call* call, pg_prepared* out, pg_error* error) {
  (void)self, (void)index, (void)call, (void)out, (void)error;
  return PG_OK;
}
static int32_t launch(void* self, uint32_t index, void* kernel, const pg_launch* launch, pg_error* error) {
  (void)self, (void)index, (void)kernel, (void)launch, (void)error;
  return PG_OK;
}
static void release(void* self, uint32_t index, void* kernel) { (void)self, (void)index, (void)kernel; }

static const pg_kernel_info kernel = {PG_SIZE(pg_kernel_info, op), 0, "older_op", ~0ull, ~0ull};
static const pg_kernel_info* const kernel_list[] = {&kernel};
static pg_kernels kernels = {
    PG_SIZE(pg_kernels, release), 1, "older", kernel_list, supports, prepare, launch, release, 0};

static int32_t open_poisoned(const pg_host* host, void** self, pg_error* error) {
  memset((char*)&op + op.size, 0xad, sizeof op - op.size);
  kernels.pack = (int32_t(*)(void*, uint32_t, void*, uint32_t, const pg_launch*, pg_address, pg_error*))POISON;
  return plain_open(host, self, error);
}

static const void* iface(void* self, const char* id) {
  (void)self;
  if (strcmp(id, PG_IFACE_OPS) == 0) return &ops;
  return strcmp(id, PG_IFACE_KERNELS) == 0 ? &kernels : 0;
}

PG_EXPORT const pg_plugin pg_plugin_v1 = {
    PG_MAGIC,   PG_SIZE(pg_plugin, close), 0, 0, "older_minor", "1.0.0", "ops,kernels", open_poisoned, iface,
    plain_close};
