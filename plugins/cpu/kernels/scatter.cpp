// SPDX-License-Identifier: Apache-2.0
// scatter, scatter_add and scatter_reduce: single elements written, or folded in, along an axis.
#include <limits>
#include <vector>

#include "copy.hpp"
#include "index_values.hpp"
#include "scatter.hpp"

namespace cpu {
namespace {

enum { kSum, kProd, kMean, kAmax, kAmin };  // the choices of "reduce"

uint32_t dtype_of_compute(Compute c) {
  constexpr uint32_t dtypes[] = {PG_F32, PG_F64, PG_I64, PG_I32};
  return dtypes[c];
}

// The number that changes nothing.
void put_neutral(Fold fold, Storage type, void* target) {
  visit(type, [&](auto zero) {
    using T = decltype(zero);
    T value{};
    if constexpr (!std::is_same_v<T, pg::f16> && !std::is_same_v<T, pg::bf16>) {
      using Limits = std::numeric_limits<T>;
      if (fold == Fold::multiply) value = T(1);
      if (fold == Fold::largest) value = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
      if (fold == Fold::smallest) value = Limits::has_infinity ? Limits::infinity() : Limits::max();
    }
    std::memcpy(target, &value, sizeof value);
  });
}

struct ScatterKernel final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || call.in(0).rank != call.in(1).rank) refuse(call);
    Storage s = storage_of(call.out(0));
    if (storage_of(call.in(0)) != s || storage_of(call.in(2)) != s) refuse(call);
  }

  ScatterKernel(const pg::KernelCall& call, pg::Plan& plan)
      : op_(call.raw->op->name),
        index_(CompactIndex(call.in(1)).read),
        storage_(storage_of(call.out(0))),
        type_(storage_) {
    const pg_tensor &x = call.out(0), &src = call.in(2);
    axis_ = static_cast<uint32_t>(call.axis("axis", x.rank));
    if (call.is("scatter_add")) fold_ = Fold::add;
    if (call.is("scatter_reduce")) choose(call.attr<int32_t>("reduce"), call.attr<bool>("include_self"));
    CompactIndex compact(call.in(1));
    const pg_tensor& index = compact.shown;
    bool half = storage_ == sF16 || storage_ == sBF16;
    wide_ = mean_ || (half && fold_ != Fold::write);
    index_bytes_ = round_up(index_.workspace());
    plan.workspace = index_bytes_;
    if (wide_) {
      Compute compute = kComputeOf[storage_];
      type_ = kStorageOf[compute];
      DenseLike target(x, dtype_of_compute(compute)), source(src, dtype_of_compute(compute));
      plan_ = scatter_plan(target.tensor, source.tensor, index, axis_);
      source_bytes_ = round_up(static_cast<uint64_t>(pg::element_count(src) * kStorageBytes[type_]));
      target_bytes_ = round_up(static_cast<uint64_t>(pg::element_count(x) * kStorageBytes[type_]));
      plan.workspace += source_bytes_ + target_bytes_ * (mean_ ? 2 : 1);
    } else {
      plan_ = scatter_plan(x, src, index, axis_);
      source_bytes_ = round_up(static_cast<uint64_t>(pg::element_count(src) * kStorageBytes[type_]));
      dense_source_plan_ = scatter_plan(x, DenseLike(src, pg::dtype_of(src)).tensor, index, axis_);
    }
  }

  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* index = index_.read(pg::input(launch, 1), scratch);
    index_.check(index, plan_.limit, op_, {"index", axis_ + 1});
    if (launch.output[0].buffer == 0) return;
    pg_tensor x = at_address(*launch.inputs[0], launch.input[0]), y = at_address(*launch.outputs[0], launch.output[0]);
    pg_tensor src = at_address(*launch.inputs[2], launch.input[2]);
    bool in_place = pg::input<char>(launch, 0) == pg::output<char>(launch, 0);
    if (wide_) return fold_wide(x, src, y, index, scratch + index_bytes_);
    if (pg::input<char>(launch, 2) != pg::output<char>(launch, 0)) {
      if (!in_place) copy_tensor(y, x);
      return fold(plan_, pg::output<char>(launch, 0), pg::input<char>(launch, 2), index);
    }
    std::vector<char> own(source_bytes_);  // src is x itself, and x is about to change
    DenseLike copy(*launch.inputs[2], pg::dtype_of(src));
    copy_tensor(at_address(copy.tensor, {reinterpret_cast<uint64_t>(own.data()), 0}), src);
    fold(dense_source_plan_, pg::output<char>(launch, 0), own.data(), index);
  }

 private:
  static uint64_t round_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  void choose(int reduce, bool include_self) {
    constexpr Fold folds[] = {Fold::add, Fold::multiply, Fold::add, Fold::largest, Fold::smallest};
    fold_ = folds[reduce];
    mean_ = reduce == kMean;
    fresh_ = !include_self;
  }

  // Without x's own elements the ones that are met begin as the neutral number.
  void fold(const ScatterPlan& plan, void* target, const void* source, const int64_t* index) const {
    if (fresh_) scatter_constant(plan, Fold::write, target, fold_, index);
    scatter_fold(plan, type_, fold_, target, source, index);
  }
  void scatter_constant(ScatterPlan plan, Fold fold, void* target, Fold neutral_of, const int64_t* index) const {
    alignas(8) char number[8];
    put_neutral(neutral_of, type_, number);
    plan.step[ScatterPlan::source] = 0;
    for (auto* nest : {&plan.before, &plan.inner})
      for (int64_t& s : nest->stride[ScatterPlan::source]) s = 0;
    scatter_fold(plan, type_, fold, target, number, index);
  }

  void fold_wide(const pg_tensor& x, const pg_tensor& src, const pg_tensor& y, const int64_t* index,
                 char* scratch) const {
    uint32_t dtype = dtype_of_compute(kComputeOf[storage_]);
    DenseLike source(src, dtype), target(x, dtype);
    char *sums = scratch + source_bytes_, *counts = sums + target_bytes_;
    copy_tensor(at_address(source.tensor, {reinterpret_cast<uint64_t>(scratch), 0}), src);
    pg_tensor whole = at_address(target.tensor, {reinterpret_cast<uint64_t>(sums), 0});
    copy_tensor(whole, x);
    fold(plan_, sums, scratch, index);
    if (mean_) {
      fill_tensor(at_address(target.tensor, {reinterpret_cast<uint64_t>(counts), 0}), 1);
      if (fresh_) scatter_constant(plan_, Fold::write, counts, Fold::add, index);
      scatter_constant(plan_, Fold::add, counts, Fold::multiply, index);  // which adds ones
      divide(sums, counts, pg::element_count(x));
    }
    copy_tensor(y, whole);
  }

  void divide(void* sums, const void* counts, int64_t n) const {
    visit(type_, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
        for (int64_t i = 0; i < n; i++) static_cast<T*>(sums)[i] /= static_cast<const T*>(counts)[i];
      } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, int32_t>) {
        for (int64_t i = 0; i < n; i++) {
          T &s = static_cast<T*>(sums)[i], c = static_cast<const T*>(counts)[i];
          s = static_cast<T>(s / c - (s % c < 0 ? 1 : 0));
        }
      }
    });
  }

  const char* op_;
  IndexValues index_;
  Storage storage_, type_;  // of x; of the arithmetic
  uint32_t axis_;
  Fold fold_ = Fold::write;
  bool mean_ = false, fresh_ = false, wide_ = false;
  ScatterPlan plan_, dense_source_plan_;
  uint64_t index_bytes_, source_bytes_ = 0, target_bytes_ = 0;
};
PG_KERNEL("scatter", ScatterKernel);
PG_KERNEL("scatter_add", ScatterKernel);
PG_KERNEL("scatter_reduce", ScatterKernel);

}  // namespace
}  // namespace cpu
