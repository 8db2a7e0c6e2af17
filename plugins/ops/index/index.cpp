// SPDX-License-Identifier: Apache-2.0
// index, its gradient, and index_put: elements at the contents of several index tensors, which stand for axes in a row
// ("advanced indexing" of NumPy and PyTorch).
#include "../positions.hpp"

namespace pg::schema_index {
namespace {

constexpr const char* kIndicesDoc = "int64 or int32, of shapes that broadcast with each other: from 0";

OpBuilder& index_attrs(OpBuilder& op) {
  return op.attr<Axis>("axis", 0, "axis of x that the first index is for; the others are for those behind it")
      .attr<Ints>("shown", {}, "the axes' numbers in messages, from 1; none: those of x")
      .internal();
}

// x with `axis` and those behind it, as many as there are indices, replaced by what the indices broadcast to.
Shape indexed(const ShapeContext& c, uint32_t x, uint32_t indices) {
  auto list = c.group(indices);
  c.need(!list.empty(), "there are no indices; expected at least one");
  Shape common;
  for (size_t k = 0; k < list.size(); k++) {
    c.need(list[k] != nullptr, "indices[%zu] is missing", k + 1);
    uint32_t dtype = dtype_of(*list[k]);
    c.need(dtype == PG_I64 || dtype == PG_I32, "indices[%zu] is %s; expected int64 or int32", k + 1, dtype_name(dtype));
    common = broadcast(common, Shape(*list[k]));
  }
  uint32_t axis = c.check_axis("axis", x), count = static_cast<uint32_t>(list.size());
  c.need(axis + count <= c.rank(x), "%u indices from axis %u on, but %s has %u axes", count, axis + 1,
         c.text(x).c_str(), c.rank(x));
  Shape shape;
  for (uint32_t i = 0; i < axis; i++) shape.push(c.dim(x, i));
  for (uint32_t i = 0; i < common.rank; i++) shape.push(common[i]);
  for (uint32_t i = axis + count; i < c.rank(x); i++) shape.push(c.dim(x, i));
  return shape;
}

void check_fits(const ShapeContext& c, uint32_t values, const Shape& want) {
  Shape shape = broadcast(want, c.shape(values));
  bool fits = shape.rank == want.rank;
  for (uint32_t i = 0; fits && i < want.rank; i++) fits = shape[i].may_equal(want[i]);
  c.need(fits, "%s does not broadcast to %s, the shape of what the indices name", c.text(values).c_str(),
         want.text().c_str());
}

// `op` with these inputs and the attributes that it shares with the one at hand.
Value emit(const ValueContext& c, const OpRef& op, Value x, const std::vector<Value>& indices, Value last,
           uint32_t flags = 0) {
  Call call(c.builder(), op);
  call.copy_attrs(c.info(), c.data()).input(x).inputs(indices);
  if (last) call.input(last);
  return call.emit(flags);
}
Value read(const ValueContext& c, Value x, const std::vector<Value>& indices) {
  static constinit OpRef op("index");
  return emit(c, op, x, indices, Value());
}

// For devices without a kernel: the indices as one row of positions in x with its indexed axes joined.
struct Flat {
  Flat(const ExpandContext& e, Value x, const std::vector<Value>& indices) {
    static constinit OpRef select("index_select", "axis", "shown");
    axis = wrap_axis(e.get<Axis>("axis"), x.rank());
    pg_ints shown = e.get<Ints>("shown");
    int64_t count = static_cast<int64_t>(indices.size()), rank = x.rank(), size = 1;
    for (int64_t k = count; k-- > 0;) {
      int64_t n = known(x.dim(static_cast<uint32_t>(axis + k)));
      int64_t name = k < shown.count ? shown.value[k] : axis + k + 1;
      // Looking the index up in its own positions says what is out of range.
      Value row = reshape(indices[static_cast<size_t>(k)], make_ints({-1}));
      row = Call(x.builder, select).input(positions(x, n, size)).input(row).set(0, 0).set(1, name).emit();
      row = reshape_like(row, indices[static_cast<size_t>(k)]);
      places = places ? places + row : row;
      size *= n;
    }
    for (int64_t i = 0; i < rank; i++) {
      if (i > axis && i < axis + count) continue;
      joined.value[joined.count++] = i == axis ? size : known(x.dim(static_cast<uint32_t>(i)));
    }
    places = reshape(places, make_ints({-1}));
  }
  int64_t axis;
  pg_ints joined{};
  Value places;
};

pg_ints result_shape(Value x, const std::vector<Value>& indices, int64_t axis) {
  Shape common;
  for (Value index : indices) common = broadcast(common, Shape(index.meta()));
  pg_ints shape{};
  auto push = [&](int64_t d) { shape.value[shape.count++] = known(d); };
  for (int64_t i = 0; i < axis; i++) push(x.dim(static_cast<uint32_t>(i)));
  for (uint32_t i = 0; i < common.rank; i++) push(common.dims[i]);
  for (uint32_t i = static_cast<uint32_t>(axis) + static_cast<uint32_t>(indices.size()); i < x.rank(); i++)
    push(x.dim(i));
  return shape;
}

const bool declared = [] {
  index_attrs(declare_op("index").category("index"))
      .doc(
          "y[i...] = x[indices[1][i...]][indices[2][i...]]...: the elements, or for axes of x without an index the "
          "slices, at the contents of index tensors. An index out of range is an error that names it.")
      .input("x", kStored, "[...]")
      .input("indices", kInteger, kIndicesDoc, PG_INPUT_VARIADIC)
      .output("y", "x with the indexed axes replaced by what the indices broadcast to")
      .shape([](ShapeContext& c) { c.out(0).set(c.dtype(0), indexed(c, 0, 1)); })
      .saves("indices")
      .grad([](GradContext& g) {
        static constinit OpRef op("index_grad");
        g.din(0) = emit(g, op, g.dout(0), g.group(1), g.in(0));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef select("index_select", "axis");
        Value x = e.in(0);
        Flat flat(e, x, e.group(1));
        Value rows =
            Call(e.builder(), select).input(reshape(x, flat.joined)).input(flat.places).set(0, flat.axis).emit();
        e.out(0) = reshape(rows, result_shape(x, e.group(1), flat.axis));
      });

  index_attrs(declare_op("index_grad").category("index"))
      .doc("Zeros in the shape of x, plus each element of dy where index read it; equal places add up, in order.")
      .input("dy", kReal, "shape of index(x, indices)")
      .input("indices", kInteger, kIndicesDoc, PG_INPUT_VARIADIC)
      .input("x", kReal, "[...]", PG_INPUT_META)
      .output("dx", "shape of x, dtype of dy")
      .shape([](ShapeContext& c) {
        Shape want = indexed(c, 2, 1);
        c.check_rank(0, want.rank, want.rank);
        for (uint32_t i = 0; i < want.rank; i++) c.check_dim(0, i, want[i], "the shape of what the indices name");
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("indices")
      .grad([](GradContext& g) { g.din(0) = read(g, g.dout(0), g.group(1)); })
      .decompose([](ExpandContext& e) {
        static constinit OpRef add("index_select_grad", "axis");
        Value x = e.in(2), dy = e.in(0);
        Flat flat(e, x, e.group(1));
        pg_ints rows = flat.joined;
        rows.value[flat.axis] = known(flat.places.dim(0));
        Value like = cast(reshape(zeros_like(x), flat.joined), dy.dtype());
        Value dx =
            Call(e.builder(), add).input(reshape(dy, rows)).input(flat.places).input(like).set(0, flat.axis).emit();
        e.out(0) = reshape_like(dx, x);
      });

  index_attrs(declare_op("index_put").category("index"))
      .attr<bool>("accumulate", false, "add to what stands there; otherwise of equal places the last one stays")
      .doc(
          "x with values written, or added, where `index` would read. An index out of range is an error that names it, "
          "and nothing is written.")
      .input("x", kStoredReal, "[...]")
      .input("indices", kInteger, kIndicesDoc, PG_INPUT_VARIADIC)
      .input("values", kStoredReal, "dtype of x, a shape that broadcasts to that of index(x, indices)")
      .output("y", "shape of x")
      .traits(PG_OP_IN_PLACE)
      .numeric(PG_NUMERIC_WIDEST)
      .shape([](ShapeContext& c) {
        c.check_same_dtype(2, 0);
        c.need(!c.get<bool>("accumulate") || dtype_class(c.dtype(0)) != PG_M_FLOAT8,
               "%s is not added; convert it first, x:to(\"float32\")", dtype_name(c.dtype(0)));
        check_fits(c, 2, indexed(c, 0, 1));
        c.out(0) = c.in(0);
      })
      .saves("indices")
      .grad([](GradContext& g) {
        static constinit OpRef op("index_put", "axis", "shown");
        Value dy = g.dout(0);
        bool adds = g.get<bool>("accumulate");
        if (g.needed(0)) {
          g.din(0) = adds ? dy : emit(g, op, dy, g.group(1), zeros_like(g.in(2)));
        }
        if (g.needed(2)) g.din(2) = sum_like(read(g, dy, g.group(1)), g.in(2));
      })
      .decompose([](ExpandContext& e) {
        static constinit OpRef write("scatter", "axis"), add("scatter_add", "axis"), expand("expand", "shape");
        Value x = e.in(0);
        Flat flat(e, x, e.group(1));
        pg_ints rows = flat.joined, along{};
        rows.value[flat.axis] = known(flat.places.dim(0));
        for (int64_t i = 0; i < rows.count; i++) along.value[along.count++] = i == flat.axis ? rows.value[i] : 1;
        Value index = Call(e.builder(), expand).input(reshape(flat.places, along)).set(0, rows).emit();
        pg_ints whole = result_shape(x, e.group(1), flat.axis);
        Value src = reshape(Call(e.builder(), expand).input(e.in(2)).set(0, whole).emit(), rows);
        const OpRef& op = e.get<bool>("accumulate") ? add : write;
        Value y = Call(e.builder(), op).input(reshape(x, flat.joined)).input(index).input(src).set(0, flat.axis).emit();
        e.out(0) = reshape_like(y, x);
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_index
