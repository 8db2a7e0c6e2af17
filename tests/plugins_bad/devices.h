/* SPDX-License-Identifier: Apache-2.0
 * A device that loads, for plugins that are wrong in how many there are or in what they say of themselves. It allocates
 * nothing: none of them gets so far. */
#ifndef PERIGEE_TESTS_BAD_DEVICES_H
#define PERIGEE_TESTS_BAD_DEVICES_H

#include <string.h>

#include "common.h"

static int32_t device_count(void* self, uint32_t* count, pg_error* error);
static int32_t device_properties(void* self, uint32_t device, pg_device_properties* out, pg_error* error);

static int32_t no_alloc(void* self, uint32_t device, uint32_t kind, uint64_t bytes, uint64_t* buffer, pg_error* error) {
  (void)self, (void)device, (void)kind, (void)bytes, (void)buffer, (void)error;
  return PG_E_OUT_OF_MEMORY;
}
static int32_t no_free(void* self, uint32_t device, uint32_t kind, uint64_t buffer, pg_error* error) {
  (void)self, (void)device, (void)kind, (void)buffer, (void)error;
  return PG_OK;
}
static int32_t no_create(void* self, uint32_t device, uint64_t* made, pg_error* error) {
  (void)self, (void)device, (void)made, (void)error;
  return PG_E_NOT_SUPPORTED;
}
static int32_t no_object(void* self, uint32_t device, uint64_t object, pg_error* error) {
  (void)self, (void)device, (void)object, (void)error;
  return PG_OK;
}
static int32_t no_pair(void* self, uint32_t device, uint64_t event, uint64_t stream, pg_error* error) {
  (void)self, (void)device, (void)event, (void)stream, (void)error;
  return PG_OK;
}
static int32_t no_upload(void* self, uint32_t device, uint64_t buffer, uint64_t offset, const void* source,
                         uint64_t bytes, uint64_t stream, uint64_t sequence, pg_error* error) {
  (void)self, (void)device, (void)buffer, (void)offset, (void)source, (void)bytes, (void)stream, (void)sequence;
  (void)error;
  return PG_OK;
}
static int32_t no_download(void* self, uint32_t device, void* target, uint64_t buffer, uint64_t offset, uint64_t bytes,
                           uint64_t stream, uint64_t sequence, pg_error* error) {
  (void)self, (void)device, (void)target, (void)buffer, (void)offset, (void)bytes, (void)stream, (void)sequence;
  (void)error;
  return PG_OK;
}
static int32_t no_copy(void* self, uint32_t device, const pg_tensor* target, const pg_tensor* source, uint64_t stream,
                       uint64_t sequence, pg_error* error) {
  (void)self, (void)device, (void)target, (void)source, (void)stream, (void)sequence, (void)error;
  return PG_OK;
}
static int32_t no_fill(void* self, uint32_t device, const pg_tensor* target, const pg_number* value, uint64_t stream,
                       uint64_t sequence, pg_error* error) {
  (void)self, (void)device, (void)target, (void)value, (void)stream, (void)sequence, (void)error;
  return PG_OK;
}

static const pg_device device = {.size = PG_SIZE(pg_device, native),
                                 .type = DEVICE_TYPE,
                                 .aliases = "",
                                 .count = device_count,
                                 .properties = device_properties,
                                 .alloc = no_alloc,
                                 .free = no_free,
                                 .stream_create = no_create,
                                 .stream_destroy = no_object,
                                 .stream_sync = no_object,
                                 .event_create = no_create,
                                 .event_destroy = no_object,
                                 .event_record = no_pair,
                                 .event_wait = no_pair,
                                 .event_query = no_object,
                                 .event_sync = no_object,
                                 .upload = no_upload,
                                 .download = no_download,
                                 .copy = no_copy,
                                 .fill = no_fill};

static int32_t synchronous(pg_device_properties* out, uint32_t alignment) {
  out->flags = PG_DEVICE_SYNCHRONOUS;
  out->stream_count = 1;
  out->alignment = alignment;
  return PG_OK;
}

static const void* device_iface(void* self, const char* id) {
  (void)self;
  return strcmp(id, PG_IFACE_DEVICE) == 0 ? &device : 0;
}

#define DEVICE_PLUGIN(name)                                                                                 \
  PG_EXPORT const pg_plugin pg_plugin_v1 = {                                                                \
      PG_MAGIC, PG_SIZE(pg_plugin, close), PG_ABI_MINOR, 0, name, "1.0.0", "device", plain_open, device_iface, \
      plain_close}

#endif
