// SPDX-License-Identifier: Apache-2.0
// softmax and log_softmax along an axis, their gradients of rows, and the losses of cross_entropy, which are made of
// the same numbers: in one pass over lines that fit into shared memory, in two over longer ones (Milakov and Gimelshein
// 2018).
#include "softmax.hpp"

#include "line_sums.cuh"
#include "loss.cuh"
#include "stretch.cuh"

namespace cuda {
namespace {

struct SoftmaxArguments {
  LineArguments lines;
  const char* x = nullptr;
  char* y = nullptr;
  uint32_t dtype = 0;
  bool log = false, loses = false;
  LossArguments loss;
};

// The loss of a line, whose spread is the sum over classes of weight and log-probability; added up in `sums`.
template <class S, class C>
__device__ __forceinline__ void add_loss(const SoftmaxArguments& a, const Total<C>& total, int64_t line,
                                         const int64_t (&at)[kLineOperands], double spread, LossSum& sums) {
  const LossArguments& loss = a.loss;
  int64_t t = class_of(loss, line, at[2], a.lines.length, true);
  double one = 0;
  if (t >= 0) {
    C x[1];
    load<S, 1>(a.dtype, a.x + (at[1] + t * a.lines.step[1]) * int64_t{sizeof(S)}, x);
    double weight = class_weight(loss, t);
    one = -weight * static_cast<double>(total.log_of(x[0]));
    if (loss.smoothing != 0) {
      one = (1 - loss.smoothing) * one - loss.smoothing / static_cast<double>(a.lines.length) * spread;
    }
    sums.weight += weight;
  }
  sums.loss += one;
  if (loss.loss != nullptr) {
    set_any_float(loss.loss_dtype, loss.loss + at[3] * Access<AnyFloat>::bytes(loss.loss_dtype), one);
  }
}

// The sums of a block, of which some threads have some.
__device__ __forceinline__ void put_sums(const SoftmaxArguments& a, const LossSum& sums, int threads) {
  if (!a.loses) return;
  LossSum all = merge_group(sums, threads, [](LossSum& into, const LossSum& other) {
    into.loss += other.loss;
    into.weight += other.weight;
  });
  if (threadIdx.x == 0 && a.loss.sums != nullptr) a.loss.sums[blockIdx.x] = all;
}

// One thread's elements of one line, W at a time.
template <class S, int W>
struct LinePart {
  using C = typename Access<S>::C;
  const SoftmaxArguments& a;
  const int64_t (&at)[kLineOperands];
  C* cache;  // element j of the thread lies at j * lanes
  int lane;

  template <class Body>
  __device__ __forceinline__ void each(const Body& body) const {
    uint32_t mine = 0;  // of use where a line is cached; of longer ones it may wrap around
    for (int64_t i = static_cast<int64_t>(lane) * W; i < a.lines.length; i += static_cast<int64_t>(a.lines.lanes) * W) {
      keep_rolled(i);
      body(i, cache + (a.lines.cached ? mine : 0));
      mine += static_cast<uint32_t>(W * a.lines.lanes);
    }
  }
  __device__ __forceinline__ void fetch(int64_t i, C (&values)[W]) const {
    load<S, W>(a.dtype, a.x + (at[1] + i * a.lines.step[1]) * int64_t{sizeof(S)}, values);
  }

  __device__ __forceinline__ void again(int64_t, const C* own, C (&values)[W]) const {
    for (int w = 0; w < W; w++) values[w] = own[w * a.lines.lanes];
  }
  __device__ __forceinline__ void keep(C* own, const C (&values)[W]) const {
    for (int w = 0; w < W; w++) own[w * a.lines.lanes] = values[w];
  }
  // Unless logarithms are wanted.
  __device__ __forceinline__ void keep_powers(C* own, const C (&powers)[W]) const {
    if (!a.log) keep(own, powers);
  }

  __device__ __forceinline__ Powers<C> top_or_powers() const {
    Powers<C> state{0, -std::numeric_limits<C>::infinity()};
    if (a.lines.cached) {
      state.top = largest_of_line<W, C>(*this);
      return state;
    }
    each([&](int64_t i, C*) {
      C values[W];
      fetch(i, values);
      merge_powers(state, powers_of(values));
    });
    return state;
  }
  // Writes the line; the sum of weights and log-probabilities.
  __device__ __forceinline__ double put(const Total<C>& total) const {
    double spread = 0;
    bool spreads = a.loses && a.loss.smoothing != 0;
    if (a.y == nullptr && !spreads) return 0;
    each([&](int64_t i, C* own) {
      C values[W];
      if (a.lines.cached) {
        for (int w = 0; w < W; w++) values[w] = own[w * a.lines.lanes];
      } else {
        fetch(i, values);
      }
      for (int w = 0; w < W; w++) {
        if (a.log)
          values[w] = total.log_of(values[w]);
        else
          values[w] = a.lines.cached ? values[w] / total.sum : total.of(values[w]);
        if (spreads) spread += class_weight(a.loss, i + w) * static_cast<double>(values[w]);
      }
      if (a.y != nullptr) store<S, W>(a.dtype, a.y + (at[0] + i * a.lines.step[0]) * int64_t{sizeof(S)}, values);
    });
    return spread;
  }
};

template <class S, int W>
__device__ __forceinline__ void softmax_line(const SoftmaxArguments& a, int64_t line, bool mine,
                                             typename Access<S>::C* cache, int lane, LossSum& sums) {
  using C = typename Access<S>::C;
  int64_t at[kLineOperands] = {};
  if (mine) a.lines.lines.locate(line, at);
  LinePart<S, W> part{a, at, cache, lane};
  Powers<C> state{0, -std::numeric_limits<C>::infinity()};
  if (mine) state = part.top_or_powers();
  auto merge = [](Powers<C>& into, const Powers<C>& other) { merge_powers(into, other); };
  state = merge_group(state, a.lines.lanes, merge);
  if (a.lines.cached) state.sum = merge_group(mine ? powers_of_line<W>(part, state.top) : 0.0, a.lines.lanes, AddUp());
  Total<C> total(state);
  double spread = mine ? part.put(total) : 0;
  if (!a.loses) return;
  if (a.loss.smoothing != 0) spread = merge_group(spread, a.lines.lanes, AddUp());
  if (mine && lane == 0) add_loss<S>(a, total, line, at, spread, sums);
}

template <class S>
__global__ void __launch_bounds__(kReduceThreads, 2) softmax_rows(const __grid_constant__ SoftmaxArguments a) {
  using C = typename Access<S>::C;
  int lane = static_cast<int>(threadIdx.x) & (a.lines.lanes - 1), group = static_cast<int>(threadIdx.x) / a.lines.lanes;
  int groups = kReduceThreads / a.lines.lanes;
  C* cache = dynamic_shared<C>() + group * a.lines.per_group + lane;
  LossSum sums{0, 0};
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * groups; first < a.lines.lines.count;
       first += static_cast<int64_t>(gridDim.x) * groups) {
    keep_rolled(first);
    int64_t line = first + group;
    bool mine = line < a.lines.lines.count;
    if (a.lines.packets)
      softmax_line<S, Access<S>::kWidth>(a, line, mine, cache, lane, sums);
    else
      softmax_line<S, 1>(a, line, mine, cache, lane, sums);
  }
  put_sums(a, sums, kReduceThreads);
}

// A thread has a line; those behind it take every `behind`th element of the same one.
template <class S>
__global__ void __launch_bounds__(kReduceThreads, 2) softmax_columns(const __grid_constant__ SoftmaxArguments a) {
  using C = typename Access<S>::C;
  constexpr int U = 4;
  __shared__ Powers<C> shared[kReduceThreads];
  __shared__ double spreads[kReduceThreads];
  const LineArguments& l = a.lines;
  int thread = static_cast<int>(threadIdx.x), side = thread & (l.lanes - 1), row = thread / l.lanes;
  int behind = kReduceThreads / l.lanes;
  LossSum sums{0, 0};
  int64_t tiles = l.lines.count / l.columns * l.tiles;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    keep_rolled(tile);
    int64_t outer = tile / l.tiles, column = (tile - outer * l.tiles) * l.lanes + side;
    int64_t line = outer * l.columns + column, at[kLineOperands] = {};
    bool mine = column < l.columns;
    if (mine) l.lines.locate(line, at);
    auto fetch = [&](int64_t i, C* value) {
      load<S, 1>(a.dtype, a.x + (at[1] + i * l.step[1]) * int64_t{sizeof(S)}, value);
    };
    Powers<C> state{0, -std::numeric_limits<C>::infinity()};
    for (int64_t i = row; mine && i < l.length;) {
      keep_rolled(i);
      Powers<C> more;
      if (i + (U - 1) * behind < l.length) {
        C values[U];
        for (int u = 0; u < U; u++) fetch(i + u * behind, &values[u]);
        more = powers_of(values);
        i += U * behind;
      } else {
        C values[1];
        fetch(i, values);
        more = powers_of(values);
        i += behind;
      }
      merge_powers(state, more);
    }
    shared[thread] = state;
    __syncthreads();
    for (int half = behind / 2; half > 0; half /= 2) {
      keep_rolled(half);
      if (row < half) merge_powers(shared[thread], shared[thread + half * l.lanes]);
      __syncthreads();
    }
    Total<C> total(shared[side]);
    double spread = 0;
    bool spreading = a.loses && a.loss.smoothing != 0;
    for (int64_t i = row; mine && (a.y != nullptr || spreading) && i < l.length; i += behind) {
      C value[1];
      fetch(i, value);
      value[0] = a.log ? total.log_of(value[0]) : total.of(value[0]);
      if (spreading) spread += class_weight(a.loss, i) * static_cast<double>(value[0]);
      if (a.y != nullptr) store<S, 1>(a.dtype, a.y + (at[0] + i * l.step[0]) * int64_t{sizeof(S)}, value);
    }
    if (a.loses) {
      spreads[thread] = spread;
      __syncthreads();
      if (mine && row == 0) {
        for (int r = 1; spreading && r < behind; r++) spread += spreads[r * l.lanes + side];
        add_loss<S>(a, total, line, at, spread, sums);
      }
    }
    __syncthreads();  // before the next tile's states
  }
  put_sums(a, sums, kReduceThreads);
}

// ---- long rows ----

// Two blocks on a multiprocessor have enough packets on their way, and few enough rows that of what the first pass
// reads a good part is still in the cache for the second.
constexpr int kLongThreads = 512;
constexpr int64_t kLongRow = 4096;
template <class S>
constexpr int kOnTheWay = sizeof(S) == 4 ? 4 : 2;  // packets of a thread: registers have no room for more

// The largest element so far, and the sum of e^(x - largest).
template <class S, int M, class C>
__device__ __forceinline__ void add_powers(Powers<C>& state, const C (&values)[M]) {
  C top = larger_of(state.top, tree_max(values)), shift = power_shift(top), powers[M];
  if (top != state.top) {
    if (state.sum != 0) state.sum *= static_cast<double>(pg::math::exp_of(power_shift(state.top) - shift));
    state.top = top;
  }
#pragma unroll
  for (int m = 0; m < M; m++) powers[m] = power_of<S>(values[m] - shift);
  state.sum += static_cast<double>(tree_sum(powers));
}

template <class S>
__device__ __forceinline__ void put_powers(const Stretch<S>& part, const Total<typename Access<S>::C>& total, bool log,
                                           const char* x, char* y) {
  using C = typename Access<S>::C;
  bool aligned = same_cut(x, y);
  C share = C(1) / total.sum;
  auto of = [&](C value) { return log ? total.log_of(value) : power_of<S>(value - total.top) * share; };
  part.template each<kOnTheWay<S>>(true, [&](auto count, int64_t place) {
    constexpr int M = decltype(count)::value, W = Stretch<S>::kWidth;
    uint4 raw[M];
    read_packets<S>(x, place, part.apart(), true, raw);
#pragma unroll
    for (int m = 0; m < M; m++) {
      C values[W];
      unpack_packet<S>(raw[m], values);
#pragma unroll
      for (int w = 0; w < W; w++) values[w] = of(values[w]);
      write_elements<S>(y, place + m * part.apart(), aligned, values);
    }
  });
  part.each_single(
      [&](int64_t i) { set_element<S>(y + i * int64_t{sizeof(S)}, of(element<S>(x + i * int64_t{sizeof(S)}))); });
}

// A block has a row of elements that lie together, and reads it twice.
template <class S>
__global__ void __launch_bounds__(kLongThreads, 2) softmax_long(const __grid_constant__ SoftmaxArguments a) {
  using C = typename Access<S>::C;
  constexpr int W = Stretch<S>::kWidth;
  LossSum sums{0, 0};
  for (int64_t line = blockIdx.x; line < a.lines.lines.count; line += gridDim.x) {
    keep_rolled(line);
    int64_t at[kLineOperands];
    a.lines.lines.locate(line, at);
    const char* x = a.x + at[1] * int64_t{sizeof(S)};
    Stretch<S> part(x, a.lines.length, static_cast<int>(threadIdx.x), kLongThreads);
    Powers<C> state{0, -std::numeric_limits<C>::infinity()};
    part.template each<kOnTheWay<S>>(false, [&](auto count, int64_t place) {
      constexpr int M = decltype(count)::value;
      uint4 raw[M];
      C values[M * W];
      read_packets<S>(x, place, part.apart(), true, raw);
#pragma unroll
      for (int m = 0; m < M; m++) unpack_packet<S>(raw[m], values + m * W);
      add_powers<S>(state, values);
    });
    part.each_single([&](int64_t i) {
      C one[1] = {element<S>(x + i * int64_t{sizeof(S)})};
      add_powers<S>(state, one);
    });
    // The largest of all first: then a thread rescales its own sum, not those of all warps.
    C top = merge_group(state.top, kLongThreads, [](C& into, C other) { into = larger_of(into, other); });
    merge_powers(state, Powers<C>{0, top});
    state.sum = merge_group(state.sum, kLongThreads, AddUp());
    Total<C> total(state);
    if (a.y != nullptr) put_powers<S>(part, total, a.log, x, a.y + at[0] * int64_t{sizeof(S)});
    if (a.loses && threadIdx.x == 0) add_loss<S>(a, total, line, at, 0, sums);
  }
  put_sums(a, sums, kLongThreads);
}

struct SoftmaxGradArguments {
  Walk<kLineOperands> lines;  // dx, y, dy
  const char *y = nullptr, *dy = nullptr;
  char* dx = nullptr;
  int64_t length = 0;
  int32_t lanes = 1;  // 32, or the threads of a block
  bool log = false;
};

template <class S>
__global__ void __launch_bounds__(kLongThreads, 2) softmax_slopes(const __grid_constant__ SoftmaxGradArguments a) {
  using C = typename Access<S>::C;
  constexpr int W = Stretch<S>::kWidth;
  int lane = static_cast<int>(threadIdx.x) & (a.lanes - 1), group = static_cast<int>(threadIdx.x) / a.lanes;
  int groups = kLongThreads / a.lanes;
  for (int64_t first = int64_t{blockIdx.x} * groups; first < a.lines.count; first += int64_t{gridDim.x} * groups) {
    keep_rolled(first);
    bool mine = first + group < a.lines.count;
    int64_t at[kLineOperands] = {};
    if (mine) a.lines.locate(first + group, at);
    char* dx = a.dx + at[0] * int64_t{sizeof(S)};
    const char *y = a.y + at[1] * int64_t{sizeof(S)}, *dy = a.dy + at[2] * int64_t{sizeof(S)};
    Stretch<S> part(y, mine ? a.length : 0, lane, a.lanes);
    bool with_dy = same_cut(y, dy), with_dx = same_cut(y, dx);
    C total = static_cast<C>(merge_group(flow_of_line(part, y, dy, a.log), a.lanes, AddUp()));
    auto of = [&](C value, C flow) { return slope_of<S>(value, flow, total, a.log); };
    part.template each<2>(true, [&](auto count, int64_t place) {
      constexpr int M = decltype(count)::value;
      uint4 left[M], right[M];
      read_packets<S>(y, place, part.apart(), true, left);
      read_packets<S>(dy, place, part.apart(), with_dy, right);
#pragma unroll
      for (int m = 0; m < M; m++) {
        C values[W], flows[W];
        unpack_packet<S>(left[m], values);
        unpack_packet<S>(right[m], flows);
#pragma unroll
        for (int w = 0; w < W; w++) values[w] = of(values[w], flows[w]);
        write_elements<S>(dx, place + m * part.apart(), with_dx, values);
      }
    });
    part.each_single([&](int64_t i) {
      int64_t byte = i * int64_t{sizeof(S)};
      set_element<S>(dx + byte, of(element<S>(y + byte), element<S>(dy + byte)));
    });
  }
}

class Softmax final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(0))) pg::fail_support("y must have the dtype of x");
  }
  Softmax(const pg::KernelCall& call, pg::Plan&) : dtype_(pg::dtype_of(call.in(0))), log_(call.is("log_softmax")) {
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      shape_ = LineShape({&call.out(0), &call.in(0), nullptr, nullptr}, call.axis("axis", call.in(0).rank),
                         Access<S>::kWidth, sizeof(typename Access<S>::C));
    });
  }
  void run(const Launch& launch) override {
    run_softmax(launch, dtype_, shape_, log_, launch.in(0), launch.out(0), nullptr);
  }

 private:
  uint32_t dtype_;
  bool log_;
  LineShape shape_;
};
PG_KERNEL("softmax", Softmax);
PG_KERNEL("log_softmax", Softmax);

class SoftmaxGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats);
    uint32_t dtype = pg::dtype_of(call.out(0));
    with_float(dtype, [](auto) {});
    int64_t axis = call.axis("axis", call.in(0).rank);
    auto check = [&](const pg_tensor& t) {
      if (pg::dtype_of(t) != dtype) pg::fail_support("y, dy and dx must share one dtype");
      if (t.rank > 0 && t.shape[axis] > 1 && t.stride[axis] != 1) pg::fail_support("lines must be rows");
    };
    check(call.in(0)), check(call.in(1)), check(call.out(0));
  }
  SoftmaxGrad(const pg::KernelCall& call, pg::Plan&) : dtype_(pg::dtype_of(call.in(0))) {
    const pg_tensor& y = call.in(0);
    int64_t axis = call.axis("axis", y.rank), shape[PG_MAX_RANK], stride[kLineOperands][PG_MAX_RANK] = {};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < y.rank; i++) {
      if (i == static_cast<uint32_t>(axis)) continue;
      shape[rank] = y.shape[i];
      stride[0][rank] = call.out(0).stride[i], stride[1][rank] = y.stride[i], stride[2][rank] = call.in(1).stride[i];
      rank++;
    }
    a_.lines = Walk<kLineOperands>(pg::make_nest<kLineOperands>(rank, shape, stride, false));
    a_.length = y.rank == 0 ? 1 : y.shape[axis];
    a_.log = call.is("log_softmax_grad");
    a_.lanes = a_.length < kLongRow ? 32 : kLongThreads;
    grid_.threads = kLongThreads;
    grid_.x = static_cast<uint32_t>(std::min(divide_up(a_.lines.count, kLongThreads / a_.lanes), kMaxBlocks));
  }
  void run(const Launch& launch) override {
    if (a_.length == 0) return;
    SoftmaxGradArguments a = a_;
    a.y = launch.in<char>(0), a.dy = launch.in<char>(1), a.dx = launch.out<char>(0);
    with_float(dtype_, [&](auto tag) { launch(grid_, softmax_slopes<typename decltype(tag)::type>, a); });
  }

 private:
  uint32_t dtype_;
  SoftmaxGradArguments a_;
  Grid grid_;
};
PG_KERNEL("softmax_grad", SoftmaxGrad);
PG_KERNEL("log_softmax_grad", SoftmaxGrad);

}  // namespace

int64_t run_softmax(const Launch& launch, uint32_t dtype, const LineShape& shape, bool log, const void* x, void* y,
                    const LossArguments* loss) {
  SoftmaxArguments a;
  Grid grid;
  a.lines = shape.arguments(y, x, grid, loss == nullptr ? kMaxBlocks : kLossBlocks);
  a.x = static_cast<const char*>(x), a.y = static_cast<char*>(y);
  a.dtype = dtype, a.log = log, a.loses = loss != nullptr;
  if (loss != nullptr) a.loss = *loss;
  // Not in double, whose exponentials and logarithms take more registers than such blocks have.
  if (dtype != PG_F64 && a.lines.columns == 0 && a.lines.step[0] == 1 && a.lines.step[1] == 1 &&
      a.lines.length >= kLongRow && a.loss.smoothing == 0) {
    grid.threads = kLongThreads, grid.shared = 0;
    with_float(dtype, [&](auto tag) {
      using S = typename decltype(tag)::type;
      if constexpr (!std::is_same_v<S, double>) launch(grid, softmax_long<S>, a);
    });
    return grid.x;
  }
  with_float_storage(dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    launch(grid, a.lines.columns > 0 ? softmax_columns<S> : softmax_rows<S>, a);
  });
  return grid.x;
}

}  // namespace cuda
