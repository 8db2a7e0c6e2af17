// SPDX-License-Identifier: Apache-2.0
// Reductions over a set of axes: sum mean prod amax amin any all var std logsumexp argmax argmin norm nansum
// sum_like.
#include <cmath>

#include "reduce.cuh"
#include "reducers.cuh"

namespace cuda {
namespace {

enum class Kind : uint8_t { kSum, kMean, kProduct, kExtreme, kTruth, kVariance, kLogSumExp, kMeasure, kPlace };
struct Row {
  const char* op;
  Kind kind;
  bool other;  // the smaller, all, the root
};
constexpr Row kReductions[] = {
    {"sum", Kind::kSum, false},      {"mean", Kind::kMean, false},
    {"prod", Kind::kProduct, false}, {"amax", Kind::kExtreme, false},
    {"amin", Kind::kExtreme, true},  {"any", Kind::kTruth, false},
    {"all", Kind::kTruth, true},     {"var", Kind::kVariance, false},
    {"std", Kind::kVariance, true},  {"logsumexp", Kind::kLogSumExp, false},
    {"argmax", Kind::kPlace, false}, {"argmin", Kind::kPlace, true},
    {"norm", Kind::kMeasure, false}, {"nansum", Kind::kMeasure, false},
    {"sum_like", Kind::kSum, false},
};

const Row& find_row(const pg::KernelCall& call) {
  for (const Row& row : kReductions) {
    if (call.is(row.op)) return row;
  }
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

// The orders that need no power of each element; the others are decomposed.
Measure find_measure(const pg::KernelCall& call) {
  if (call.is("nansum")) return Measure::kNumbers;
  double p = call.attr<double>("p");
  if (p == 0) return Measure::kNonzeros;
  if (p == 1) return Measure::kMagnitudes;
  if (p == 2) return Measure::kSquares;
  if (std::isinf(p)) return p > 0 ? Measure::kLargest : Measure::kLeast;
  pg::fail_support("norm on cuda has orders 0, 1, 2, inf and -inf only");
}

// The axes of dy along which x was broadcast to it.
uint32_t expanded_axes(const pg_tensor& dy, const pg_tensor& out) {
  uint32_t mask = 0, lead = dy.rank - out.rank;
  for (uint32_t i = 0; i < dy.rank; i++) {
    if (i < lead || (out.shape[i - lead] == 1 && dy.shape[i] != 1)) mask |= 1u << i;
  }
  return mask;
}

uint32_t reduced_axes(const pg::KernelCall& call) {
  uint32_t rank = call.in(0).rank;
  if (call.is("sum_like")) return expanded_axes(call.in(0), call.out(0));
  if (find_row(call).kind != Kind::kPlace) return call.axis_mask("axes", rank);
  if (call.attr<bool>("flat")) return (1u << rank) - 1;
  return rank == 0 ? 0 : 1u << call.axis("axis", rank);
}

// body(Tag<S>()) with the storage that a kind of reduction reads a dtype by: its own where that is worth kernels.
template <class Body>
void with_storage(Kind kind, uint32_t dtype, Body&& body) {
  bool floating = pg::dtype_class(dtype) == PG_M_FLOAT;
  if (kind == Kind::kTruth) {
    switch (dtype & 0xffffu) {
      case 8: return body(Tag<uint8_t>());
      case 16: return body(Tag<uint16_t>());
      case 32: return body(Tag<uint32_t>());
      default: return body(Tag<uint64_t>());
    }
  }
  if (kind == Kind::kProduct) return floating ? body(Tag<AnyFloat>()) : body(Tag<AnyInt>());
  if (floating) return with_float_storage(dtype, body);
  return dtype == PG_I64 && kind == Kind::kSum ? body(Tag<int64_t>()) : body(Tag<AnyInt>());
}

class Reduce final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    const Row& row = find_row(call);
    uint32_t x = pg::dtype_of(call.in(0)), out = pg::dtype_of(call.out(0));
    bool floats = row.kind == Kind::kMean || row.kind == Kind::kVariance || row.kind == Kind::kLogSumExp ||
                  row.kind == Kind::kMeasure;
    if (row.kind == Kind::kMeasure) find_measure(call);
    check_dtypes(call, kAny);
    if (floats && pg::dtype_class(x) != PG_M_FLOAT) check_dtypes(call, kFloats);
    bool fits = out == x;
    if (row.kind == Kind::kTruth) fits = out == PG_B8;
    if (row.kind == Kind::kPlace) fits = out == PG_I64;
    bool lifted = pg::dtype_class(x) != PG_M_FLOAT && out == PG_I64;
    if (row.kind == Kind::kSum || row.kind == Kind::kProduct) fits = fits || lifted;
    if (!fits) {
      pg::fail_support(pg::format("CUDA has no %s of %s to %s", call.op(), pg::dtype_name(x), pg::dtype_name(out)));
    }
  }

  Reduce(const pg::KernelCall& call, pg::Plan& plan)
      : kind_(find_row(call).kind),
        other_(find_row(call).other),
        dtype_(pg::dtype_of(call.in(0))),
        out_dtype_(pg::dtype_of(call.out(0))) {
    const pg_tensor &x = call.in(0), &out = call.out(0);
    uint32_t axes = reduced_axes(call);
    ReduceAxes<1> split({&x}, axes);
    // Outputs with ones in place of the reduced axes are x's dimensions aligned at the end; without, they follow.
    bool aligned = out.rank != split.kept;
    for (uint32_t i = 0, k = 0; i < x.rank; i++) {
      if (axes >> i & 1u) continue;
      split.kept_stride[0][k] = out.stride[aligned ? i - (x.rank - out.rank) : k];
      k++;
    }
    auto kept = pg::make_nest<2>(split.kept, split.kept_shape, split.kept_stride, true);
    auto reduced = pg::make_nest<1>(split.reduced, split.reduced_shape, split.reduced_stride, kind_ != Kind::kPlace);
    if (reduced.count == 0 && (kind_ == Kind::kExtreme || kind_ == Kind::kPlace) && kept.count > 0) {
      pg::fail_argument("the largest or smallest of no elements is not defined");
    }
    int64_t width = 1;
    with_storage(kind_, dtype_, [&](auto tag) { width = Access<typename decltype(tag)::type>::kWidth; });
    shape_ = ReduceShape<1>(dtype_, width, kept, reduced);
    plan.workspace = shape_.workspace();
    if (kind_ == Kind::kMeasure) measure_ = find_measure(call);
    if (kind_ == Kind::kVariance) correction_ = call.attr<double>("correction");
  }

  void run(const Launch& launch) override {
    with_storage(kind_, dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      if constexpr (std::is_unsigned_v<S>) {
        TruthOf<S> r = ready<TruthOf<S>>(launch);
        r.all = other_;
        bool floating = pg::dtype_class(dtype_) == PG_M_FLOAT;
        r.mask = floating ? static_cast<S>(static_cast<S>(~S{0}) >> 1) : static_cast<S>(~S{0});  // -0 is zero
        start(launch, r);
      } else {
        number<S>(launch);
      }
    });
  }

 private:
  template <class R>
  R ready(const Launch& launch) const {
    R r;
    r.out = launch.out(0);
    r.dtype = out_dtype_;
    return r;
  }
  template <class R>
  void start(const Launch& launch, const R& r) const {
    const void* base[] = {launch.in(0)};
    reduce(launch, shape_, r, base, launch.workspace());
  }

  template <class S>
  void number(const Launch& launch) const {
    constexpr bool kAnyType = std::is_same_v<S, AnyFloat> || std::is_same_v<S, AnyInt>;
    if constexpr (kAnyType) {
      if (kind_ == Kind::kProduct) return start(launch, ready<ProductOf<S>>(launch));
    }
    if constexpr (!std::is_same_v<S, AnyFloat>) {
      if (std::is_same_v<S, int64_t> || kind_ == Kind::kSum || kind_ == Kind::kMean) {
        SumOf<S> r = ready<SumOf<S>>(launch);
        r.mean = kind_ == Kind::kMean;
        r.count = static_cast<double>(shape_.elements());
        return start(launch, r);
      }
    }
    if constexpr (!std::is_same_v<S, AnyFloat> && !std::is_same_v<S, int64_t>) {
      if (kind_ == Kind::kExtreme) {
        ExtremeOf<S> r = ready<ExtremeOf<S>>(launch);
        r.smallest = other_;
        return start(launch, r);
      }
      if (kind_ == Kind::kPlace) {
        PlaceOf<S> r = ready<PlaceOf<S>>(launch);
        r.smallest = other_;
        return start(launch, r);
      }
    }
    if constexpr (kIsFloat<S> && !kAnyType) {
      if (kind_ == Kind::kLogSumExp) return start(launch, ready<LogSumExpOf<S>>(launch));
      if (kind_ == Kind::kMeasure) {
        MeasureOf<S> r = ready<MeasureOf<S>>(launch);
        r.measure = measure_;
        return start(launch, r);
      }
      VarianceOf<S> r = ready<VarianceOf<S>>(launch);
      r.correction = correction_;
      r.root = other_;
      return start(launch, r);
    }
  }

  Kind kind_;
  bool other_;
  uint32_t dtype_, out_dtype_;
  Measure measure_ = Measure::kNumbers;
  double correction_ = 0;
  ReduceShape<1> shape_;
};

[[maybe_unused]] const int registered = [] {
  for (const Row& row : kReductions) pg::add_kernel<Reduce>(row.op);
  return 0;
}();

}  // namespace
}  // namespace cuda
