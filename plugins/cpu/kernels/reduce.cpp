// SPDX-License-Identifier: Apache-2.0
// Reductions over a set of axes: sum mean prod amax amin any all var std logsumexp argmax argmin norm nansum
// sum_like.
#include <cmath>

#include "copy.hpp"
#include "lines.hpp"
#include "reduction.hpp"

namespace cpu {
namespace {

struct Row {
  const char* op;
  ReduceOp reduce;
  Finish finish;
};
constexpr Row kRows[] = {
    {"sum", rSum, Finish::value},          {"mean", rSum, Finish::mean},
    {"prod", rProd, Finish::value},        {"amax", rAmax, Finish::value},
    {"amin", rAmin, Finish::value},        {"any", rAny, Finish::truth},
    {"all", rAll, Finish::truth},          {"var", rVar, Finish::variance},
    {"std", rVar, Finish::deviation},      {"logsumexp", rLogsumexp, Finish::logsumexp},
    {"argmax", rArgmax, Finish::position}, {"argmin", rArgmin, Finish::position},
};

const Row& find_row(const pg::KernelCall& call) {
  for (const Row& row : kRows) {
    if (call.is(row.op)) return row;
  }
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

uint32_t axes_of(const pg::KernelCall& call, const Row& row) {
  uint32_t rank = call.in(0).rank;
  if (row.finish != Finish::position) return call.axis_mask("axes", rank);
  if (call.attr<bool>("flat")) return (1u << rank) - 1;
  return rank == 0 ? 0 : 1u << call.axis("axis", rank);
}

// A reduction of the last axes, or the first ones, for regions.
class ReductionLines final : public Lines {
 public:
  ReductionLines(uint32_t axes, bool leading, const Reduction& reduction, bool costly)
      : Lines(axes, leading), reduction_(reduction), costly_(costly) {}
  void run(const pg_launch&, const char*, const char* const* in, char* const* out, int64_t first,
           int64_t last) const override {
    reduction_.run_lines(in[0], out[0], first, last);
  }
  const Reduction* reduction() const override { return &reduction_; }
  int cost() const override { return costly_ ? 8 : 1; }

 private:
  Reduction reduction_;
  bool costly_;
};

template <class Kernel>
std::unique_ptr<Lines> make_reduction_lines(const pg::KernelCall& call, uint32_t axes, bool costly) {
  Kernel::supports(call);
  pg::Plan plan;
  if (const uint32_t first = first_axes(call, axes)) {
    const Reduction reduction = Kernel(call, plan).reduction();
    if (!reduction.in_columns()) pg::fail_support("columns are reduced one by one");
    return std::make_unique<ReductionLines>(first, true, reduction, costly);
  }
  const uint32_t last = last_axes(call, axes);
  return std::make_unique<ReductionLines>(last, false, Kernel(call, plan).reduction(), costly);
}

struct Reduce final : pg::Kernel {
  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) {
    const Row& row = find_row(call);
    return make_reduction_lines<Reduce>(call, axes_of(call, row), row.reduce == rLogsumexp);
  }
  const Reduction& reduction() const { return reduction_; }
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    const Row& row = find_row(call);
    Storage x = storage_of(call.in(0)), out = storage_of(call.out(0));
    bool floats_only = row.finish == Finish::variance || row.finish == Finish::deviation ||
                       row.finish == Finish::logsumexp || row.finish == Finish::mean;
    if (floats_only && (!is_float(x) || !is_float(out))) refuse(call);
    if (row.finish == Finish::truth && out != sBool) refuse(call);
    if (row.finish == Finish::position && is_float(out)) refuse(call);
    if (row.finish == Finish::value && is_float(x) != is_float(out)) refuse(call);
  }
  Reduce(const pg::KernelCall& call, pg::Plan&)
      : reduction_(find_row(call).reduce, find_row(call).finish, call.in(0), call.out(0), axes_of(call, find_row(call)),
                   find_row(call).reduce == rVar ? call.attr<double>("correction") : 0.0) {}
  void launch(const pg_launch& launch) override { reduction_.run(pg::input(launch, 0), pg::output(launch, 0)); }

 private:
  Reduction reduction_;
};

// Sums of floats that leave NaN out.
struct NanSum final : pg::Kernel {
  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) {
    return make_reduction_lines<NanSum>(call, call.axis_mask("axes", call.in(0).rank), false);
  }
  const Reduction& reduction() const { return reduction_; }
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_float(storage_of(call.in(0)))) refuse(call);
  }
  NanSum(const pg::KernelCall& call, pg::Plan&)
      : reduction_(rNumbers, Finish::value, call.in(0), call.out(0), call.axis_mask("axes", call.in(0).rank)) {}
  void launch(const pg_launch& launch) override { reduction_.run(pg::input(launch, 0), pg::output(launch, 0)); }

 private:
  Reduction reduction_;
};

// The orders that need no power of each element; the others are decomposed.
struct Norm final : pg::Kernel {
  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) {
    return make_reduction_lines<Norm>(call, call.axis_mask("axes", call.in(0).rank), false);
  }
  const Reduction& reduction() const { return reduction_; }
  static ReduceOp find(const pg::KernelCall& call) {
    double p = call.attr<double>("p");
    if (p == 0) return rNonzeros;
    if (p == 1) return rMagnitudes;
    if (p == 2) return rSquares;
    if (std::isinf(p)) return p > 0 ? rAbsMax : rAbsMin;
    pg::fail_support("norm on cpu has orders 0, 1, 2, inf and -inf only");
  }
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    find(call);
  }
  Norm(const pg::KernelCall& call, pg::Plan&)
      : reduction_(find(call), find(call) == rSquares ? Finish::root : Finish::value, call.in(0), call.out(0),
                   call.axis_mask("axes", call.in(0).rank)) {}
  void launch(const pg_launch& launch) override { reduction_.run(pg::input(launch, 0), pg::output(launch, 0)); }

 private:
  Reduction reduction_;
};

// dy summed to the shape of x, which broadcasting had expanded.
struct SumLike final : pg::Kernel {
  static std::unique_ptr<Lines> make_lines(const pg::KernelCall& call) {
    return make_reduction_lines<SumLike>(call, axes(call), false);
  }
  const Reduction& reduction() const { return reduction_; }
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  static uint32_t axes(const pg::KernelCall& call) {
    const pg_tensor &dy = call.in(0), &out = call.out(0);
    uint32_t mask = 0, lead = dy.rank - out.rank;
    for (uint32_t i = 0; i < dy.rank; i++) {
      if (i < lead || (out.shape[i - lead] == 1 && dy.shape[i] != 1)) mask |= 1u << i;
    }
    return mask;
  }
  SumLike(const pg::KernelCall& call, pg::Plan&)
      : same_(axes(call) == 0), reduction_(rSum, Finish::value, call.in(0), call.out(0), axes(call)) {}
  void launch(const pg_launch& launch) override {
    if (same_) {
      copy_tensor(at_address(*launch.outputs[0], launch.output[0]), at_address(*launch.inputs[0], launch.input[0]));
    } else {
      reduction_.run(pg::input(launch, 0), pg::output(launch, 0));
    }
  }

 private:
  bool same_;
  Reduction reduction_;
};

const int registered = [] {
  for (const Row& row : kRows) pg::add_kernel<Reduce>(row.op), add_lines<Reduce>(row.op);
  pg::add_kernel<NanSum>("nansum"), add_lines<NanSum>("nansum");
  pg::add_kernel<Norm>("norm"), add_lines<Norm>("norm");
  return pg::add_kernel<SumLike>("sum_like"), add_lines<SumLike>("sum_like");
}();

}  // namespace
}  // namespace cpu
