// SPDX-License-Identifier: Apache-2.0
#include "plan/sizes.hpp"

namespace perigee {

RunSizes::RunSizes(const Graph& graph, const PreparedRun& prepared)
    : graph_(graph), prepared_(prepared), fed_(prepared.feeds.size()), held_(prepared.variables.size()) {}

void RunSizes::check_kind(const GraphValue& v, const Meta& given) const {
  if (v.meta->rank != given.rank || v.meta->dtype != given.dtype)
    pg::fail_argument(pg::format("'%s' was fed %s %s; expected %s %s", v.name.c_str(), pg::dtype_name(given.dtype),
                                 shape_text(given).c_str(), pg::dtype_name(v.meta->dtype),
                                 shape_text(*v.meta).c_str()));
}

// What is computed of symbols tells them too: a node of [2*n] that is fed.
void RunSizes::solve(Tensor* const* feeds) {
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < prepared_.feeds.size(); i++) {
      const Meta &want = *graph_.values[prepared_.feeds[i].value].meta, &got = *feeds[i]->meta;
      for (uint32_t d = 0; d < want.rank; d++) more |= dim_solve(want.shape[d], got.shape[d], fed_sizes_);
    }
  }
}

void RunSizes::check_sizes(const GraphValue& v, const Meta& given) const {
  for (uint32_t i = 0; i < v.meta->rank; i++) {
    std::optional<int64_t> want = dim_known(v.meta->shape[i], fed_sizes_);
    if (!want || *want == given.shape[i]) continue;
    std::string reason;
    if (PG_DIM_IS_SYMBOLIC(v.meta->shape[i]))
      reason = pg::format(" with %s = %lld", dim_text(v.meta->shape[i]).c_str(), static_cast<long long>(*want));
    pg::fail_argument(pg::format("'%s' was fed shape %s; expected %s%s", v.name.c_str(), shape_text(given).c_str(),
                                 shape_text(*v.meta).c_str(), reason.c_str()));
  }
}

void RunSizes::bind(Tensor* const* feeds, const TensorRef* variables, const Bindings* around) {
  const PreparedRun& p = prepared_;
  bool same = complete && (around == nullptr || *around == around_) && !ambient().detect_anomaly;
  for (size_t i = 0; i < p.feeds.size() && same; i++) same = fed_[i].get() == feeds[i]->meta.get();
  for (size_t i = 0; i < p.variables.size() && same; i++) same = held_[i].get() == variables[i]->meta.get();
  complete = false;  // until the run is over
  if (!same) {
    fed_sizes_.clear();
    if (around != nullptr) fed_sizes_ = around_ = *around;
    for (size_t i = 0; i < p.feeds.size(); i++) check_kind(graph_.values[p.feeds[i].value], *feeds[i]->meta);
    solve(feeds);
    for (size_t i = 0; i < p.feeds.size(); i++) {
      check_sizes(graph_.values[p.feeds[i].value], *feeds[i]->meta);
      fed_[i] = feeds[i]->meta;
    }
    for (size_t i = 0; i < p.variables.size(); i++) held_[i] = variables[i]->meta;
  }
  learnt = same && !p.dynamic;
  if (learnt) return;
  bindings = fed_sizes_;
  changes++;
}

void RunSizes::learn(const GraphValue& v, const Meta& got) {
  const Meta& want = *v.meta;
  if (want.rank != got.rank)
    pg::fail(PG_E_FAILED_PRECONDITION, "gave " + shape_text(got) + ", but was recorded as " + shape_text(want) +
                                           ": the number of axes cannot depend on the run; name those to leave out");
  for (uint32_t i = 0; want.symbolic && i < want.rank; i++) {
    if (!PG_DIM_IS_SYMBOLIC(want.shape[i])) continue;
    int64_t size = bindings.try_emplace(want.shape[i], got.shape[i]).first->second;
    if (size != got.shape[i])
      pg::fail_argument(
          pg::format("gave %s, but %s is %lld in this run: sizes of different names that meet in an "
                     "operator must be equal",
                     shape_text(got).c_str(), dim_text(want.shape[i]).c_str(), static_cast<long long>(size)));
  }
}

TensorRef RunSizes::described(const Tensor& t) const {
  int64_t shape[PG_MAX_RANK];
  for (uint32_t i = 0; i < t.meta->rank; i++) shape[i] = dim_value(t.meta->shape[i], bindings);
  return make_tensor(intern_meta(t.meta->dtype, t.meta->rank, shape), nullptr, 0, t.device);
}

}  // namespace perigee
