// SPDX-License-Identifier: Apache-2.0
// matmul(x, y; transpose_x, transpose_y): batches broadcast; a 1-D x is a row, a 1-D y a column, and their axis is
// absent from the result.
#include "kernels/product_lines.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {
namespace {

class Matmul final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    check_product_dtype(dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_matmul(call);
  }
  static std::unique_ptr<::cpu::Lines> make_lines(const KernelCall& call) {
    supports(call);
    if (call.in(0).rank < 2 || call.in(1).rank != 2) fail_support("no rows by one matrix");
    return std::make_unique<ProductLines>(read_matmul(call), false);
  }
  Matmul(const KernelCall& call, Plan& plan) : product_(make_product(read_matmul(call), call.in(1).rank == 2)) {
    plan.workspace = product_->workspace();
    plan.pack_bytes[1] = product_->packed_bytes();
  }
  void launch(const pg_launch& launch) override {
    const void* packed = launch.packed == nullptr ? nullptr : host_pointer<const void>(launch.packed[1]);
    product_->run(
        {input(launch, 0), input(launch, 1), nullptr, output(launch, 0), host_pointer(launch.workspace), packed});
  }
  void pack(uint32_t, const pg_launch& launch, pg_address target) override {
    product_->pack(input(launch, 1), host_pointer(target));
  }

 private:
  std::unique_ptr<Product> product_;
};

PG_KERNEL("matmul", Matmul, 0, 1u << 1);
PG_LINES("matmul", Matmul);

}  // namespace
}  // namespace pg::cpu
