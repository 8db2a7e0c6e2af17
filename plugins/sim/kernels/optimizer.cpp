// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/optimizer.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

void adam(const Work& work) {
  reference::Adam options = {work.attr<double>("lr"),           work.attr<double>("beta1"),
                             work.attr<double>("beta2"),        work.attr<double>("eps"),
                             work.attr<double>("weight_decay"), work.attr<double>("step"),
                             work.attr<double>("grad_scale"),   work.attr<bool>("decoupled")};
  auto params = work.group(0), grads = work.group(1), averages = work.group(2), squares = work.group(3);
  for (size_t i = 0; i < params.size(); i++) reference::adam(options, params[i], grads[i], averages[i], squares[i]);
}

void sgd(const Work& work) {
  reference::Sgd options = {work.attr<double>("lr"),        work.attr<double>("momentum"),
                            work.attr<double>("dampening"), work.attr<double>("weight_decay"),
                            work.attr<bool>("nesterov"),    work.attr<bool>("first")};
  auto params = work.group(0), grads = work.group(1), buffers = work.group(2);
  for (size_t i = 0; i < params.size(); i++) {
    reference::sgd(options, params[i], grads[i], i < buffers.size() ? buffers[i] : Operand());
  }
}

PG_SIM_KERNEL("adam", adam, kFloats);
PG_SIM_KERNEL("sgd", sgd, kFloats);

}  // namespace
}  // namespace sim
