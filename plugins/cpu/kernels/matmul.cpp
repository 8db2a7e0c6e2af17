// SPDX-License-Identifier: Apache-2.0
// matmul(x, y; transpose_x, transpose_y): batches broadcast; a 1-D x is a row, a 1-D y a column, and their axis is
// absent from the result.
#include "linalg/product.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {
namespace {

// The last two axes of an operand, and how many batch axes it has.
struct Operand {
  int64_t rows, columns;
  Strides strides;
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

// The step of batch axis `axis` (counted from the innermost) of an operand; 0 where it broadcasts.
int64_t batch_step(const pg_tensor& t, const Operand& o, uint32_t axis) {
  if (axis >= o.batch) return 0;
  uint32_t i = o.batch - 1 - axis;
  return t.shape[i] == 1 ? 0 : t.stride[i];
}

ProductShape read_shape(const KernelCall& call) {
  const pg_tensor &x = call.in(0), &y = call.in(1), &z = call.out(0);
  if (x.rank == 0 || y.rank == 0) fail_argument("matmul: 0-dimensional operands have no product");
  if (dtype_of(x) != dtype_of(y) || dtype_of(x) != dtype_of(z)) fail_support("operands must share one dtype");
  Operand a = read_operand(x, call.attr<bool>("transpose_x"), true);
  Operand b = read_operand(y, call.attr<bool>("transpose_y"), false);
  if (a.columns != b.rows) {
    fail_argument(format("matmul: cannot multiply %s by %s", shape_text(x).c_str(), shape_text(y).c_str()));
  }
  ProductShape s;
  s.dtype = dtype_of(x);
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
  static void supports(const KernelCall& call) {
    check_product_dtype(dtype_of(call.in(0)));
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
    read_shape(call);
  }
  Matmul(const KernelCall& call, Plan& plan) : product_(make_product(read_shape(call), call.in(1).rank == 2)) {
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

PG_KERNEL("matmul", Matmul, PG_KEY_SHAPES, 1u << 1);

}  // namespace
}  // namespace pg::cpu
