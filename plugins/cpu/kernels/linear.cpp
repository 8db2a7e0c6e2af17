// SPDX-License-Identifier: Apache-2.0
// linear(x [..., in], weight [out, in], bias? [out]) -> [..., out]: x weight^T + bias, and linear_activation: the same
// behind an activation.
#include "linalg/product.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {
namespace {

ProductShape read_shape(const KernelCall& call) {
  const pg_tensor &x = call.in(0), &weight = call.in(1), &y = call.out(0);
  if (x.rank < 1 || weight.rank != 2 || x.shape[x.rank - 1] != weight.shape[1]) {
    fail_argument(format("%s: x %s does not fit weight %s", call.raw->op->name, shape_text(x).c_str(),
                         shape_text(weight).c_str()));
  }
  bool same = dtype_of(x) == dtype_of(weight) && dtype_of(x) == dtype_of(y);
  if (!same || (call.has(2) && dtype_of(call.in(2)) != dtype_of(x))) fail_support("operands must share one dtype");
  ProductShape s;
  s.dtype = dtype_of(x);
  s.n = weight.shape[0], s.k = weight.shape[1];
  s.b = {weight.stride[1], weight.stride[0]};
  s.bias = call.has(2);
  if (s.bias) s.bias_stride = call.in(2).stride[0];
  uint32_t last = x.rank - 1;
  s.m = last > 0 ? x.shape[last - 1] : 1;
  s.a = {last > 0 ? x.stride[last - 1] : s.k, x.stride[last]};
  s.c = {last > 0 ? y.stride[last - 1] : std::max<int64_t>(s.n, 1), y.stride[last]};
  if (call.is("linear_activation")) {
    s.activation = call.attr<int>("activation") == 0 ? Activation::kRelu : Activation::kGeluTanh;
  }
  for (uint32_t i = 0; i + 1 < last; i++) s.batch.push_back({x.shape[i], x.stride[i], 0, y.stride[i]});
  return s;
}

class Linear final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    check_product_dtype(dtype_of(call.in(0)));
    bool floats = dtype_class(dtype_of(call.in(0))) == PG_M_FLOAT;
    if (call.is("linear_activation") && !floats) fail_support("activations of floats only");
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_shape(call);
  }
  Linear(const KernelCall& call, Plan& plan) : bias_(call.has(2)), product_(make_product(read_shape(call), true)) {
    plan.workspace = product_->workspace();
    plan.pack_bytes[1] = product_->packed_bytes();
  }
  void launch(const pg_launch& launch) override {
    const void* packed = launch.packed == nullptr ? nullptr : host_pointer<const void>(launch.packed[1]);
    const void* bias = bias_ ? input(launch, 2) : nullptr;
    product_->run(
        {input(launch, 0), input(launch, 1), bias, output(launch, 0), host_pointer(launch.workspace), packed});
  }
  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    product_->pack(input(launch, 1), host_pointer(target));
  }

 private:
  bool bias_;
  std::unique_ptr<Product> product_;
};

PG_KERNEL("linear", Linear, PG_KEY_SHAPES, 1u << 1);
PG_KERNEL("linear_activation", Linear, PG_KEY_SHAPES, 1u << 1);

}  // namespace
}  // namespace pg::cpu
