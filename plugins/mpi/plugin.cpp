// SPDX-License-Identifier: Apache-2.0
// The plugin "mpi": the table of its engine.
#include "engine.hpp"

namespace mpi {

class Plugin {
 public:
  Plugin() {
    table_.size = PG_SIZE(pg_collectives, peers);
    table_.name = "mpi";
    table_.device_type = "";
    table_.world = [](void* self, pg_world* out, pg_error* error) {
      return pg::guard(error, "mpi", [&] {
        const uint32_t size = out->size;
        *out = engine(self).world();
        out->size = size;
      });
    };
    table_.group_create = [](void* self, const pg_group_info* info, double deadline, uint64_t* group, pg_error* error) {
      return pg::guard(error, "mpi", [&] { *group = engine(self).create(*info, deadline); });
    };
    table_.group_destroy = [](void* self, uint64_t group, pg_error* error) {
      return pg::guard(error, "mpi", [&] { engine(self).destroy(group); });
    };
    table_.submit = [](void* self, uint64_t group, uint32_t count, const pg_collective* const* calls, uint64_t* request,
                       pg_error* error) {
      return pg::guard(error, "mpi", [&] { *request = engine(self).submit(group, count, calls); });
    };
    table_.wait = [](void* self, uint64_t group, uint64_t request, double seconds, pg_error* error) {
      return pg::guard(error, "mpi",
                       [&]() -> int32_t { return engine(self).wait(group, request, seconds) ? PG_OK : PG_E_BUSY; });
    };
    table_.abort = [](void* self, uint64_t, const char* reason, pg_error* error) {
      return pg::guard(error, "mpi", [&] { engine(self).leave(reason); });
    };
    table_.peers = [](void* self, uint64_t group, uint32_t count, uint32_t* states, pg_error* error) {
      return pg::guard(error, "mpi", [&] { engine(self).peers(group, count, states); });
    };
  }

  const void* iface(const char* id) { return std::strcmp(id, PG_IFACE_COLLECTIVES) == 0 ? &table_ : nullptr; }

 private:
  static Engine& engine(void* self) { return static_cast<Plugin*>(self)->engine_; }
  Engine engine_;
  pg_collectives table_{};
};

}  // namespace mpi

PG_PLUGIN(mpi::Plugin, "mpi", "0.1.0", "collectives", 7);
