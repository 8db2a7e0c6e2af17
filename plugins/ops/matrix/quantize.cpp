// SPDX-License-Identifier: Apache-2.0
// quantize: a weight as whole numbers of eight or four bits, or as float8.
#include "quantized.hpp"

namespace pg::schema_quantize {
namespace {

using namespace quantized;

Value column(Value pairs, int64_t which) {
  static constinit OpRef slice("slice", "starts", "drop");
  return Call(pairs.builder, slice).input(pairs).set(0, pg_ints{3, {0, 0, which}}).set(1, pg_ints{3, {0, 0, 1}}).emit();
}

// Numbers from 0 to 15, two in a byte.
Value packed(Value x) {
  Value pairs = reshape(x, make_ints({x.dim(0), (Dim(x.dim(1)) / Dim(2)).value, 2}));
  return cast(column(pairs, 0) + column(pairs, 1) * 16.0, PG_U8);
}

void declare() {
  OpBuilder& op =
      declare_op("quantize")
          .category("matrix")
          .doc(
              "A weight as whole numbers: x / scale, rounded to the nearest (halves to the even one) and kept within "
              "-127..127 of int8 and -8..7 of int4; NaN becomes 0. As float8: the nearest number of the format, its "
              "largest (448 or 57344) for what is beyond; NaN stays. dequantize is the way back.")
          .input("x", kFloating, "[out, in]; of int4 an even in", PG_INPUT_PROMOTE)
          .input("scale", kFloating, kScale, PG_INPUT_PROMOTE);
  format_attr(op)
      .output("q", kWeight)
      .traits(PG_OP_NO_GRAD)
      .shape([](ShapeContext& c) {
        c.check_rank(0, 2, 2);
        c.check_same_dtype(1, 0);
        Dim rows = c.dim(0, 0), columns = c.dim(0, 1);
        check_scale(c, 1, rows, columns);
        const Format format = format_of(c);
        if (format != kInt4) return void(c.out(0).set(format == kInt8 ? PG_I8 : PG_U8, {rows, columns}));
        c.need(columns.symbolic() || columns.value % 2 == 0,
               "%s has rows of %lld numbers; int4 needs an even number, two share a byte", c.text(0).c_str(),
               static_cast<long long>(columns.value));
        c.out(0).set(PG_U8, {rows, columns / Dim(2)});
      })
      .decompose([](ExpandContext& e) {
        Value x = widen(e.in(0)), scale = widen(e.in(1));
        Value parts = grouped(x, scale) / unsqueeze(scale, 2);
        const Format format = format_of(e);
        if (format == kE4M3 || format == kE5M2) {
          e.out(0) = float8_codes(reshape_like(parts, x), format);
          return;
        }
        parts = apply<"round">(parts);
        Value whole = reshape_like(where(eq(parts, parts), parts, 0.0), x);
        const bool four = format == kInt4;
        whole = minimum(maximum(whole, four ? -8.0 : -127.0), four ? 7.0 : 127.0);
        e.out(0) = four ? packed(whole + 8.0) : cast(whole, PG_I8);
      });
}

[[maybe_unused]] const bool declared = (declare(), true);

}  // namespace
}  // namespace pg::schema_quantize
