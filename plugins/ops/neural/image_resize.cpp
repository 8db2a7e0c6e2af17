// SPDX-License-Identifier: Apache-2.0
// image_resize and its transpose: pictures whose channels lie last, or a rectangle of each, made into another size by
// Pillow's filters. Of uint8 each axis is rounded on its own, with weights in units of 2^-22, as Pillow does: columns
// first.
#include <numbers>

#include "../positions.hpp"

namespace pg::schema_image_resize {
namespace {

enum Filter { kNearest, kBilinear, kBicubic, kLanczos, kArea };
constexpr double kSupport[] = {0, 1, 2, 3, 0.5}, kUnit = 1 << 22;

OpBuilder& resize_attrs(OpBuilder& op) {
  return op.attr<Ints>("size", make_ints({0, 0}), "rows and columns of the result")
      .required()
      .pair()
      .choice("filter", {"nearest", "bilinear", "bicubic", "lanczos", "area"}, kBilinear,
              "how pixels are weighed: not at all; by a triangle; by Keys' cubic, a = -0.5; by three lobes of a sinc; "
              "by the area that a new pixel covers")
      .attr<bool>("antialias", true, "a picture that becomes smaller: the filter covers what a new pixel covers");
}

Shape resized(const ShapeContext& c, uint32_t x, uint32_t box) {
  c.check_rank(x, 3);
  const pg_ints size = c.get<Ints>("size");
  c.need(size.count == 1 || size.count == 2, "size has %lld numbers; expected 2", static_cast<long long>(size.count));
  Shape shape = c.shape(x);
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t axis = shape.rank - 3 + i;
    c.need(!shape[axis].is(0), "%s: axis %u is empty; there is nothing to resize", c.text(x).c_str(), axis + 1);
    shape.dims[axis] = size.value[size.count == 1 ? 0 : i];
    c.need(shape.dims[axis] >= 1, "size is %lld; expected at least 1", static_cast<long long>(shape.dims[axis]));
  }
  if (!c.has(box)) return shape;
  c.check_rank(box, 1, 2);
  c.check_dim(box, c.rank(box) - 1, 4, "top, left, height and width");
  if (c.rank(box) == 2) {
    c.need(shape.rank == 4, "%s is for pictures [n, rows, columns, channels]; got %s", c.text(box).c_str(),
           c.text(x).c_str());
    c.check_dim(box, 0, shape[0], "a rectangle a picture");
  }
  return shape;
}

void check_pixels(const ShapeContext& c, uint32_t x) {
  c.need(c.dtype(x) == PG_U8 || dtype_class(c.dtype(x)) == PG_M_FLOAT, "%s is %s; expected uint8 or a floating dtype",
         c.name(x), dtype_name(c.dtype(x)));
}

// ---- the decomposition: a matrix [new, old] an axis, in float64 ----

// Column `at` of the rectangles: [1, 1] of one for all, [n, 1, 1] of one a picture.
Value column_of(Value box, int64_t at) {
  static constinit OpRef slice("slice", "starts", "stops");
  pg_ints starts{}, stops{};
  starts.count = stops.count = box.rank();
  for (uint32_t i = 0; i + 1 < box.rank(); i++) stops.value[i] = INT64_MAX;
  starts.value[box.rank() - 1] = at, stops.value[box.rank() - 1] = at + 1;
  return unsqueeze(cast(Call(box.builder, slice).input(box).set(0, starts).set(1, stops).emit(), PG_F64), -1);
}

Value cubic(Value d) {
  constexpr double a = -0.5;
  Value near = ((a + 2) * d - (a + 3)) * d * d + 1.0, far = (((d - 5.0) * d + 8.0) * d - 4.0) * a;
  return where(lt(d, 1.0), near, where(lt(d, 2.0), far, 0.0));
}
Value sinc(Value d) {
  Value angle = d * std::numbers::pi;
  return where(eq(d, 0.0), 1.0, sin(angle) / where(eq(d, 0.0), 1.0, angle));
}

Value weigh(Filter filter, Value d) {
  Value far = abs(d);
  switch (filter) {
    case kBilinear: return maximum(1.0 - far, 0.0);
    case kBicubic: return cubic(far);
    case kLanczos: return where(lt(far, 3.0), sinc(d) * sinc(d / 3.0), 0.0);
    default: return cast(logical_and(gt(d, -0.5), le(d, 0.5)), PG_F64);
  }
}

// What each new pixel of an axis, 0 for rows and 1 for columns, takes of the old ones.
Value matrix_of(const AttrReader& attrs, Value x, Value box, uint32_t axis) {
  const auto filter = static_cast<Filter>(attrs.get<Choice>("filter"));
  const int64_t in = known(x.dim(x.rank() - 3 + axis));
  const pg_ints size = attrs.get<Ints>("size");
  const int64_t out = size.value[size.count == 1 ? 0 : axis];
  Value old = cast(positions(x, in), PG_F64), fresh = unsqueeze(cast(positions(x, out), PG_F64), -1);
  Value zero = unsqueeze(cast(positions(x, 1), PG_F64), -1);
  Value begin = zero, extent = zero + static_cast<double>(in);
  if (box) {  // its edges in float32, as Pillow's are
    Value end = cast(column_of(box, axis) + column_of(box, 2 + axis), PG_F32);
    begin = cast(column_of(box, axis), PG_F32);
    extent = cast(end - begin, PG_F64), begin = cast(begin, PG_F64);
  }
  Value scale = extent / static_cast<double>(out), centre = begin + (fresh + 0.5) * scale;
  if (filter == kNearest) {
    // A step at a time, as Pillow goes: the last bits count at a pixel's edge.
    Value steps = where(eq(fresh, 0.0), begin + scale * 0.5, expand_like(scale, centre));
    Value place = minimum(maximum(floor(cumsum(steps, -2)), 0.0), static_cast<double>(in - 1));
    return cast(eq(old, place), PG_F64);
  }
  Value wide = attrs.get<bool>("antialias") ? maximum(scale, 1.0) : ones_like(scale);
  Value support = wide * kSupport[filter];
  Value first = maximum(floor(centre - support + 0.5), 0.0);
  Value last = minimum(floor(centre + support + 0.5), static_cast<double>(in));
  Value weights = weigh(filter, (old - centre + 0.5) * reciprocal(wide));
  weights = where(logical_and(ge(old, first), lt(old, last)), weights, 0.0);
  return weights / sum(weights, make_ints({-1}), true);
}

// [.., rows, columns, channels] with rows and columns in each other's place.
Value turned(Value x) {
  pg_ints axes{};
  axes.count = x.rank();
  for (uint32_t i = 0; i < x.rank(); i++) axes.value[i] = i;
  std::swap(axes.value[x.rank() - 3], axes.value[x.rank() - 2]);
  return permute(x, axes);
}
// The matrix of each picture is that of all its rows.
Value for_rows(Value matrix) { return matrix.rank() == 3 ? unsqueeze(matrix, 1) : matrix; }

Value rounded(Value x) { return minimum(maximum(floor((x + kUnit / 2) / kUnit), 0.0), 255.0); }
// In whole units: sums of them are exact in float64.
Value in_units(Value weights) { return sign(weights) * floor(abs(weights) * kUnit + 0.5); }

void expand(ExpandContext& e) {
  Value x = e.in(0), box = e.in(1), pixels = cast(x, PG_F64);
  Value rows = for_rows(matrix_of(e, x, box, 0)), columns = for_rows(matrix_of(e, x, box, 1));
  if (x.dtype() == PG_U8) {
    pixels = rounded(matmul(in_units(columns), pixels));
    pixels = turned(rounded(matmul(in_units(rows), turned(pixels))));
  } else {
    pixels = turned(matmul(rows, turned(matmul(columns, pixels))));
  }
  e.out(0) = cast(clone(pixels), x.dtype());
}

void expand_grad(ExpandContext& e) {
  Value x = e.in(1), box = e.in(2), flow = cast(e.in(0), PG_F64);
  Value rows = for_rows(matrix_of(e, x, box, 0)), columns = for_rows(matrix_of(e, x, box, 1));
  Value back = matmul(columns, turned(matmul(rows, turned(flow), true)), true);
  e.out(0) = cast(clone(back), e.in(0).dtype());
}

constexpr char kBox[] = "[4] or [n, 4]: top, left, height and width of the part that is resized; all if not given";

const bool declared = [] {
  resize_attrs(declare_op("image_resize")
                   .category("neural")
                   .doc("Pictures, or a rectangle of each, made into `size`, to Pillow's numbers.")
                   .input("x", kReal, "uint8 or floating [..., rows, columns, channels]")
                   .input("box", kFloating, kBox, PG_INPUT_OPTIONAL))
      .output("y", "[..., size[1], size[2], channels]")
      .shape([](ShapeContext& c) {
        check_pixels(c, 0);
        c.out(0).set(c.dtype(0), resized(c, 0, 1));
      })
      .saves("box")
      .grad([](GradContext& g) {
        static constinit OpRef op("image_resize_grad");
        if (g.needed(0)) g.din(0) = g.call(op, g.dout(0), g.in(0), g.in(1));
      })
      .decompose(expand);

  resize_attrs(declare_op("image_resize_grad")
                   .category("neural")
                   .doc("Gradient of image_resize: each dy spread over the pixels that it was made of.")
                   .input("dy", kFloating, "shape of the resized x")
                   .input("x", kFloating, "[..., rows, columns, channels]", PG_INPUT_META)
                   .input("box", kFloating, kBox, PG_INPUT_OPTIONAL))
      .output("dx", "shape of x")
      .shape([](ShapeContext& c) {
        Shape want = resized(c, 1, 2);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of the resized x");
        c.out(0).set(c.dtype(0), c.shape(1));
      })
      .saves("box")
      .grad([](GradContext& g) {
        static constinit OpRef op("image_resize");
        if (g.needed(0)) g.din(0) = g.call(op, g.dout(0), g.in(2));
      })
      .decompose(expand_grad);
  return true;
}();

}  // namespace
}  // namespace pg::schema_image_resize
