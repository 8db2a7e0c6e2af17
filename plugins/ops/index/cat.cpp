// SPDX-License-Identifier: Apache-2.0
// cat, and its gradient for sizes that are not known yet.
#include "../rules.hpp"

namespace pg::schema_cat {
namespace {

// Shape of the members behind each other along `axis`.
Shape joined(const ShapeContext& c, uint32_t group, uint32_t* axis) {
  auto xs = c.group(group);
  const char* name = c.name(group);
  c.need(!xs.empty(), "%s is empty; expected at least one tensor", name);
  for (size_t k = 0; k < xs.size(); k++) c.need(xs[k] != nullptr, "%s[%zu] is missing", name, k + 1);
  const pg_tensor& first = *xs[0];
  c.need(first.rank > 0, "%s[1] has no axes; tensors to join need at least one", name);
  int64_t given = c.get<Axis>("axis"), at = wrap_axis(given, first.rank);
  c.need(at >= 0, "axis %lld is out of range for %s[1] %s; expected 1..%u or -%u..-1",
         static_cast<long long>(given >= 0 ? given + 1 : given), name, shape_text(first).c_str(), first.rank,
         first.rank);
  *axis = static_cast<uint32_t>(at);
  Shape shape(first);
  for (size_t k = 1; k < xs.size(); k++) {
    const pg_tensor& x = *xs[k];
    bool fits = x.rank == first.rank;
    for (uint32_t i = 0; fits && i < x.rank; i++) fits = i == *axis || dim_equal(x.shape[i], first.shape[i]);
    c.need(fits, "%s[%zu] %s does not fit %s[1] %s; only axis %u may differ", name, k + 1, shape_text(x).c_str(), name,
           shape_text(first).c_str(), *axis + 1);
    c.need(dtype_of(x) == dtype_of(first), "%s[%zu] is %s; expected %s", name, k + 1, dtype_name(dtype_of(x)),
           dtype_name(dtype_of(first)));
    shape.dims[*axis] = (shape[*axis] + Dim(x.shape[*axis])).value;
  }
  return shape;
}

// dy cut at plain positions into views; false where a size is a symbol.
template <class Emit>
bool cut(Value dy, const std::vector<Value>& xs, int64_t axis, Emit emit) {
  static constinit OpRef op("slice", "starts", "stops");
  axis = wrap_axis(axis, dy.rank());
  for (Value x : xs)
    if (PG_DIM_IS_SYMBOLIC(x.dim(static_cast<uint32_t>(axis)))) return false;
  int64_t start = 0;
  for (size_t k = 0; k < xs.size(); k++) {
    int64_t stop = start + xs[k].dim(static_cast<uint32_t>(axis));
    pg_ints starts{}, stops{};
    starts.count = stops.count = axis + 1;
    for (int64_t i = 0; i < axis; i++) stops.value[i] = INT64_MAX;
    starts.value[axis] = start;
    stops.value[axis] = stop;
    emit(k, [&] { return Call(dy.builder, op).input(dy).set(0, starts).set(1, stops).emit(); });
    start = stop;
  }
  return true;
}

void differentiate(GradContext& g) {
  static constinit OpRef whole("cat_grad", "axis");
  std::vector<Value> xs = g.group(0);
  int64_t axis = g.get<Axis>("axis");
  auto store = [&](size_t k, auto part) {
    if (g.needed(0, static_cast<uint32_t>(k))) g.din(0, static_cast<uint32_t>(k)) = part();
  };
  if (cut(g.dout(0), xs, axis, store)) return;
  std::vector<Value> parts(xs.size());
  Call(g.builder(), whole)
      .input(g.dout(0))
      .inputs(xs)
      .set(0, axis)
      .emit(parts.data(), static_cast<uint32_t>(parts.size()));
  for (uint32_t k = 0; k < parts.size(); k++)
    if (g.needed(0, k)) g.din(0, k) = parts[k];
}

PG_OP("cat")
    .category("index")
    .doc("The tensors behind each other along `axis`.")
    .input("xs", kStored, "equal shapes but for `axis`", PG_INPUT_VARIADIC | PG_INPUT_PROMOTE)
    .attr<Axis>("axis", 0, "axis to join along")
    .output("y", "their shape, with the sizes of `axis` added up")
    .shape([](ShapeContext& c) {
      uint32_t axis;
      Shape shape = joined(c, 0, &axis);
      c.out(0).set(dtype_of(*c.group(0)[0]), shape);
    })
    .grad(differentiate);

PG_OP("cat_grad")
    .category("index")
    .doc("dy cut into parts of the sizes of xs along `axis`.")
    .input("dy", kStored, "the shape of cat(xs)")
    .input("xs", kStored, "equal shapes but for `axis`", PG_INPUT_VARIADIC | PG_INPUT_META)
    .attr<Axis>("axis", 0, "axis to cut")
    .output("dxs", "shapes of xs", PG_OUTPUT_VARIADIC, 1)
    .shape([](ShapeContext& c) {
      uint32_t axis;
      Shape want = joined(c, 1, &axis);
      c.check_rank(0, want.rank, want.rank);
      for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of cat(xs)");
      for (uint32_t k = 0; k < c.group(1).size(); k++) c.out(k).set(c.dtype(0), Shape(*c.group(1)[k]));
    })
    .grad([](GradContext& g) {
      static constinit OpRef op("cat", "axis");
      std::vector<Value> parts;
      for (uint32_t k = 0; k < g.output_count(); k++) parts.push_back(g.dout(k) ? g.dout(k) : zeros_like(g.out(k)));
      g.din(0) = Call(g.builder(), op).inputs(parts).set(0, g.get<Axis>("axis")).emit();
    })
    .decompose([](ExpandContext& e) {
      bool known = cut(e.in(0), e.group(1), e.get<Axis>("axis"),
                       [&](size_t k, auto part) { e.out(static_cast<uint32_t>(k)) = clone(part()); });
      if (!known) fail_support("sizes along the axis are not known yet");
    });

}  // namespace
}  // namespace pg::schema_cat
