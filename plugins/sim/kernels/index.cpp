// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/index.hpp"

#include "../launch.hpp"
#include "perigee/kernels/reference/pad.hpp"
#include "perigee/kernels/reference/scatter.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

void embedding(const Work& work) { reference::index_select(work.in(0), work.in(1), 0, work.out(0), "embedding"); }
void embedding_grad(const Work& work) {
  reference::index_select_grad(work.in(0), work.in(1), 0, work.attr<int64_t>("padding_idx"), work.out(0),
                               "embedding_grad");
}
void index_select(const Work& work) {
  reference::index_select(work.in(0), work.in(1), work.axis("axis", work.in(0).rank()), work.out(0), "index_select",
                          work.attr<int64_t>("shown"));
}
void index_select_grad(const Work& work) {
  int64_t axis = work.axis("axis", work.out(0).rank());
  reference::index_select_grad(work.in(0), work.in(1), axis, -1, work.out(0), "index_select_grad");
}
void gather(const Work& work) {
  reference::gather(work.in(0), work.in(1), work.axis("axis", work.in(0).rank()), work.out(0));
}
void gather_grad(const Work& work) {
  reference::gather_grad(work.in(0), work.in(1), work.axis("axis", work.out(0).rank()), work.out(0));
}

void index(const Work& work) {
  int64_t axis = work.axis("axis", work.in(0).rank());
  reference::index(work.in(0), work.group(1), axis, work.list("shown"), work.out(0));
}
void index_grad(const Work& work) {
  int64_t axis = work.axis("axis", work.out(0).rank());
  reference::index_grad(work.in(0), work.group(1), axis, work.list("shown"), work.out(0));
}
void index_put(const Work& work) {
  int64_t axis = work.axis("axis", work.in(0).rank());
  reference::index_put(work.in(0), work.group(1), work.input(2), axis, work.list("shown"),
                       work.attr<bool>("accumulate"), work.out(0));
}
void scatter_as(const Work& work, const std::string& how, bool include_self) {
  int64_t axis = work.axis("axis", work.in(0).rank());
  reference::scatter(work.in(0), work.in(1), work.in(2), axis, how, include_self, work.out(0), work.op());
}
void scatter(const Work& work) { scatter_as(work, "write", true); }
void scatter_add(const Work& work) { scatter_as(work, "sum", true); }
void scatter_reduce(const Work& work) { scatter_as(work, work.choice("reduce"), work.attr<bool>("include_self")); }

void nonzero(const Work& work) {
  int64_t count = reference::nonzero(work.in(0), work.out(0));
  work.publish(0, {count, work.in(0).rank()});
}
void masked_select(const Work& work) {
  const Operand &x = work.in(0), &mask = work.in(1);
  reference::Dims shape(std::max(x.shape.size(), mask.shape.size()), 1);  // what the two broadcast to
  for (const Operand* side : {&x, &mask}) {
    size_t lead = shape.size() - side->shape.size();
    for (size_t i = 0; i < side->shape.size(); i++) {
      if (side->shape[i] != 1) shape[lead + i] = side->shape[i];
    }
  }
  work.publish(0, {reference::masked_select(x, mask, shape, work.out(0))});
}
void masked_select_grad(const Work& work) { reference::masked_select_grad(work.in(0), work.in(1), work.out(0)); }

void one_hot(const Work& work) { reference::one_hot(work.in(0), work.attr<int64_t>("classes"), work.out(0)); }
void cat(const Work& work) { reference::cat(work.group(0), work.axis("axis", work.out(0).rank()), work.out(0)); }
void stack(const Work& work) { reference::stack(work.group(0), work.axis("axis", work.out(0).rank()), work.out(0)); }
void cat_grad(const Work& work) {
  reference::cat_grad(work.in(0), work.axis("axis", work.in(0).rank()), work.outputs());
}

void slice_grad(const Work& work) {
  reference::slice_scatter({}, work.in(0), work.list("starts"), work.list("steps"), work.list("drop"), work.out(0));
}
void slice_scatter(const Work& work) {
  reference::slice_scatter(work.in(0), work.in(1), work.list("starts"), work.list("steps"), work.list("drop"),
                           work.out(0));
}

void pad(const Work& work) {
  reference::pad({work.choice("mode"), work.list("before"), work.list("behind")}, work.in(0),
                 work.attr<double>("value"), work.out(0));
}
void pad_grad(const Work& work) {
  reference::pad_grad({work.choice("mode"), work.list("before"), work.list("behind")}, work.in(0), work.out(0));
}
void flip(const Work& work) {
  int64_t rank = work.in(0).rank();
  uint32_t axes = work.list("axes").empty() || rank == 0 ? 0 : work.axes("axes", rank);
  reference::flip(work.in(0), axes, work.out(0));
}
void roll(const Work& work) { reference::roll(work.in(0), work.list("shifts"), work.out(0)); }
void tril(const Work& work) { reference::triangle(work.in(0), work.attr<int64_t>("diagonal"), true, work.out(0)); }
void triu(const Work& work) { reference::triangle(work.in(0), work.attr<int64_t>("diagonal"), false, work.out(0)); }

PG_SIM_KERNEL("embedding", embedding, kAny);
PG_SIM_KERNEL("embedding_grad", embedding_grad, kAny);
PG_SIM_KERNEL("index_select", index_select, kStored);
PG_SIM_KERNEL("index_select_grad", index_select_grad, kAny);
PG_SIM_KERNEL("gather", gather, kStored);
PG_SIM_KERNEL("gather_grad", gather_grad, kAny);
PG_SIM_KERNEL("index", index, kStored);
PG_SIM_KERNEL("index_grad", index_grad, kAny);
PG_SIM_KERNEL("index_put", index_put, kStored);
PG_SIM_KERNEL("scatter", scatter, kStored);
PG_SIM_KERNEL("scatter_add", scatter_add, kAny);
PG_SIM_KERNEL("scatter_reduce", scatter_reduce, kAny);
PG_SIM_KERNEL("nonzero", nonzero, kAny);
PG_SIM_KERNEL("masked_select", masked_select, kStored);
PG_SIM_KERNEL("masked_select_grad", masked_select_grad, kAny);
PG_SIM_KERNEL("one_hot", one_hot, kAny);
PG_SIM_KERNEL("cat", cat, kStored);
PG_SIM_KERNEL("cat_grad", cat_grad, kAny);
PG_SIM_KERNEL("stack", stack, kStored);
PG_SIM_KERNEL("pad_axes", pad, kStored);
PG_SIM_KERNEL("pad_axes_grad", pad_grad, kNumbers);
PG_SIM_KERNEL("flip", flip, kStored);
PG_SIM_KERNEL("roll_axes", roll, kStored);
PG_SIM_KERNEL("tril", tril, kStored);
PG_SIM_KERNEL("triu", triu, kStored);
PG_SIM_KERNEL("slice_grad", slice_grad, kStored);
PG_SIM_KERNEL("slice_scatter", slice_scatter, kStored);

}  // namespace
}  // namespace sim
