// SPDX-License-Identifier: Apache-2.0
#include "../rules.hpp"

namespace pg::schema_all_reduce {
namespace {

enum Kind { kSum, kMean, kMax, kMin };

void infer(ShapeContext& c) {
  auto xs = c.group(0);
  c.need(!xs.empty(), "xs is empty; expected at least one tensor");
  for (size_t k = 0; k < xs.size(); k++) {
    c.need(xs[k] != nullptr, "xs[%zu] is missing", k + 1);
    bool same = xs[k]->rank == xs[0]->rank && dtype_of(*xs[k]) == dtype_of(*xs[0]);
    for (uint32_t i = 0; same && i < xs[k]->rank; i++) same = dim_equal(xs[k]->shape[i], xs[0]->shape[i]);
    c.need(same, "xs[%zu] is %s %s; expected %s %s, as xs[1]", k + 1, dtype_name(dtype_of(*xs[k])),
           shape_text(*xs[k]).c_str(), dtype_name(dtype_of(*xs[0])), shape_text(*xs[0]).c_str());
    c.out(static_cast<uint32_t>(k)) = *xs[k];
  }
  c.need(c.get<Choice>("op") != kMean || dtype_class(dtype_of(*xs[0])) == PG_M_FLOAT,
         "op is mean and xs are %s; expected a floating dtype", dtype_name(dtype_of(*xs[0])));
  const bool adds = c.get<Choice>("op") == kSum || c.get<Choice>("op") == kMean;
  if (adds && (xs.size() > 1 || c.get<int>("group") != 0) && dtype_class(dtype_of(*xs[0])) == PG_M_FLOAT &&
      deterministic())
    fail_support(
        "adds up as many tensors as there are devices, and deterministic=true lets no result depend on how many"
        " there are; expected op max or min, or whole numbers");
}

// Every result is the same function of all inputs, so sums (means) of cotangents come back.
void differentiate(GradContext& g) {
  static constinit OpRef op("all_reduce", "op", "group");
  int32_t kind = g.get<Choice>("op");
  if (kind != kSum && kind != kMean) fail_support("all_reduce with op max or min is not differentiable");
  std::vector<Value> d, dx(g.output_count());
  for (uint32_t k = 0; k < g.output_count(); k++) d.push_back(g.dout(k) ? g.dout(k) : zeros_like(g.out(k)));
  Call(g.builder(), op).inputs(d).set(0, kind).set(1, g.get<int>("group")).emit(dx.data(), g.output_count());
  for (uint32_t k = 0; k < g.output_count(); k++)
    if (g.needed(0, k)) g.din(0, k) = dx[k];
}

void decompose(ExpandContext& e) {
  std::vector<Value> xs = e.group(0);
  int32_t kind = e.get<Choice>("op");
  Value total = xs[0];
  for (size_t k = 1; k < xs.size(); k++) {
    if (xs[k].device() != xs[0].device()) fail_support("tensors on several devices need a collectives plugin");
    total = kind == kMax ? maximum(total, xs[k]) : kind == kMin ? minimum(total, xs[k]) : total + xs[k];
  }
  if (kind == kMean && xs.size() > 1) total = total / static_cast<double>(xs.size());
  for (uint32_t k = 0; k < xs.size(); k++) e.out(k) = k == 0 && xs.size() > 1 ? total : clone(total);
}

PG_OP("all_reduce")
    .category("collective")
    .role("all_reduce")
    .doc(
        "Every y is the sum (mean, largest, smallest) of all xs, in their order. Of a group of processes: over all of "
        "theirs. Gradients of sum and mean are the same reduction of the cotangents. Under deterministic=true sums and "
        "means of several floating tensors are refused: their bits depend on how many devices there are.")
    .input("xs", kReal, "equal shapes", PG_INPUT_VARIADIC)
    .choice("op", {"sum", "mean", "max", "min"}, kSum, "the reduction")
    .attr<int>("group", 0, "which group of processes")
    .output("ys", "shapes of xs", PG_OUTPUT_VARIADIC, 0)
    .ordered()
    .shape(infer)
    .grad(differentiate)
    .decompose(decompose);

}  // namespace
}  // namespace pg::schema_all_reduce
