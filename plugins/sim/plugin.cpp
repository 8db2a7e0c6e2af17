// SPDX-License-Identifier: Apache-2.0
#include "plugin.hpp"

#include "perigee/capture.hpp"
#include "perigee/kernel.hpp"

namespace sim {

Plugin* plugin = nullptr;

// Operators with a scalar expression share a kernel, which looks itself for what is switched off.
static bool is_scalar(const std::string& op) {
  uint32_t id = 0;
  const pg_op_info* info = nullptr;
  pg_error error = pg::make_error();
  const pg_host& host = *pg::host;
  return host.op_find(host.context, op.c_str(), &id, &info, &error) == PG_OK && info->scalar != nullptr;
}

// A kernel that is switched off is simply not there, as on hardware that lacks it.
static void choose_kernels(const std::set<std::string>& missing) {
  static const std::vector<pg::KernelEntry> all = pg::kernel_entries();
  pg::kernel_entries() = all;  // the plugin may have been open before, with another choice
  for (const std::string& op : missing) {
    size_t gone =
        std::erase_if(pg::kernel_entries(), [&](const pg::KernelEntry& entry) { return op == entry.info.op; });
    if (gone == 0 && op != kSwitch && !is_scalar(op))
      pg::log(PG_LOG_WARNING, "PERIGEE_SIM_MISSING: there is no kernel for " + op);
  }
}

static Collectives& collectives_of(void* self) { return static_cast<Plugin*>(self)->device().collectives; }

static pg_device_collectives collectives_table() {
  return {PG_SIZE(pg_device_collectives, abort),
          0,
          "sim",
          Device::type,
          [](void* self, const pg_device_group* info, uint64_t* group, pg_error* error) {
            return pg::guard(error, "group_create", [&] { *group = collectives_of(self).create(*info); });
          },
          [](void* self, uint64_t group, pg_error* error) {
            return pg::guard(error, "group_destroy", [&] { collectives_of(self).destroy(group); });
          },
          [](void* self, uint64_t group, uint32_t rows, const pg_collective* const* calls, pg_error* error) {
            return pg::guard(error, "submit", [&] { collectives_of(self).submit(group, rows, calls); });
          },
          [](void* self, uint64_t group, const char* reason, pg_error* error) {
            return pg::guard(error, "abort", [&] { collectives_of(self).abort(group, reason); });
          },
          nullptr};
}

Plugin::Plugin() : device_(read_settings()), table_(pg::device_table<Plugin>), collectives_(collectives_table()) {
  if (plugin != nullptr) throw pg::Error(PG_E_FAILED_PRECONDITION, "the simulated accelerator is open already");
  if (device_.settings().gpu) table_.aliases = "gpu";
  if (device_.settings().uncaptured.contains("*"))
    table_.capture_begin = nullptr, table_.capture_end = nullptr, table_.plan_launch = nullptr,
    table_.plan_destroy = nullptr;
  choose_kernels(device_.settings().missing);
  plugin = this;
}

Plugin::~Plugin() { plugin = nullptr; }

const void* Plugin::iface(const char* id) {
  if (std::strcmp(id, PG_IFACE_DEVICE) == 0) return &table_;
  if (std::strcmp(id, PG_IFACE_KERNELS) == 0) return pg::kernel_table(Device::type);
  if (std::strcmp(id, PG_IFACE_PROFILER) == 0) return &pg::profiler_table<Plugin>;
  if (std::strcmp(id, PG_IFACE_CAPTURE) == 0) return &pg::capture_table;
  if (std::strcmp(id, PG_IFACE_DEVICE_COLLECTIVES) == 0) return &collectives_;
  return nullptr;
}

}  // namespace sim

PG_PLUGIN(sim::Plugin, "sim", "0.1.0", "device,kernels,profiler,device_collectives");
