// SPDX-License-Identifier: Apache-2.0
// Weights as small whole numbers times scales: what quantize, dequantize and quantized_linear share.
//
// A weight [out, in] has a scale for every `in / groups` neighbours of a row: scales are [out, groups]. int8 holds
// -127 to 127. int4 holds -8 to 7, plus 8, two in a byte, the first in the lower half: uint8 [out, in / 2].
#pragma once

#include "matrix.hpp"

namespace pg::quantized {

enum Format : int32_t { kInt8, kInt4 };

inline constexpr char kWeight[] = "int8 [out, in], or of int4 uint8 [out, in / 2]";
inline constexpr char kScale[] = "[out, groups]: what each group of a row's numbers is multiplied by";

inline OpBuilder& format_attr(OpBuilder& op) {
  return op.choice("format", {"int8", "int4"}, kInt8,
                   "how numbers lie: int8 one in a byte, int4 two in a byte of uint8, each plus 8, the first below");
}

inline bool is_int4(const AttrReader& a) { return a.get<Choice>("format") == kInt4; }

// Checks scales against rows and columns of a weight.
inline void check_scale(const ShapeContext& c, uint32_t scale, Dim rows, Dim columns) {
  c.check_rank(scale, 2, 2);
  c.check_dim(scale, 0, rows, "the number of rows");
  Dim groups = c.dim(scale, 1);
  c.need(groups.symbolic() || groups.value > 0, "%s has no groups; expected at least 1", c.text(scale).c_str());
  if (groups.symbolic() || columns.symbolic()) return;
  c.need(columns.value % groups.value == 0, "%s has %lld groups, which do not divide rows of %lld numbers",
         c.text(scale).c_str(), static_cast<long long>(groups.value), static_cast<long long>(columns.value));
}

// Checks a quantised weight with its scales; [out, in].
inline Shape check_weight(const ShapeContext& c, uint32_t weight, uint32_t scale) {
  c.check_rank(weight, 2, 2);
  const bool packed = is_int4(c);
  const uint32_t dtype = packed ? PG_U8 : PG_I8;
  c.need(c.dtype(weight) == dtype, "%s; expected %s, as format=\"%s\" holds numbers", c.text(weight).c_str(),
         dtype_name(dtype), packed ? "int4" : "int8");
  Dim columns = packed ? c.dim(weight, 1) * Dim(2) : c.dim(weight, 1);
  check_scale(c, scale, c.dim(weight, 0), columns);
  return {c.dim(weight, 0), columns};
}

// x [out, in] as [out, groups, in / groups].
inline Value grouped(Value x, Value scale) {
  Dim columns = x.dim(1), groups = scale.dim(1);
  return reshape(x, make_ints({x.dim(0), groups.value, (columns / groups).value}));
}

// The numbers [out, in] that a weight holds, in a floating dtype.
inline Value numbers(Value weight, bool packed, uint32_t dtype) {
  if (!packed) return cast(weight, dtype);
  static constinit OpRef stack("stack", "axis");
  Value upper = floor_div(weight, 16.0), both[] = {weight - upper * 16.0, upper};
  Value pairs = Call(weight.builder, stack).inputs(both).set(0, -1).emit();
  return cast(reshape(pairs, make_ints({weight.dim(0), (Dim(weight.dim(1)) * Dim(2)).value})), dtype) - 8.0;
}

// ---- activations ----

enum Activations : int32_t { kAsIs, kRowsInt8, kRowsUint8 };

inline OpBuilder& activations_attr(OpBuilder& op, const char* doc) {
  return op.choice("activations", {"floating", "int8", "uint8"}, kAsIs, doc);
}

// Checks x_scale and x_zero_point at `scale` and behind it.
inline void check_activations(const ShapeContext& c, uint32_t scale) {
  const auto kind = c.get<Choice>("activations");
  const uint32_t zero = scale + 1;
  for (uint32_t i : {scale, zero}) {
    if (!c.has(i)) continue;
    c.need(kind != kAsIs, "%s is given, but activations=\"floating\" are not quantised", c.name(i));
    c.check_same_dtype(i, 0);
    c.check_rank(i, 1, 1);
    c.check_dim(i, 0, 1, "one number for all of x");
  }
  c.need(!c.has(zero) || kind == kRowsUint8, "%s is given, but int8 is symmetric: its zero is 0", c.name(zero));
  c.need(kind != kRowsUint8 || c.has(scale) == c.has(zero), "uint8 takes both %s and %s, or none of them",
         c.name(scale), c.name(zero));
}

// x as whole numbers would have it, by a scale (and zero point) for all of it, or where there is none for each row.
template <class Context>
Value fake_activations(const Context& c, Value x, Value scale, Value zero) {
  const auto kind = c.template get<Choice>("activations");
  if (kind == kAsIs || x.dim(x.rank() - 1) == 0) return x;
  static constinit OpRef fake("fake_quantize", "low", "high");
  const pg_ints last = make_ints({-1});
  auto or_one = [](Value s) { return where(eq(s, 0.0), 1.0, s); };
  if (!scale && kind == kRowsInt8) scale = or_one(amax(abs(x), last, true) / 127.0);
  if (!scale) {
    Value low = minimum(reduce<"amin">(x, last, true), 0.0);
    scale = or_one((maximum(amax(x, last, true), 0.0) - low) / 255.0);
    zero = apply<"round">(-(low / scale));
  }
  return Call(x.builder, fake)
      .input(x)
      .input(scale)
      .input(zero)
      .set(0, kind == kRowsInt8 ? -127 : 0)
      .set(1, kind == kRowsInt8 ? 127 : 255)
      .emit();
}

// What flows into the scales, of what flows into the weight that they make.
inline Value into_scale(Value dweight, Value weight, Value scale, bool packed) {
  Value wide = widen(dweight), products = wide * numbers(weight, packed, wide.dtype());
  return cast(sum(grouped(products, scale), make_ints({2})), scale.dtype());
}

}  // namespace pg::quantized
