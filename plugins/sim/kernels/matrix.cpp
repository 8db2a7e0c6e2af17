// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/matrix.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

void matmul(const Work& work) {
  pg::reference::matmul(work.in(0), work.in(1), work.attr<bool>("transpose_x"), work.attr<bool>("transpose_y"),
                        work.out(0));
}

void linear(const Work& work) { pg::reference::linear(work.in(0), work.in(1), work.input(2), work.out(0)); }

void linear_activation(const Work& work) {
  auto run = [&](auto activation) {
    pg::reference::linear(work.in(0), work.in(1), work.input(2), work.out(0), activation);
  };
  work.choice("activation") == "relu" ? run(pg::math::Relu()) : run(pg::math::GeluTanh());
}

PG_SIM_KERNEL("matmul", matmul, kAny);
PG_SIM_KERNEL("linear", linear, kNumbers);
PG_SIM_KERNEL("linear_activation", linear_activation, kFloats);

}  // namespace
}  // namespace sim
