// SPDX-License-Identifier: Apache-2.0
// embedding and embedding_grad.
#include "../rules.hpp"

namespace pg::schema_embedding {
namespace {

OpBuilder& padding_attr(OpBuilder& op) {
  return op.attr<int>("padding_idx", -1, "this row gets no gradient, from 0; -1 for none");
}

void check_table(const ShapeContext& c, uint32_t weight, uint32_t index) {
  c.check_rank(weight, 2, 2);
  c.check_index(index);
  int64_t padding = c.get<int>("padding_idx");
  Dim rows = c.dim(weight, 0);
  c.need(padding >= -1 && (rows.symbolic() || padding < rows.value),
         "padding_idx %lld is out of range for %s; expected 0..%lld, or -1 for none", static_cast<long long>(padding),
         c.text(weight).c_str(), static_cast<long long>(rows.value - 1));
}

const bool declared = [] {
  padding_attr(declare_op("embedding").category("neural"))
      .doc("Rows of weight. An index out of range is an error that names it.")
      .input("weight", kFloating, "[V, D]")
      .input("index", kInteger, "[...]: from 0")
      .output("y", "[..., D]")
      .shape([](ShapeContext& c) {
        check_table(c, 0, 1);
        Shape shape = c.shape(1);
        shape.push(c.dim(0, 1));
        c.out(0).set(c.dtype(0), shape);
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("embedding_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(1), g.in(0));
      });

  padding_attr(declare_op("embedding_grad").category("neural"))
      .doc("Gradient of embedding's weight: each dy added to the row of its index, in order.")
      .input("dy", kFloating, "[..., D]")
      .input("index", kInteger, "[...]: from 0")
      .input("weight", kFloating, "[V, D]", PG_INPUT_META)
      .output("dweight", "shape of weight")
      .shape([](ShapeContext& c) {
        check_table(c, 2, 1);
        uint32_t rank = c.rank(1);
        c.check_rank(0, rank + 1, rank + 1);
        for (uint32_t i = 0; i < rank; i++) c.check_dim(0, i, c.dim(1, i), "as in index");
        c.check_dim(0, rank, c.dim(2, 1), "the width of weight");
        c.out(0).set(c.dtype(0), c.shape(2));
      })
      .saves("index")
      .grad([](GradContext& g) {
        static constinit OpRef op("embedding");
        Value index = g.in(1), d = g.call(op, g.dout(0), index);
        int64_t padding = g.get<int>("padding_idx");
        if (padding >= 0) d = where(unsqueeze(eq(index, static_cast<double>(padding)), index.rank()), 0.0, d);
        g.din(0) = d;
      });
  return true;
}();

}  // namespace
}  // namespace pg::schema_embedding
