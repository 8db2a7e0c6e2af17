// SPDX-License-Identifier: Apache-2.0
// adaptive_avg_pool1d, 2d, 3d: each a composition, since a mean over a block is one over each axis in turn.
#include "window.hpp"

namespace pg::schema_adaptive_avg_pool {
namespace {

template <uint32_t axes>
struct Text;
template <>
struct Text<1> {
  static constexpr const char *pool = "adaptive_avg_pool1d", *fixed = "avg_pool1d", *fixed_grad = "avg_pool1d_grad",
                              *x = "[N, C, L]", *y = "[N, C, L']";
};
template <>
struct Text<2> {
  static constexpr const char *pool = "adaptive_avg_pool2d", *fixed = "avg_pool2d", *fixed_grad = "avg_pool2d_grad",
                              *x = "[N, C, H, W]", *y = "[N, C, H', W']";
};
template <>
struct Text<3> {
  static constexpr const char *pool = "adaptive_avg_pool3d", *fixed = "avg_pool3d", *fixed_grad = "avg_pool3d_grad",
                              *x = "[N, C, D, H, W]", *y = "[N, C, D', H', W']";
};

constexpr int kArea = 3;  // of resample's choices

Value resample(Value x, int64_t axis, int64_t size) {
  static constinit OpRef op("resample", "axis", "size", "mode");
  return Call(x.builder, op).input(x).set(0, axis).set(1, size).set(2, kArea).emit();
}
Value resample_grad(Value dy, Value x, int64_t axis, int64_t size) {
  static constinit OpRef op("resample_grad", "axis", "size", "mode");
  return Call(dy.builder, op).input(dy).input(x).set(0, axis).set(1, size).set(2, kArea).emit();
}

// Both axes of images at once.
Value resample2d(Value x, int64_t rows, int64_t columns) {
  static constinit OpRef op("resample2d", "size", "mode");
  return Call(x.builder, op).input(x).set(0, make_ints({rows, columns})).set(1, kArea).emit();
}
Value resample2d_grad(Value dy, Value x, int64_t rows, int64_t columns) {
  static constinit OpRef op("resample2d_grad", "size", "mode");
  return Call(dy.builder, op).input(dy).input(x).set(0, make_ints({rows, columns})).set(1, kArea).emit();
}

// 16-bit floats go through float32, so that they are rounded once.
uint32_t wide(uint32_t dtype) { return dtype == PG_F16 || dtype == PG_BF16 ? uint32_t{PG_F32} : dtype; }

template <uint32_t axes>
struct Sizes {
  int64_t in[axes], out[axes];
  bool one = true, even = true;  // all results are of size 1; all windows are of one size and do not overlap

  Sizes(Value x, const pg_ints& wanted) {
    for (uint32_t i = 0; i < axes; i++) {
      in[i] = x.dim(i + 2);
      int64_t size = wanted.value[wanted.count == 1 ? 0 : i];
      out[i] = size == -1 ? in[i] : size;
      bool known = !PG_DIM_IS_SYMBOLIC(in[i]) && !PG_DIM_IS_SYMBOLIC(out[i]);
      one = one && out[i] == 1;
      even = even && (in[i] == out[i] || (known && in[i] % out[i] == 0));
    }
  }
  // Whether both axes of images change.
  bool both() const { return axes == 2 && in[0] != out[0] && in[axes - 1] != out[axes - 1]; }
  pg_ints kernel() const {
    pg_ints list{};
    for (uint32_t i = 0; i < axes; i++) list.value[list.count++] = in[i] == out[i] ? 1 : in[i] / out[i];
    return list;
  }
};

template <uint32_t axes>
Value pool(Value x, const pg_ints& wanted) {
  Sizes<axes> sizes(x, wanted);
  if (sizes.one) {
    pg_ints all{};
    for (uint32_t i = 0; i < axes; i++) all.value[all.count++] = i + 2;
    return mean(x, all, true);
  }
  if (sizes.even) {
    static constinit OpRef op(Text<axes>::fixed, "kernel");
    return Call(x.builder, op).input(x).set(0, sizes.kernel()).emit();
  }
  if constexpr (axes == 2)
    if (sizes.both()) return resample2d(x, sizes.out[0], sizes.out[1]);
  Value y = cast(x, wide(x.dtype()));
  for (uint32_t i = 0; i < axes; i++)
    if (sizes.in[i] != sizes.out[i]) y = resample(y, i + 2, sizes.out[i]);
  return cast(y, x.dtype());
}

template <uint32_t axes>
Value pool_grad(Value dy, Value x, const pg_ints& wanted) {
  Sizes<axes> sizes(x, wanted);
  if (sizes.even) {
    static constinit OpRef op(Text<axes>::fixed_grad, "kernel");
    return Call(x.builder, op).input(dy).input(x).set(0, sizes.kernel()).emit();
  }
  if constexpr (axes == 2)
    if (sizes.both()) return resample2d_grad(dy, x, sizes.out[0], sizes.out[1]);
  // What each axis was resampled from: x, with the axes before it resampled already.
  Value from[axes], dx = cast(dy, wide(x.dtype()));
  from[0] = cast(x, wide(x.dtype()));
  for (uint32_t i = 1; i < axes; i++) from[i] = resample(from[i - 1], i + 1, sizes.out[i - 1]);
  for (uint32_t i = axes; i-- > 0;) dx = resample_grad(dx, from[i], i + 2, sizes.out[i]);
  return cast(dx, x.dtype());
}

template <uint32_t axes>
void declare() {
  using T = Text<axes>;
  declare_op(T::pool)
      .category("neural")
      .template attr<Ints>("size", repeated(axes, 0), "size of the result along each axis; -1 keeps an axis")
      .required()
      .pair()
      .doc(
          "Mean of each of `size` windows an axis: output o of n is over floor(o s / n) up to ceil((o + 1) s / n) of s "
          "elements.")
      .input("x", kFloating, T::x)
      .output("y", T::y)
      .shape([](ShapeContext& c) {
        c.check_rank(0, axes + 2, axes + 2);
        c.out(0).set(c.dtype(0), adaptive_shape(c, axes));
      })
      .saves("x")
      .grad([](GradContext& g) { g.din(0) = pool_grad<axes>(g.dout(0), g.in(0), g.get<Ints>("size")); })
      .decompose([](ExpandContext& e) { e.out(0) = pool<axes>(e.in(0), e.get<Ints>("size")); });
}

const bool declared = [] {
  declare<1>();
  declare<2>();
  declare<3>();
  return true;
}();

}  // namespace
}  // namespace pg::schema_adaptive_avg_pool
