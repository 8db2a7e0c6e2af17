// SPDX-License-Identifier: Apache-2.0
// linear(x [..., in], weight [out, in], bias? [out]) -> [..., out]: x weight^T + bias, and linear_activation: the same
// behind an activation.
#include "linalg/product.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

using linalg::ProductShape;

ProductShape read_shape(const pg::KernelCall& call) {
  const pg_tensor &x = call.in(0), &weight = call.in(1), &y = call.out(0);
  if (x.rank < 1 || weight.rank != 2 || x.shape[x.rank - 1] != weight.shape[1]) {
    pg::fail_argument(pg::format("%s: x %s does not fit weight %s", call.raw->op->name, pg::shape_text(x).c_str(),
                                 pg::shape_text(weight).c_str()));
  }
  uint32_t dtype = pg::dtype_of(x);
  bool same = dtype == pg::dtype_of(weight) && dtype == pg::dtype_of(y);
  if (!same || (call.has(2) && pg::dtype_of(call.in(2)) != dtype)) pg::fail_support("operands must share one dtype");
  ProductShape s;
  s.dtype = dtype;
  s.n = weight.shape[0], s.k = weight.shape[1];
  s.b = {weight.stride[1], weight.stride[0]};
  s.bias = call.has(2);
  if (s.bias) s.bias_stride = call.in(2).stride[0];
  if (call.is("linear_activation")) {
    s.activation = call.attr<int>("activation") == 0 ? Activation::kRelu : Activation::kGeluTanh;
  }
  uint32_t last = x.rank - 1;
  s.m = last > 0 ? x.shape[last - 1] : 1;
  s.a = {last > 0 ? x.stride[last - 1] : s.k, x.stride[last]};
  s.c = {last > 0 ? y.stride[last - 1] : std::max<int64_t>(s.n, 1), y.stride[last]};
  for (uint32_t i = 0; i + 1 < last; i++) s.batch.push_back({x.shape[i], x.stride[i], 0, y.stride[i]});
  return s;
}

class Linear final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, call.is("linear_activation") ? kFloats : kNumbers);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be dense");
    read_shape(call);
  }
  Linear(const pg::KernelCall& call, pg::Plan& plan)
      : product_(linalg::make_product(read_shape(call), call.raw->device,
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
