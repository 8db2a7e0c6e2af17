// SPDX-License-Identifier: Apache-2.0
// linear(x [..., in], weight [out, in], bias? [out]) -> [..., out]: x weight^T + bias, and linear_activation: the same
// behind an activation.
#include "kernels/product_lines.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {
namespace {

class Linear final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    check_product_dtype(dtype_of(call.in(0)));
    bool floats = dtype_class(dtype_of(call.in(0))) == PG_M_FLOAT;
    if (call.is("linear_activation") && !floats) fail_support("activations of floats only");
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_linear(call);
  }
  static std::unique_ptr<::cpu::Lines> make_lines(const KernelCall& call) {
    supports(call);
    return std::make_unique<ProductLines>(read_linear(call), call.has(2));
  }
  Linear(const KernelCall& call, Plan& plan) : bias_(call.has(2)), product_(make_product(read_linear(call), true)) {
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

PG_KERNEL("linear", Linear, 0, 1u << 1);
PG_KERNEL("linear_activation", Linear, 0, 1u << 1);
PG_LINES("linear", Linear);
PG_LINES("linear_activation", Linear);

}  // namespace
}  // namespace pg::cpu
