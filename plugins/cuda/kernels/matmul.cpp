// SPDX-License-Identifier: Apache-2.0
// matmul(x, y; transpose_x, transpose_y): batches broadcast; a 1-D x is a row, a 1-D y a column, and their axis is
// absent from the result.
#include "linalg/product.hpp"

namespace cuda {
namespace {

class Matmul final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be dense");
    pg::read_matmul(call);
  }
  Matmul(const pg::KernelCall& call, pg::Plan& plan)
      : product_(linalg::make_product(pg::read_matmul(call), call.raw->device, "matmul of " + pg::describe(call))) {
    plan.workspace = product_->workspace();
  }
  void run(const Launch& launch) override {
    product_->run(launch.native(), {launch.in(0), launch.in(1), nullptr, launch.out(0), launch.workspace()});
  }

 private:
  std::unique_ptr<linalg::Product> product_;
};

PG_KERNEL("matmul", Matmul);

}  // namespace
}  // namespace cuda
