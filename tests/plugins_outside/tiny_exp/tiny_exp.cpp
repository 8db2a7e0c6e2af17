// SPDX-License-Identifier: Apache-2.0
// A kernel for somebody else's device: exp on that of examples/plugins/tiny_device, whose memory is asked for by its
// handles' native addresses. Nothing of that plugin is included or linked.
#include <perigee/kernel.hpp>

#include <cmath>

namespace {

float* floats(const pg_launch& launch, pg_address address) {
  if (address.buffer == 0) return nullptr;
  uint64_t base = pg::device_native("tiny", launch.device, "buffer", address.buffer);
  return reinterpret_cast<float*>(base + address.offset);
}

struct Exp : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    call.need_dtypes({PG_F32});
    call.need_dense();
  }
  Exp(const pg::KernelCall& call, pg::Plan&) : count_(pg::element_count(call.in(0))) {}
  void launch(const pg_launch& launch) override {
    const float* x = floats(launch, launch.input[0]);
    float* y = floats(launch, launch.output[0]);
    for (int64_t i = 0; i < count_; i++) y[i] = std::exp(x[i]);
  }

 private:
  int64_t count_;
};
PG_KERNEL("exp", Exp);

}  // namespace

// device_native came with minor 2.
PG_PLUGIN(pg::Provides<pg::KernelTable<"tiny">>, "tiny_exp", "1.0.0", "kernels", 2);
