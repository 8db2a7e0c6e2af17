// SPDX-License-Identifier: Apache-2.0
// linear(x [..., in], weight [out, in], bias? [out]) -> [..., out]: x weight^T + bias, and linear_activation: the same
// behind an activation.
#include "linalg/product.hpp"

namespace cuda {
namespace {

class Linear final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, call.is("linear_activation") ? kFloats : kNumbers);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be dense");
    pg::read_linear(call);
  }
  Linear(const pg::KernelCall& call, pg::Plan& plan)
      : product_(linalg::make_product(pg::read_linear(call), call.raw->device,
                                      call.raw->op->name + (" of " + pg::describe(call)))) {
    plan.workspace = product_->workspace();
  }
  void run(const Launch& launch) override {
    const void* bias = launch.has(2) ? launch.in(2) : nullptr;
    product_->run(launch.native(), {launch.in(0), launch.in(1), bias, launch.out(0), launch.workspace()});
  }

 private:
  std::unique_ptr<linalg::Product> product_;
};

PG_KERNEL("linear", Linear);
PG_KERNEL("linear_activation", Linear);

}  // namespace
}  // namespace cuda
