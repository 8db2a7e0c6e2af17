// SPDX-License-Identifier: Apache-2.0
// The plugin "nccl": the table of its engine.
#include "engine.hpp"

namespace nccl {

class Plugin {
 public:
  Plugin() {
    load_library();
    table_.size = PG_SIZE(pg_device_collectives, take_failure);
    table_.flags = PG_DEVICE_COLLECTIVES_PROCESSES;
    table_.name = "nccl";
    table_.device_type = kType;
    table_.group_create = [](void* self, const pg_device_group* info, uint64_t* group, pg_error* error) {
      return pg::guard(error, "group_create", [&] { *group = engine(self).create(*info); });
    };
    table_.group_destroy = [](void* self, uint64_t group, pg_error* error) {
      return pg::guard(error, "group_destroy", [&] { engine(self).destroy(group); });
    };
    table_.submit = [](void* self, uint64_t group, uint32_t rows, const pg_collective* const* calls, pg_error* error) {
      return pg::guard(error, "submit", [&] { engine(self).submit(group, rows, calls); });
    };
    table_.abort = [](void* self, uint64_t group, const char* reason, pg_error* error) {
      return pg::guard(error, "abort", [&] { engine(self).abort(group, reason); });
    };
    table_.take_failure = [](void* self, uint32_t device, pg_error* error) {
      return pg::guard(error, "a collective", [&] { engine(self).take_failure(device); });
    };
  }

  const void* iface(const char* id) { return std::strcmp(id, PG_IFACE_DEVICE_COLLECTIVES) == 0 ? &table_ : nullptr; }
  bool busy() { return engine_.busy(); }

 private:
  static Engine& engine(void* self) { return static_cast<Plugin*>(self)->engine_; }
  Engine engine_;
  pg_device_collectives table_{};
};

}  // namespace nccl

PG_PLUGIN(nccl::Plugin, "nccl", "0.1.0", "device_collectives", 9);
