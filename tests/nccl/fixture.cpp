// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"

namespace nccl_test {
namespace {

contract::Plugin* devices = nullptr;

int32_t device_native(void*, const char* type, uint32_t device, const char* what, uint64_t handle, uint64_t* native,
                      pg_error* error) {
  if (std::strcmp(type, "cuda") != 0) return pg::set_error(error, PG_E_NOT_FOUND, "device_native", type);
  return devices->device->native(devices->self, device, what, handle, native, error);
}

const pg_host& host() {
  static const pg_host table = [] {
    pg_host h = contract::host();
    h.device_native = device_native;
    h.size = PG_SIZE(pg_host, device_native);
    return h;
  }();
  return table;
}

}  // namespace

void set_devices(contract::Plugin* cuda) { devices = cuda; }

Engine::Engine() : entry_(contract::load(NCCL_PLUGIN)) {
  pg_error error = pg::make_error();
  const int32_t code = entry_.open(&host(), &self, &error);
  INFO(error.message);
  REQUIRE(code == PG_OK);
  table = static_cast<const pg_device_collectives*>(entry_.iface(self, PG_IFACE_DEVICE_COLLECTIVES));
  REQUIRE(table != nullptr);
}

Engine::~Engine() {
  pg_error error = pg::make_error();
  const int32_t code = entry_.close(self, &error);
  INFO(error.message);
  CHECK(code == PG_OK);
}

Members::Members(Engine& engine, contract::Plugin& cuda, std::vector<uint32_t> on)
    : engine(engine), cuda(cuda), devices(std::move(on)) {
  set_devices(&cuda);
  for (uint32_t device : devices) streams.push_back(cuda.stream(device));
}

Members::~Members() {
  for (size_t k = 0; k < devices.size(); k++) cuda.call(cuda.device->stream_sync, devices[k], streams[k]);
  if (group != 0) destroy();
}

Code Members::make(pg_device_group info) {
  info.size = PG_SIZE(pg_device_group, look);
  info.count = static_cast<uint32_t>(devices.size());
  info.devices = devices.data();
  return engine.call(engine.table->group_create, &info, &group);
}

Code Members::make() {
  pg_device_group info{};
  info.total = static_cast<uint32_t>(devices.size());
  info.processes = 1;
  return make(info);
}

void Members::destroy() {
  const Code code = engine.call(engine.table->group_destroy, group);
  INFO(code.message());
  CHECK(code.code == PG_OK);
  group = 0;
}

pg_collective Members::call(uint32_t kind, size_t member, uint64_t count, uint64_t input, uint64_t output) {
  pg_collective call{};
  call.size = PG_SIZE(pg_collective, what);
  call.kind = kind, call.dtype = PG_F32, call.count = count;
  call.input.buffer = input, call.output.buffer = output;
  call.stream = streams[member], call.sequence = ++cuda.sequence;
  call.what = "a test";
  return call;
}

Code Members::submit(const std::vector<pg_collective>& calls) {
  std::vector<const pg_collective*> list;
  for (const pg_collective& each : calls) list.push_back(each.size == 0 ? nullptr : &each);
  return engine.call(engine.table->submit, group, static_cast<uint32_t>(calls.size() / devices.size()), list.data());
}

Code Members::sync(size_t k) {
  const Code code = cuda.call(cuda.device->stream_sync, devices[k], streams[k]);
  return code.code != PG_OK ? code : engine.call(engine.table->take_failure, devices[k]);
}

}  // namespace nccl_test
