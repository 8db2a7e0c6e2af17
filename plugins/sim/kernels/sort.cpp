// SPDX-License-Identifier: Apache-2.0
#include "perigee/kernels/reference/sort.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

int64_t axis_of(const Work& work) { return work.axis("axis", work.in(0).rank()); }

void sort(const Work& work) {
  int64_t axis = axis_of(work), length = work.in(0).rank() == 0 ? 1 : work.in(0).shape[axis];
  reference::sort(work.in(0), axis, work.attr<bool>("descending"), length, work.out(0), work.out(1));
}
void argsort(const Work& work) {
  int64_t axis = axis_of(work), length = work.in(0).rank() == 0 ? 1 : work.in(0).shape[axis];
  reference::sort(work.in(0), axis, work.attr<bool>("descending"), length, {}, work.out(0));
}
void topk(const Work& work) {
  reference::sort(work.in(0), axis_of(work), work.attr<bool>("largest"), work.attr<int64_t>("k"), work.out(0),
                  work.out(1));
}
void kthvalue(const Work& work) {
  auto k = static_cast<size_t>(work.attr<int64_t>("k"));
  reference::pick(work.in(0), axis_of(work), work.out(0), work.out(1),
                  [k](const auto& order, const auto&) { return order[k - 1]; });
}
template <bool skip_nan>
void median(const Work& work) {
  reference::pick(work.in(0), axis_of(work), work.out(0), work.out(1),
                  [](const auto& order, const auto& line) { return reference::median_of(order, line, skip_nan); });
}
void mode(const Work& work) {
  reference::pick(work.in(0), axis_of(work), work.out(0), work.out(1),
                  [](const auto& order, const auto& line) { return reference::mode_of(order, line); });
}
void unique_rows(const Work& work) {
  int64_t count =
      reference::unique_rows(work.in(0), work.attr<bool>("consecutive"), work.out(0), work.out(1), work.out(2));
  work.publish(0, {count});
  work.publish(2, {count});
}
void searchsorted(const Work& work) {
  reference::searchsorted(work.in(0), work.in(1), work.attr<bool>("right"), work.out(0));
}

PG_SIM_KERNEL("sort", sort, kAny);
PG_SIM_KERNEL("argsort", argsort, kAny);
PG_SIM_KERNEL("topk", topk, kAny);
PG_SIM_KERNEL("kthvalue", kthvalue, kAny);
PG_SIM_KERNEL("median", median<false>, kAny);
PG_SIM_KERNEL("nanmedian", median<true>, kAny);
PG_SIM_KERNEL("mode", mode, kAny);
PG_SIM_KERNEL("unique_rows", unique_rows, kAny);
PG_SIM_KERNEL("searchsorted", searchsorted, kAny);

}  // namespace
}  // namespace sim
