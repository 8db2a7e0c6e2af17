// SPDX-License-Identifier: Apache-2.0
// sort and what needs only a part of the order: argsort, topk, kthvalue, median, nanmedian, mode. NaN counts as larger
// than all numbers.
#include <algorithm>

#include "../rules.hpp"

namespace pg::schema_sort {
namespace {

// Values and positions along an axis flow back to where they came from.
void scatter_back(GradContext& g, bool keeps_axis) {
  static constinit OpRef op("gather_grad", "axis");
  Value dy = g.dout(0), at = g.out(1);
  if (!dy || !g.needed(0)) return;
  int64_t axis = g.get<Axis>("axis");
  if (!keeps_axis) {
    int64_t rank = g.in(0).rank();
    if (axis < 0) axis += std::max<int64_t>(rank, 1);
    if (rank > 0) dy = unsqueeze(dy, axis), at = unsqueeze(at, axis);
  }
  g.din(0) = Call(g.builder(), op).input(dy).input(at).input(g.in(0)).set(0, axis).emit();
}

OpBuilder& line_op(const char* name, const char* doc) {
  return declare_op(name)
      .category("index")
      .doc(doc)
      .input("x", kRealOrBool, "[...]")
      .attr<Axis>("axis", -1, "axis to run along");
}

OpBuilder& direction(OpBuilder& op) {
  return op.attr<bool>("descending", false, "largest first")
      .attr<bool>("stable", true, "equal elements keep their order; they always do");
}

// One element a line.
OpBuilder& picker(const char* name, const char* doc) {
  return line_op(name, doc)
      .attr<bool>("keepdim", false, "keep the axis, with size 1")
      .output("values", "x without the axis")
      .output("indices", "int64, from 0: where they stand")
      .saves("indices")
      .shape([](ShapeContext& c) {
        uint32_t axis = c.check_axis("axis", 0);
        Shape shape = c.shape(0);
        if (shape.rank > 0) {
          c.need(shape.dims[axis] != 0, "%s: axis %u is empty", c.text(0).c_str(), axis + 1);
          shape.dims[axis] = 1;
          if (!c.get<bool>("keepdim")) shape.erase(axis);
        }
        c.out(0).set(c.dtype(0), shape);
        c.out(1).set(PG_I64, shape);
      })
      .grad([](GradContext& g) { scatter_back(g, g.get<bool>("keepdim")); });
}

void check_k(const ShapeContext& c, int64_t least) {
  uint32_t axis = c.check_axis("axis", 0);
  Dim n = c.rank(0) == 0 ? Dim(1) : c.dim(0, axis);
  int64_t k = c.get<int>("k");
  c.need(k >= least && (n.symbolic() || k <= n.value),
         "k is %lld, but axis %u of %s has %s elements; expected %lld to %s", static_cast<long long>(k), axis + 1,
         c.text(0).c_str(), std::to_string(n.value).c_str(), static_cast<long long>(least),
         std::to_string(n.value).c_str());
}

const bool declared = [] {
  direction(line_op("sort", "The elements of each line along `axis` in rising order, and where they stood."))
      .output("values", "shape of x")
      .output("indices", "int64, from 0: shape of x")
      .saves("indices")
      .shape([](ShapeContext& c) {
        c.check_axis("axis", 0);
        c.out(0) = c.in(0);
        c.out(1).set(PG_I64, c.shape(0));
      })
      .grad([](GradContext& g) { scatter_back(g, true); });

  direction(line_op("argsort", "Where the elements of each line along `axis` stand in rising order."))
      .output("y", "int64, from 0: shape of x")
      .traits(PG_OP_NO_GRAD)
      .shape([](ShapeContext& c) {
        c.check_axis("axis", 0);
        c.out(0).set(PG_I64, c.shape(0));
      });

  declare_op("topk")
      .category("index")
      .doc(
          "The k largest (or smallest) elements of each line along `axis`, and where they stand; of equal ones the "
          "first.")
      .input("x", kRealOrBool, "[...]")
      .attr<int>("k", 0, "how many")
      .required()
      .attr<Axis>("axis", -1, "axis to run along")
      .attr<bool>("largest", true, "the largest; otherwise the smallest")
      .attr<bool>("sorted", true, "in order; they always are")
      .output("values", "x with k elements along the axis")
      .output("indices", "int64, from 0: shape of values")
      .saves("indices")
      .shape([](ShapeContext& c) {
        check_k(c, 0);
        Shape shape = c.shape(0);
        if (shape.rank > 0) shape.dims[c.check_axis("axis", 0)] = c.get<int>("k");
        c.need(shape.rank > 0 || c.get<int>("k") == 1, "k is %lld for one element; expected 1",
               static_cast<long long>(c.get<int>("k")));
        c.out(0).set(c.dtype(0), shape);
        c.out(1).set(PG_I64, shape);
      })
      .grad([](GradContext& g) { scatter_back(g, true); });

  declare_op("kthvalue")
      .category("index")
      .doc("The k-th smallest element of each line along `axis` (k = 1: the smallest), and where it stands.")
      .input("x", kReal, "[...], the axis not empty")
      .attr<int>("k", 1, "which, from 1")
      .required()
      .attr<Axis>("axis", -1, "axis to run along")
      .attr<bool>("keepdim", false, "keep the axis, with size 1")
      .output("values", "x without the axis")
      .output("indices", "int64, from 0: where they stand")
      .saves("indices")
      .shape([](ShapeContext& c) {
        check_k(c, 1);
        Shape shape = c.shape(0);
        if (shape.rank > 0) {
          uint32_t axis = c.check_axis("axis", 0);
          shape.dims[axis] = 1;
          if (!c.get<bool>("keepdim")) shape.erase(axis);
        }
        c.out(0).set(c.dtype(0), shape);
        c.out(1).set(PG_I64, shape);
      })
      .grad([](GradContext& g) { scatter_back(g, g.get<bool>("keepdim")); });

  picker("median",
         "The middle element of each line along `axis` in rising order, the lower one of two, and where it stands; NaN "
         "where there is one.");
  picker("nanmedian", "The median of what is not NaN; NaN where nothing is left.");
  picker("mode",
         "The element that occurs most often in each line along `axis`, the smallest of several, and its last place.");
  return true;
}();

}  // namespace
}  // namespace pg::schema_sort
