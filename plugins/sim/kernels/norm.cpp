// SPDX-License-Identifier: Apache-2.0
// Normalisation, softmax and the cross entropy.
#include "perigee/kernels/reference/norm.hpp"

#include "../launch.hpp"
#include "perigee/kernels/reference/softmax.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

void batch_norm(const Work& work) {
  reference::batch_norm({work.input(0), work.input(1), work.input(2), work.input(3), work.input(4),
                         work.attr<bool>("training"), work.attr<double>("momentum"), work.attr<double>("eps"),
                         work.out(0), work.output(1), work.output(2)});
}

void batch_norm_grad(const Work& work) {
  reference::norm_grad({work.input(0), work.input(1), work.input(2), work.input(3), work.input(4), work.output(0),
                        work.output(1), work.output(2)},
                       reference::Sets::channels(work.in(1).shape), !work.attr<bool>("training"), true);
}

void layer_norm(const Work& work) {
  reference::layer_norm(work.input(0), work.input(1), work.input(2), work.attr<int64_t>("dims"),
                        work.attr<double>("eps"), work.out(0), work.output(1), work.output(2));
}

void layer_norm_grad(const Work& work) {
  reference::norm_grad({work.input(0), work.input(1), work.input(2), work.input(3), work.input(4), work.output(0),
                        work.output(1), work.output(2)},
                       reference::Sets::rows(work.in(1).shape, work.attr<int64_t>("dims")), false, false);
}

void softmax(const Work& work) { reference::softmax(work.in(0), work.axis("axis", work.in(0).rank()), work.out(0)); }
void log_softmax(const Work& work) {
  reference::log_softmax(work.in(0), work.axis("axis", work.in(0).rank()), work.out(0));
}

reference::CrossEntropy options(const Work& work) {
  std::string name = work.choice("reduction");
  return {work.attr<int64_t>("ignore_index"),
          name == "mean"  ? reference::Reduction::kMean
          : name == "sum" ? reference::Reduction::kSum
                          : reference::Reduction::kNone,
          work.attr<double>("label_smoothing")};
}

void cross_entropy(const Work& work) {
  reference::cross_entropy(work.input(0), work.input(1), work.input(2), options(work), work.out(0), work.output(1));
}
void cross_entropy_grad(const Work& work) {
  reference::cross_entropy_grad(work.input(0), work.input(1), work.input(2), work.input(3), options(work), work.out(0));
}

PG_SIM_SPARING_KERNEL("batch_norm", 1u << 1 | 1u << 2, batch_norm, kFloats);
PG_SIM_KERNEL("batch_norm_grad", batch_norm_grad, kFloats);
PG_SIM_SPARING_KERNEL("layer_norm", 1u << 1 | 1u << 2, layer_norm, kFloats);
PG_SIM_KERNEL("layer_norm_grad", layer_norm_grad, kFloats);
PG_SIM_KERNEL("softmax", softmax, kFloats);
PG_SIM_KERNEL("log_softmax", log_softmax, kFloats);
PG_SIM_SPARING_KERNEL("cross_entropy", 1u << 1, cross_entropy, kFloats);
PG_SIM_KERNEL("cross_entropy_grad", cross_entropy_grad, kFloats);

}  // namespace
}  // namespace sim
