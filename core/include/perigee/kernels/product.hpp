// SPDX-License-Identifier: Apache-2.0
// matmul, linear and linear_activation read as one thing: a batch of matrix products over strided operands. For
// devices whose kernels or libraries compute such products; strides and steps are in elements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "perigee/kernel.hpp"
#include "perigee/kernels/strided.hpp"

namespace pg {

struct MatrixStrides {
  int64_t row = 0, column = 0;
};

struct BatchAxis {
  int64_t size = 1, a = 0, b = 0, c = 0;  // steps, 0 where an operand is broadcast
};

// What is applied to a product's result, as linear_activation's attribute names it.
enum class Activation : int32_t { kNone, kRelu, kGeluTanh };

// c = f(a b, plus a bias [n] on every row): a is [m, k], b [k, n], c [m, n].
struct ProductShape {
  uint32_t dtype = 0;
  int64_t m = 0, n = 0, k = 0;
  MatrixStrides a, b, c;
  std::vector<BatchAxis> batch;  // outermost first
  bool bias = false;
  int64_t bias_stride = 0;
  Activation activation = Activation::kNone;  // of floats

  int64_t batch_count() const {
    int64_t count = 1;
    for (const BatchAxis& axis : batch) count *= axis.size;
    return count;
  }
};

namespace product {

// The last two axes of an operand of matmul, and how many batch axes it has. A 1-D x is a row, a 1-D y a column.
struct Operand {
  int64_t rows, columns;
  MatrixStrides strides;
  uint32_t batch;

  Operand(const pg_tensor& t, bool transpose, bool row) {
    if (t.rank == 1) {
      rows = 1, columns = t.shape[0], strides = {t.shape[0], t.stride[0]}, batch = 0;
      if (!row) std::swap(rows, columns), strides = {t.stride[0], 1};
      return;
    }
    batch = t.rank - 2;
    rows = t.shape[batch], columns = t.shape[batch + 1];
    strides = {t.stride[batch], t.stride[batch + 1]};
    if (transpose) std::swap(rows, columns), std::swap(strides.row, strides.column);
  }

  // The step of batch axis `axis`, counted from the innermost.
  int64_t step(const pg_tensor& t, uint32_t axis) const {
    if (axis >= batch) return 0;
    uint32_t i = batch - 1 - axis;
    return t.shape[i] == 1 ? 0 : t.stride[i];
  }
};

inline void check_dtypes(const KernelCall& call, uint32_t inputs) {
  bool same = dtype_of(call.in(0)) == dtype_of(call.out(0));
  for (uint32_t i = 1; i < inputs; i++) same = same && (!call.has(i) || dtype_of(call.in(i)) == dtype_of(call.in(0)));
  if (!same) fail_support("operands must share one dtype");
}

}  // namespace product

// matmul(x, y; transpose_x, transpose_y): batches broadcast; the axis of a 1-D operand is absent from the result.
// Throws where the operands do not fit.
inline ProductShape read_matmul(const KernelCall& call) {
  const pg_tensor &x = call.in(0), &y = call.in(1), &z = call.out(0);
  if (x.rank == 0 || y.rank == 0) fail_argument("matmul: 0-dimensional operands have no product");
  product::check_dtypes(call, 2);
  product::Operand a(x, call.attr<bool>("transpose_x"), true), b(y, call.attr<bool>("transpose_y"), false);
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
    s.batch.push_back({z.shape[i], a.step(x, axis - 1 - i), b.step(y, axis - 1 - i), z.stride[i]});
  }
  return s;
}

// linear(x [..., in], weight [out, in], bias? [out]) -> [..., out]: x weight^T + bias; linear_activation: the same
// behind an activation. Throws where the operands do not fit.
inline ProductShape read_linear(const KernelCall& call) {
  const pg_tensor &x = call.in(0), &weight = call.in(1), &y = call.out(0);
  if (x.rank < 1 || weight.rank != 2 || x.shape[x.rank - 1] != weight.shape[1]) {
    fail_argument(format("%s: x %s does not fit weight %s", call.raw->op->name, shape_text(x).c_str(),
                         shape_text(weight).c_str()));
  }
  product::check_dtypes(call, 3);
  ProductShape s;
  s.dtype = dtype_of(x);
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

// Drops axes of size 1, merges neighbours that all operands step through evenly, and turns a last axis along which b is
// the same into rows: fewer and larger products.
inline void simplify(ProductShape& s) {
  std::vector<BatchAxis> merged;
  for (const BatchAxis& axis : s.batch) {
    if (axis.size == 1) continue;
    bool even = !merged.empty() && merged.back().a == axis.a * axis.size && merged.back().b == axis.b * axis.size &&
                merged.back().c == axis.c * axis.size;
    if (even)
      merged.back() = {merged.back().size * axis.size, axis.a, axis.b, axis.c};
    else
      merged.push_back(axis);
  }
  s.batch = std::move(merged);
  while (!s.batch.empty() && s.batch.back().b == 0) {
    const BatchAxis last = s.batch.back();
    if (s.m != 1 && (last.a != s.a.row * s.m || last.c != s.c.row * s.m)) break;
    if (s.m == 1) s.a.row = last.a, s.c.row = last.c;
    s.m *= last.size;
    s.batch.pop_back();
  }
}

}  // namespace pg
