// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>

namespace test {
namespace {

const int64_t kUnit[] = {1};

void quiet_log(void*, int32_t, const char*) {}
void inline_for(void*, int64_t count, int64_t, void (*body)(void*, int64_t, int64_t), void* argument) {
  body(argument, 0, count);
}
int32_t one_thread(void*) { return 1; }

const pg_host& host() {
  static const pg_host table = [] {
    pg_host h{};
    h.size = PG_SIZE(pg_host, device_of);
    h.abi_minor = PG_ABI_MINOR;
    h.log = quiet_log;
    h.parallel_for = inline_for;
    h.thread_count = one_thread;
    return h;
  }();
  return table;
}

const pg_plugin& library() {
  static const auto* entry = [] {
    const char* path = std::getenv("PERIGEE_CAPTURE_PLUGIN");  // of a build that was carried elsewhere
    void* handle = dlopen(path == nullptr ? CUDA_PLUGIN : path, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    return static_cast<const pg_plugin*>(dlsym(handle, "pg_plugin_v1"));
  }();
  return *entry;
}

// index_select(x, index; axis, shown) as the operators' plugin declares it, as far as a kernel looks.
const pg_op_info& select_info() {
  static pg_attr_info axis{}, shown{};
  axis = {PG_SIZE(pg_attr_info, value), PG_ATTR_AXIS, 0, 0, "axis", "", nullptr, 0, 0};
  shown = {PG_SIZE(pg_attr_info, value), PG_ATTR_INT, 0, 8, "shown", "", nullptr, 0, 0};
  static const pg_attr_info* attrs[] = {&axis, &shown};
  static pg_op_info info{};
  info.size = PG_SIZE(pg_op_info, write_back);
  info.name = "index_select";
  info.input_count = 2;
  info.output_count = 1;
  info.attr_count = 2;
  info.attr_size = info.static_size = 16;
  info.attrs = attrs;
  return info;
}

}  // namespace

pg_tensor Vector::meta() const {
  pg_tensor t{};
  t.size = PG_SIZE(pg_tensor, components);
  t.dtype_code = static_cast<uint16_t>(dtype >> 16);
  t.dtype_bits = static_cast<uint16_t>(dtype & 0xffff);
  t.rank = 1;
  t.shape = &count;
  t.stride = kUnit;
  t.buffer = buffer;
  return t;
}

std::string no_device() {
  pg_error error = pg::make_error();
  void* self = nullptr;
  if (library().open(&host(), &self, &error) != PG_OK) throw std::runtime_error(error.message);
  uint32_t count = 0;
  int32_t code = static_cast<const pg_device*>(library().iface(self, PG_IFACE_DEVICE))->count(self, &count, &error);
  std::string reason = code == PG_OK && count > 0 ? "" : error.message;
  pg_error closing = pg::make_error();
  CHECK(library().close(self, &closing) == PG_OK);
  return count > 0 || !reason.empty() ? reason : "no reason was given";
}

Gpu::Gpu() {
  pg_error error = pg::make_error();
  if (library().open(&host(), &self, &error) != PG_OK) throw std::runtime_error(error.message);
  device = static_cast<const pg_device*>(library().iface(self, PG_IFACE_DEVICE));
  kernels = static_cast<const pg_kernels*>(library().iface(self, PG_IFACE_KERNELS));
  uint32_t count = 0;
  if (device->count(self, &count, &error) != PG_OK || count == 0) throw std::runtime_error(error.message);
  own_ = stream();
}

// In the order that plugin.h prescribes.
Gpu::~Gpu() {
  for (Prepared& each : prepared_) kernels->release(self, each.index, each.kernel);
  for (uint64_t stream : streams_) call(device->stream_sync, stream);
  for (uint64_t buffer : buffers_) CHECK(call(device->free, PG_MEMORY_DEVICE, buffer).code == PG_OK);
  for (uint64_t event : events_) CHECK(call(device->event_destroy, event).code == PG_OK);
  for (uint64_t stream : streams_) CHECK(call(device->stream_destroy, stream).code == PG_OK);
  pg_error error = pg::make_error();
  CHECK(library().close(self, &error) == PG_OK);
}

uint64_t Gpu::stream() {
  uint64_t handle = 0;
  ok(device->stream_create, &handle);
  streams_.push_back(handle);
  return handle;
}

uint64_t Gpu::event() {
  uint64_t handle = 0;
  ok(device->event_create, &handle);
  events_.push_back(handle);
  return handle;
}

Vector Gpu::make(uint32_t dtype, int64_t count, const void* data) {
  Vector vector{dtype, count};
  const auto bytes = static_cast<uint64_t>(count * pg::dtype_bytes(dtype));
  ok(device->alloc, PG_MEMORY_DEVICE, bytes, &vector.buffer);
  buffers_.push_back(vector.buffer);
  ok(device->upload, vector.buffer, uint64_t(0), data, bytes, own_, uint64_t(0));
  ok(device->stream_sync, own_);
  return vector;
}

Vector Gpu::floats(std::vector<float> values) {
  return make(PG_F32, static_cast<int64_t>(values.size()), values.data());
}
Vector Gpu::integers(std::vector<int64_t> values) {
  return make(PG_I64, static_cast<int64_t>(values.size()), values.data());
}

void Gpu::write(const Vector& target, const std::vector<int64_t>& values) {
  ok(device->upload, target.buffer, uint64_t(0), static_cast<const void*>(values.data()), values.size() * 8, own_,
     uint64_t(0));
  ok(device->stream_sync, own_);
}

std::vector<float> Gpu::read(const Vector& source) {
  std::vector<float> values(static_cast<size_t>(source.count));
  ok(device->download, static_cast<void*>(values.data()), source.buffer, uint64_t(0), values.size() * 4, own_,
     uint64_t(0));
  ok(device->stream_sync, own_);
  return values;
}

Code Gpu::select(const Vector& x, const Vector& index, const Vector& y, uint64_t stream, uint64_t sequence) {
  const int64_t attrs[] = {0, 0};
  pg_tensor metas[] = {x.meta(), index.meta(), y.meta()};
  const pg_tensor *inputs[] = {&metas[0], &metas[1]}, *outputs[] = {&metas[2]};
  const uint32_t groups[] = {1, 1};
  pg_call prepare{PG_SIZE(pg_call, attrs), 0, &select_info(), 2, 1, inputs, groups, outputs, attrs};
  uint32_t position = 0;
  while (std::string(kernels->kernels[position]->op) != "index_select") position++;
  Code out{0, pg::make_error()};
  pg_prepared plan{};
  plan.size = PG_SIZE(pg_prepared, pack_bytes);
  out.code = kernels->prepare(self, position, &prepare, &plan, &out.error);
  if (out.code != PG_OK) return out;
  prepared_.push_back({position, plan.kernel});
  pg_address workspace{};
  if (plan.workspace > 0) {
    ok(device->alloc, PG_MEMORY_DEVICE, plan.workspace, &workspace.buffer);
    buffers_.push_back(workspace.buffer);
  }
  const pg_address in[] = {{x.buffer, 0}, {index.buffer, 0}}, result[] = {{y.buffer, 0}};
  pg_launch launch{};
  launch.size = PG_SIZE(pg_launch, extents);
  launch.stream = stream;
  launch.sequence = sequence;
  launch.input_count = 2;
  launch.output_count = 1;
  launch.inputs = inputs;
  launch.outputs = outputs;
  launch.groups = groups;
  launch.input = in;
  launch.output = result;
  launch.attrs = attrs;
  launch.workspace = workspace;
  out.code = kernels->launch(self, position, plan.kernel, &launch, &out.error);
  return out;
}

Code Gpu::fill(const Vector& target, double value, uint64_t stream) {
  pg_tensor meta = target.meta();
  const pg_number number = pg::make_number(value);
  return call(device->fill, static_cast<const pg_tensor*>(&meta), &number, stream, uint64_t(1));
}

}  // namespace test
