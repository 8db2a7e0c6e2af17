// SPDX-License-Identifier: Apache-2.0
// matmul(x, y; transpose_x, transpose_y): batches broadcast; a 1-D x is a row, a 1-D y a column, and their axis is
// absent from the result.
#include "linalg/product.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

using linalg::ProductShape;

// The last two axes of an operand, and how many batch axes it has.
struct Operand {
  int64_t rows, columns;
  linalg::Strides strides;
  uint32_t batch;
};

Operand read_operand(const pg_tensor& t, bool transpose, bool row) {
  if (t.rank == 1) {
    return row ? Operand{1, t.shape[0], {t.shape[0], t.stride[0]}, 0} : Operand{t.shape[0], 1, {t.stride[0], 1}, 0};
  }
  uint32_t batch = t.rank - 2;
  Operand o{t.shape[batch], t.shape[batch + 1], {t.stride[batch], t.stride[batch + 1]}, batch};
  if (transpose) std::swap(o.rows, o.columns), std::swap(o.strides.row, o.strides.column);
  return o;
}

// The step of batch axis `axis`, counted from the innermost.
int64_t batch_step(const pg_tensor& t, const Operand& o, uint32_t axis) {
  if (axis >= o.batch) return 0;
  uint32_t i = o.batch - 1 - axis;
  return t.shape[i] == 1 ? 0 : t.stride[i];
}

ProductShape read_shape(const pg::KernelCall& call) {
  const pg_tensor &x = call.in(0), &y = call.in(1), &z = call.out(0);
  if (x.rank == 0 || y.rank == 0) pg::fail_argument("matmul: 0-dimensional operands have no product");
  if (pg::dtype_of(x) != pg::dtype_of(y) || pg::dtype_of(x) != pg::dtype_of(z)) {
    pg::fail_support("operands must share one dtype");
  }
  Operand a = read_operand(x, call.attr<bool>("transpose_x"), true);
  Operand b = read_operand(y, call.attr<bool>("transpose_y"), false);
  if (a.columns != b.rows) {
    pg::fail_argument(
        pg::format("matmul: cannot multiply %s by %s", pg::shape_text(x).c_str(), pg::shape_text(y).c_str()));
  }
  ProductShape s;
  s.dtype = pg::dtype_of(x);
  s.m = a.rows, s.n = b.columns, s.k = a.columns;
  s.a = a.strides, s.b = b.strides;
  uint32_t axis = z.rank;
  s.c.column = y.rank > 1 ? z.stride[--axis] : 1;
  s.c.row = x.rank > 1 ? z.stride[--axis] : std::max<int64_t>(s.n, 1);
  for (uint32_t i = 0; i < axis; i++) {
    s.batch.push_back({z.shape[i], batch_step(x, a, axis - 1 - i), batch_step(y, b, axis - 1 - i), z.stride[i]});
  }
  return s;
}

class Matmul final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be dense");
    read_shape(call);
  }
  Matmul(const pg::KernelCall& call, pg::Plan& plan)
      : product_(linalg::make_product(read_shape(call), call.raw->device, "matmul of " + pg::describe(call))) {
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
