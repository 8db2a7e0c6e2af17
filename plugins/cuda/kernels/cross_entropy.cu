// SPDX-License-Identifier: Apache-2.0
// Cross entropy of class numbers, and its gradient:
//   loss_i = -(1 - s) w[t_i] log p_i[t_i] - s/C sum_c w[c] log p_i[c]
// with label smoothing s; the mean divides by the sum of w[t_i]. Rows whose target is ignore_index count nowhere, nor
// do those whose target is out of range, which is noted. The losses are made along with log p (softmax.cu), a sum a
// block; the second launch here adds these up.
#include "group.cuh"
#include "loss.cuh"
#include "perigee/kernels/math.hpp"
#include "stretch.cuh"

namespace cuda {
namespace {

enum class Reduction { kMean, kSum, kNone };
constexpr int64_t kTotalBlocks = 64;

int64_t class_axis(const pg_tensor& t) { return t.rank == 1 ? 0 : 1; }

// What both directions need: targets, class weights, options.
struct Common {
  Common(const pg::KernelCall& call, const pg_tensor& logits, uint32_t target, uint32_t weight)
      : target_input(target),
        weight_input(weight),
        classes(logits.shape[class_axis(logits)]),
        reduce(static_cast<Reduction>(call.attr<int>("reduction"))),
        smoothing(call.runtime<double>("label_smoothing")) {
    loss.target_dtype = pg::dtype_of(call.in(target));
    loss.ignore = call.attr<int64_t>("ignore_index");
    if (call.has(weight)) {
      loss.weight_dtype = pg::dtype_of(call.in(weight));
      loss.weight_stride = call.in(weight).stride[0];
    }
  }
  static void supports(const pg::KernelCall& call, const pg_tensor& logits, uint32_t target, uint32_t weight) {
    check_dtypes(call, kNumbers);
    if (pg::dtype_class(pg::dtype_of(call.in(target))) != PG_M_INT) pg::fail_support("targets must be integers");
    if (pg::dtype_class(pg::dtype_of(logits)) != PG_M_FLOAT) pg::fail_support("logits must be floating");
    if (call.has(weight) && pg::dtype_class(pg::dtype_of(call.in(weight))) != PG_M_FLOAT) {
      pg::fail_support("class weights must be floating");
    }
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && pg::dtype_class(pg::dtype_of(call.out(i))) != PG_M_FLOAT) {
        pg::fail_support("results must be floating");
      }
    }
  }
  LossArguments arguments(const Launch& launch) const {
    LossArguments a = loss;
    a.target = launch.in<char>(target_input);
    a.weight = launch.has(weight_input) ? launch.in<char>(weight_input) : nullptr;
    a.smoothing = smoothing(launch.raw);
    a.faults = launch.fault_site(FaultKind::kTarget, classes, *launch.raw.inputs[target_input]);
    return a;
  }

  uint32_t target_input, weight_input;
  int64_t classes;
  Reduction reduce;
  pg::Runtime<double> smoothing;
  LossArguments loss;
};

__device__ __forceinline__ void add_sums(LossSum& into, const LossSum& other) {
  into.loss += other.loss;
  into.weight += other.weight;
}
__device__ __forceinline__ LossSum block_sum(const LossSum& sum) {
  return merge_group(sum, kReduceThreads, [](LossSum& into, const LossSum& other) { add_sums(into, other); });
}

__global__ void __launch_bounds__(kReduceThreads, 2)
    finish_loss(const LossSum* sums, int64_t blocks, bool mean, uint32_t dtype, char* out) {
  LossSum sum{0, 0};
  for (int64_t i = threadIdx.x; i < blocks; i += kReduceThreads) add_sums(sum, sums[i]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) set_any_float(dtype, out, mean ? sum.loss / sum.weight : sum.loss);
}

class CrossEntropy final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    Common::supports(call, call.in(0), 1, 2);
    if (call.has_output(1) && pg::dtype_of(call.out(1)) != pg::dtype_of(call.in(0))) {
      pg::fail_support("log_probs must have the dtype of the logits");
    }
  }
  CrossEntropy(const pg::KernelCall& call, pg::Plan& plan)
      : common_(call, call.in(0), 1, 2), dtype_(pg::dtype_of(call.in(0))), hidden_(call.has_output(1)) {
    common_.loss.loss_dtype = pg::dtype_of(call.out(0));
    const pg_tensor* logits = &call.in(0);
    // log_probs, which are dense: where nobody reads them the lines are cut as if they were there, and add up the same.
    int64_t stride[PG_MAX_RANK], step = 1;
    pg_tensor logs = *logits;
    logs.stride = stride;
    for (uint32_t i = logs.rank; i-- > 0; step *= logs.shape[i]) stride[i] = step;
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      shape_ = LineShape({&logs, logits, &call.in(1), common_.reduce == Reduction::kNone ? &call.out(0) : nullptr},
                         class_axis(*logits), Access<S>::kWidth, sizeof(typename Access<S>::C));
    });
    plan.workspace = kLossBlocks * sizeof(LossSum);
  }

  void run(const Launch& launch) override {
    LossArguments loss = common_.arguments(launch);
    loss.loss = common_.reduce == Reduction::kNone ? launch.out<char>(0) : nullptr;
    loss.sums = common_.reduce == Reduction::kNone ? nullptr : launch.workspace<LossSum>();
    int64_t blocks = run_softmax(launch, dtype_, shape_, true, launch.in(0), hidden_ ? launch.out(1) : nullptr, &loss);
    if (common_.reduce == Reduction::kNone) return;
    Grid one;
    one.threads = kReduceThreads;
    launch(one, finish_loss, loss.sums, blocks, common_.reduce == Reduction::kMean, loss.loss_dtype,
           launch.out<char>(0));
  }

 private:
  Common common_;
  uint32_t dtype_;
  bool hidden_;
  LineShape shape_;  // log_probs, logits, targets, losses
};
PG_KERNEL("cross_entropy", CrossEntropy, 0, 0, 1u << 1);

// ---- gradient ----

struct GradArguments {
  LineArguments lines;
  const char *logs = nullptr, *flow = nullptr;
  char* out = nullptr;
  uint32_t dtype = 0, flow_dtype = 0;
  bool mean = false;
  int64_t total_blocks = 0;
  const LossSum* totals =
      nullptr;  // weights of targets, one a block; in the first one's loss the weights of all classes
  LossArguments loss;
};

__global__ void __launch_bounds__(kReduceThreads, 2)
    total_weights(const __grid_constant__ LossArguments a, const __grid_constant__ Walk<kLineOperands> lines,
                  int64_t classes, LossSum* totals) {
  LossSum sum{0, 0};
  for (int64_t i = blockIdx.x * kReduceThreads + threadIdx.x; i < lines.count; i += gridDim.x * kReduceThreads) {
    int64_t at[kLineOperands];
    lines.locate(i, at);
    int64_t t = class_of(a, i, at[2], classes, false);
    if (t >= 0) sum.weight += class_weight(a, t);
  }
  for (int64_t c = threadIdx.x; blockIdx.x == 0 && c < classes; c += kReduceThreads) sum.loss += class_weight(a, c);
  sum = block_sum(sum);
  if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// Of a line: dlogits[c] = scale (share p[c] - each w[c] - hit [c = target]).
template <class C>
struct LineGrad {
  int64_t target;  // -1: all zero
  C factor, hit, each;

  __device__ LineGrad(const GradArguments& a, const LossSum& total, int64_t line, const int64_t (&at)[kLineOperands],
                      bool note) {
    target = class_of(a.loss, line, at[2], a.lines.length, note);
    double flow = any_float(a.flow_dtype, a.flow + at[3] * Access<AnyFloat>::bytes(a.flow_dtype));
    double scale = flow / (a.mean ? total.weight : 1.0), share = a.loss.smoothing / static_cast<double>(a.lines.length);
    double own = (1 - a.loss.smoothing) * (target >= 0 ? class_weight(a.loss, target) : 0);
    factor = static_cast<C>(scale * (own + (share == 0 ? 0 : share * total.loss)));
    hit = static_cast<C>(scale * own);
    each = static_cast<C>(scale * share);
  }
  __device__ __forceinline__ C of(const LossArguments& a, int64_t c, C log) const {
    if (target < 0) return 0;
    C d = pg::math::exp_of(log) * factor;
    if (each != 0) d -= static_cast<C>(static_cast<double>(each) * class_weight(a, c));
    return c == target ? d - hit : d;
  }
};

template <class S, int W, class C>
__device__ __forceinline__ void grad_elements(const GradArguments& a, const LineGrad<C>& grad,
                                              const int64_t (&at)[kLineOperands], int64_t first, int64_t step) {
  for (int64_t i = first; i < a.lines.length; i += step) {
    keep_rolled(i);
    C values[W];
    load<S, W>(a.dtype, a.logs + (at[1] + i * a.lines.step[1]) * int64_t{sizeof(S)}, values);
    for (int w = 0; w < W; w++) values[w] = grad.of(a.loss, i + w, values[w]);
    store<S, W>(a.dtype, a.out + (at[0] + i * a.lines.step[0]) * int64_t{sizeof(S)}, values);
  }
}

template <class S>
__global__ void __launch_bounds__(kReduceThreads, 2) cross_entropy_slopes(const __grid_constant__ GradArguments a) {
  using C = typename Access<S>::C;
  LossSum total{0, 1};
  if (a.totals != nullptr) {
    LossSum own{0, 0};
    if (static_cast<int64_t>(threadIdx.x) < a.total_blocks) own = a.totals[threadIdx.x];
    total = block_sum(own);
  }
  const LineArguments& l = a.lines;
  int thread = static_cast<int>(threadIdx.x), lane = thread & (l.lanes - 1), group = thread / l.lanes;
  int groups = kReduceThreads / l.lanes;
  // Side by side a thread has a line, and those behind it every `groups`th element; else a group of threads.
  bool columns = l.columns > 0;
  int64_t count = columns ? l.lines.count / l.columns * l.tiles : divide_up(l.lines.count, groups);
  for (int64_t tile = blockIdx.x; tile < count; tile += gridDim.x) {
    keep_rolled(tile);
    int64_t outer = columns ? tile / l.tiles : 0, column = (tile - outer * l.tiles) * l.lanes + lane;
    int64_t line = columns ? outer * l.columns + column : tile * groups + group, at[kLineOperands];
    if (columns ? column >= l.columns : line >= l.lines.count) continue;
    l.lines.locate(line, at);
    LineGrad<C> grad(a, total, line, at, columns ? group == 0 : lane == 0);
    if (l.packets) {
      constexpr int W = Access<S>::kWidth;
      grad_elements<S, W>(a, grad, at, static_cast<int64_t>(lane) * W, static_cast<int64_t>(l.lanes) * W);
    } else {
      grad_elements<S, 1>(a, grad, at, columns ? group : lane, columns ? groups : l.lanes);
    }
  }
}

// The same of long rows whose elements lie together, without label smoothing; a block has a row.
constexpr int64_t kLongGrad = 4096;

template <class S>
__global__ void __launch_bounds__(kReduceThreads, 2) cross_entropy_long(const __grid_constant__ GradArguments a) {
  using C = typename Access<S>::C;
  constexpr int W = Stretch<S>::kWidth;
  LossSum total{0, 1};
  if (a.totals != nullptr) {
    LossSum own{0, 0};
    if (static_cast<int64_t>(threadIdx.x) < a.total_blocks) own = a.totals[threadIdx.x];
    total = block_sum(own);
  }
  int lane = static_cast<int>(threadIdx.x);
  for (int64_t line = blockIdx.x; line < a.lines.lines.count; line += gridDim.x) {
    keep_rolled(line);
    int64_t at[kLineOperands];
    a.lines.lines.locate(line, at);
    const LineGrad<C> grad(a, total, line, at, lane == 0);
    const char* logs = a.logs + at[1] * int64_t{sizeof(S)};
    char* out = a.out + at[0] * int64_t{sizeof(S)};
    Stretch<S> part(logs, a.lines.length, lane, kReduceThreads);
    bool aligned = same_cut(logs, out), counts = grad.target >= 0;
    auto of = [&](C log, int64_t c) {
      C d = power_of<S>(log) * grad.factor;
      return counts ? c == grad.target ? d - grad.hit : d : C(0);
    };
    part.template each<4>(false, [&](auto count, int64_t place) {
      constexpr int M = decltype(count)::value;
      uint4 raw[M];
      read_packets<S>(logs, place, part.apart(), true, raw);
#pragma unroll
      for (int m = 0; m < M; m++) {
        // Where in the packet the target is, if it is there.
        int64_t first = place + m * part.apart(), off = grad.target - first;
        int hit = off >= 0 && off < W ? static_cast<int>(off) : -1;
        C values[W];
        unpack_packet<S>(raw[m], values);
#pragma unroll
        for (int w = 0; w < W; w++) values[w] = counts ? power_of<S>(values[w]) * grad.factor : C(0);
        if (hit >= 0) {
#pragma unroll
          for (int w = 0; w < W; w++) values[w] -= w == hit ? grad.hit : C(0);
        }
        write_elements<S>(out, first, aligned, values);
      }
    });
    part.each_single([&](int64_t i) {
      set_element<S>(out + i * int64_t{sizeof(S)}, of(element<S>(logs + i * int64_t{sizeof(S)}), i));
    });
  }
}

class CrossEntropyGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    Common::supports(call, call.in(1), 2, 3);
    if (pg::dtype_class(pg::dtype_of(call.in(0))) != PG_M_FLOAT) pg::fail_support("dloss must be floating");
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(1))) {
      pg::fail_support("dlogits must have the dtype of log_probs");
    }
  }
  CrossEntropyGrad(const pg::KernelCall& call, pg::Plan& plan)
      : common_(call, call.in(1), 2, 3), dtype_(pg::dtype_of(call.in(1))), flow_dtype_(pg::dtype_of(call.in(0))) {
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      shape_ = LineShape(
          {&call.out(0), &call.in(1), &call.in(2), common_.reduce == Reduction::kNone ? &call.in(0) : nullptr},
          class_axis(call.in(1)), Access<S>::kWidth, sizeof(typename Access<S>::C));
    });
    plan.workspace = kTotalBlocks * sizeof(LossSum);
  }

  void run(const Launch& launch) override {
    GradArguments a;
    Grid grid;
    a.logs = launch.in<char>(1), a.flow = launch.in<char>(0), a.out = launch.out<char>(0);
    a.lines = shape_.arguments(a.out, a.logs, grid);
    a.dtype = dtype_, a.flow_dtype = flow_dtype_;
    a.mean = common_.reduce == Reduction::kMean;
    a.loss = common_.arguments(launch);
    grid.shared = 0;
    if (a.mean || (a.loss.smoothing != 0)) {
      Grid blocks;
      blocks.threads = kReduceThreads;
      blocks.x =
          static_cast<uint32_t>(std::clamp<int64_t>(divide_up(shape_.lines(), kReduceThreads * 4), 1, kTotalBlocks));
      a.total_blocks = blocks.x;
      a.totals = launch.workspace<LossSum>();
      launch(blocks, total_weights, a.loss, a.lines.lines, common_.classes, launch.workspace<LossSum>());
    }
    const LineArguments& l = a.lines;
    if (l.columns == 0 && l.step[0] == 1 && l.step[1] == 1 && l.length >= kLongGrad && a.loss.smoothing == 0) {
      grid.x = static_cast<uint32_t>(std::min(l.lines.count, kMaxBlocks));
      with_float(dtype_, [&](auto tag) { launch(grid, cross_entropy_long<typename decltype(tag)::type>, a); });
      return;
    }
    with_float_storage(dtype_, [&](auto tag) { launch(grid, cross_entropy_slopes<typename decltype(tag)::type>, a); });
  }

 private:
  Common common_;
  uint32_t dtype_, flow_dtype_;
  LineShape shape_;  // dlogits, log_probs, targets, dloss
};
PG_KERNEL("cross_entropy_grad", CrossEntropyGrad);

}  // namespace
}  // namespace cuda
