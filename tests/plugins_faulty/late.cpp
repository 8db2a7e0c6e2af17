// SPDX-License-Identifier: Apache-2.0
// A kernel for an operator of another plugin, loaded after that has been called.
#include <perigee/kernel.hpp>

namespace {

struct Late : pg::Kernel {
  int64_t count;
  static void supports(const pg::KernelCall& call) { call.need_dtypes({PG_F32}); }
  Late(const pg::KernelCall& call, pg::Plan&) : count(pg::element_count(call.in(0))) {}
  void launch(const pg_launch& launch) override {
    auto* y = pg::output<float>(launch, 0);
    for (int64_t i = 0; i < count; i++) y[i] = 42;
  }
};
PG_KERNEL("faulty_late", Late);

}  // namespace

using FaultyLate = pg::Provides<pg::KernelTable<"cpu">>;
PG_PLUGIN(FaultyLate, "faulty_late", "1.0.0", "kernels");
