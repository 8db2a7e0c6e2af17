// SPDX-License-Identifier: Apache-2.0
// image_to_float: bytes of pictures as numbers for a model. In float32 whatever the result's dtype: one product and one
// sum, each rounded.
#include "../rules.hpp"

namespace pg::schema_image_to_float {
namespace {

// A number a channel, beside channels that lie last or, `first`, before rows and columns.
Value by_channel(Value numbers, bool first) {
  return first && numbers.dim(0) != 1 ? unsqueeze(unsqueeze(numbers, -1), -1) : numbers;
}

const bool declared = [] {
  declare_op("image_to_float")
      .category("neural")
      .doc("x * scale + shift of pictures of bytes, by channels, which may be brought before rows and columns.")
      .input("x", kInteger, "uint8 [..., rows, columns, channels]")
      .input("scale", kFloating, "float32 [channels] or [1]")
      .input("shift", kFloating, "shape of scale")
      .attr<bool>("channels_first", false, "the result is [..., channels, rows, columns]")
      .attr<Dtype>("dtype", PG_F32, "of the result, a floating one: what float32 gives, rounded")
      .output("y", "shape of x, or with the channels third from the end")
      .traits(PG_OP_NO_GRAD)
      .shape([](ShapeContext& c) {
        c.need(c.dtype(0) == PG_U8, "x is %s; expected uint8", dtype_name(c.dtype(0)));
        c.check_rank(0, 3);
        for (uint32_t i : {1u, 2u}) {
          c.need(c.dtype(i) == PG_F32, "%s is %s; expected float32", c.name(i), dtype_name(c.dtype(i)));
          c.check_rank(i, 1, 1);
        }
        Shape y = c.shape(0);
        const Dim channels = y[y.rank - 1];
        if (!c.dim(1, 0).is(1)) c.check_dim(1, 0, channels, "one number a channel");
        c.check_same_shape(2, 1);
        if (c.get<bool>("channels_first")) {
          y.erase(y.rank - 1);
          y.insert(y.rank - 2, channels);
        }
        const uint32_t dtype = c.get<Dtype>("dtype");
        c.need(dtype_class(dtype) == PG_M_FLOAT, "dtype is %s; expected a floating one", dtype_name(dtype));
        c.out(0).set(dtype, y);
      })
      .decompose([](ExpandContext& e) {
        const bool first = e.get<bool>("channels_first");
        Value y = cast(e.in(0), PG_F32);
        if (first) {
          pg_ints axes{};
          axes.count = y.rank();
          for (uint32_t i = 0; i + 3 < y.rank(); i++) axes.value[i] = i;
          axes.value[y.rank() - 3] = y.rank() - 1;
          axes.value[y.rank() - 2] = y.rank() - 3, axes.value[y.rank() - 1] = y.rank() - 2;
          y = permute(y, axes);
        }
        y = y * by_channel(e.in(1), first) + by_channel(e.in(2), first);
        const uint32_t dtype = e.get<Dtype>("dtype");
        e.out(0) = dtype == PG_F32 ? y : cast(y, dtype);
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_image_to_float
