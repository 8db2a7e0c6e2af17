// SPDX-License-Identifier: Apache-2.0
// Weights as small whole numbers times scales: what quantize, dequantize and quantized_linear share.
//
// A weight [out, in] has a scale for every `in / groups` neighbours of a row: scales are [out, groups]. int8 holds
// -127 to 127. int4 holds -8 to 7, plus 8, two in a byte, the first in the lower half: uint8 [out, in / 2]. The two
// formats of float8 hold a number a byte: uint8 [out, in].
#pragma once

#include "matrix.hpp"

namespace pg::quantized {

enum Format : int32_t { kInt8, kInt4, kE4M3, kE5M2 };

inline constexpr char kWeight[] = "int8 [out, in], of int4 uint8 [out, in / 2], of float8 uint8 [out, in]";
inline constexpr char kScale[] = "[out, groups]: what each group of a row's numbers is multiplied by";

inline OpBuilder& format_attr(OpBuilder& op) {
  return op.choice(
      "format", {"int8", "int4", "float8_e4m3fn", "float8_e5m2"}, kInt8,
      "how numbers lie: int8 one in a byte, int4 two in a byte of uint8, each plus 8, the first below, "
      "float8 one in a byte of uint8: a sign, four bits of exponent and three of fraction, or five and two");
}

inline Format format_of(const AttrReader& a) { return static_cast<Format>(a.get<Choice>("format")); }
inline const char* format_name(Format f) {
  return f == kInt8 ? "int8" : f == kInt4 ? "int4" : f == kE4M3 ? "float8_e4m3fn" : "float8_e5m2";
}

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
  const Format format = format_of(c);
  const uint32_t dtype = format == kInt8 ? PG_I8 : PG_U8;
  c.need(c.dtype(weight) == dtype, "%s; expected %s, as format=\"%s\" holds numbers", c.text(weight).c_str(),
         dtype_name(dtype), format_name(format));
  Dim columns = format == kInt4 ? c.dim(weight, 1) * Dim(2) : c.dim(weight, 1);
  check_scale(c, scale, c.dim(weight, 0), columns);
  return {c.dim(weight, 0), columns};
}

// x [out, in] as [out, groups, in / groups].
inline Value grouped(Value x, Value scale) {
  Dim columns = x.dim(1), groups = scale.dim(1);
  return reshape(x, make_ints({x.dim(0), groups.value, (columns / groups).value}));
}

// ---- float8 ----

// What tells the two apart: bits of the fraction, the least normal number, the largest number's code.
struct Float8 {
  double fraction, least;
  int largest_step;  // the largest power of two of exponents that is tried
  double largest;
};
inline Float8 float8_of(Format f) { return f == kE4M3 ? Float8{8, 0x1p-6, 8, 0x7e} : Float8{4, 0x1p-14, 16, 0x7b}; }

// Numbers, float32 or float64, as the nearest codes (halves to the even one), the largest where they are beyond it.
inline Value float8_codes(Value x, Format f) {
  const Float8 how = float8_of(f);
  Value size = abs(x), exponent = ones_like(size), power = exponent * how.least;
  for (int step = how.largest_step; step > 0; step /= 2) {
    const double factor = static_cast<double>(int64_t{1} << step);
    Value above = ge(size, power * factor);
    power = where(above, power * factor, power);
    exponent = where(above, exponent + static_cast<double>(step), exponent);
  }
  Value code = exponent * how.fraction + (apply<"round">(size / power * how.fraction) - how.fraction);
  code = where(eq(size, size), minimum(code, how.largest), 127.0);
  return cast(where(lt(x, 0.0), code + 128.0, code), PG_U8);
}

// The numbers that codes stand for.
inline Value float8_numbers(Value codes, Format f, uint32_t dtype) {
  const Float8 how = float8_of(f);
  Value all = cast(codes, dtype == PG_F64 ? PG_F64 : PG_F32), negative = ge(all, 128.0);
  Value code = where(negative, all - 128.0, all);
  Value exponent = apply<"floor">(code / how.fraction), fraction = code - exponent * how.fraction;
  Value value = where(gt(exponent, 0.0), fraction + how.fraction, fraction);
  Value left = maximum(exponent - 1.0, 0.0);
  for (int step = how.largest_step; step > 0; step /= 2) {
    Value above = ge(left, static_cast<double>(step));
    value = where(above, value * static_cast<double>(int64_t{1} << step), value);
    left = where(above, left - static_cast<double>(step), left);
  }
  value = value * (how.least / how.fraction);
  const double infinity = static_cast<double>(__builtin_inf()), nan = static_cast<double>(__builtin_nan(""));
  value = f == kE4M3 ? where(eq(code, 127.0), nan, value)
                     : where(gt(code, 124.0), nan, where(eq(code, 124.0), infinity, value));
  return cast(where(negative, -value, value), dtype);
}

// The numbers [out, in] that a weight holds, in a floating dtype.
inline Value numbers(Value weight, Format format, uint32_t dtype) {
  if (format == kInt8) return cast(weight, dtype);
  if (format != kInt4) return float8_numbers(weight, format, dtype);
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

// ---- what the results become ----

inline OpBuilder& activation_attr(OpBuilder& op) {
  return op.choice("activation", {"none", "relu"}, 0, "what the result becomes: itself, or max(y, 0)");
}
inline bool is_relu(const AttrReader& a) { return a.get<Choice>("activation") == 1; }

// Checks x_scale and x_zero_point at `scale` and behind it.
inline void check_activations(const ShapeContext& c, uint32_t scale) {
  const auto kind = c.get<Choice>("activations");
  const Format format = format_of(c);
  c.need(kind == kAsIs || format == kInt8 || format == kInt4,
         "a weight of %s multiplies floats; expected activations=\"floating\"", format_name(format));
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

// x as whole numbers would have it, by a scale (and zero point) for all of it, or where there is none for each row:
// what lies along the axes `last`.
template <class Context>
Value fake_activations(const Context& c, Value x, Value scale, Value zero, const pg_ints& last = make_ints({-1})) {
  const auto kind = c.template get<Choice>("activations");
  if (kind == kAsIs) return x;
  for (int64_t i = 0; i < last.count; i++) {
    if (x.dim(wrap_axis(last.value[i], x.rank())) == 0) return x;
  }
  static constinit OpRef fake("fake_quantize", "low", "high");
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
inline Value into_scale(Value dweight, Value weight, Value scale, Format format) {
  Value wide = widen(dweight), products = wide * numbers(weight, format, wide.dtype());
  return cast(sum(grouped(products, scale), make_ints({2})), scale.dtype());
}

}  // namespace pg::quantized
