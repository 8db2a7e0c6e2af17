/* SPDX-License-Identifier: Apache-2.0
 * The parts of a plugin that are right in all of these. */
#ifndef PERIGEE_TESTS_BAD_COMMON_H
#define PERIGEE_TESTS_BAD_COMMON_H

#include <perigee/plugin.h>

static int32_t plain_open(const pg_host* host, void** self, pg_error* error) {
  (void)error;
  *self = (void*)host;
  return PG_OK;
}

static int32_t plain_close(void* self, pg_error* error) {
  (void)self;
  (void)error;
  return PG_OK;
}

static const void* no_iface(void* self, const char* id) {
  (void)self;
  (void)id;
  return 0;
}

static int32_t same_infer(const pg_infer* call, pg_error* error) {
  (void)call;
  (void)error;
  return PG_OK;
}

/* A plugin may use only some of them. */
static inline void common_used(void) {
  (void)plain_open;
  (void)plain_close;
  (void)no_iface;
  (void)same_infer;
}

#endif
