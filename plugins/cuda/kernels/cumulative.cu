// SPDX-License-Identifier: Apache-2.0
// Running sums, products, logarithms of sums, and extremes along an axis: floats accumulate in double, integers in
// int64, which wraps around. A thread has a line where there are enough of them; else a block has one, or, of few long
// ones, a part of one, whose start is what the parts before it come to.
#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "line_shape.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda {
namespace {

constexpr int kItems = 4;  // of a thread, at a time
constexpr int64_t kTile = kReduceThreads * kItems;
constexpr int64_t kMaxScanParts = 1024;

enum class Running : uint8_t { kSum, kProduct, kLogSum, kLargest, kSmallest };

struct ScanArguments {
  LineArguments lines;  // y, x
  const char* x = nullptr;
  char* y = nullptr;
  uint32_t dtype = 0, out_dtype = 0;
  Running running = Running::kSum;
  bool reverse = false;
  int64_t* index = nullptr;  // of an extreme: where it is
  int64_t index_step = 0;
  int64_t parts = 1, per_part = 0;
  void* totals = nullptr;  // of parts; NULL where there is one
};

// What is carried along: double or uint64_t, or
template <class V>
struct Extreme {
  V value;
  int64_t at;  // -1: of nothing
};
template <class T>
struct ExtremeTraits {
  static constexpr bool kIs = false;
  using Value = T;
};
template <class V>
struct ExtremeTraits<Extreme<V>> {
  static constexpr bool kIs = true;
  using Value = V;
};

// Of nothing.
template <class T>
__device__ __forceinline__ T start_of(Running running) {
  if constexpr (ExtremeTraits<T>::kIs)
    return {0, -1};
  else if constexpr (std::is_same_v<T, double>)
    return running == Running::kLogSum ? -std::numeric_limits<double>::infinity() : running == Running::kProduct;
  else
    return running == Running::kProduct;
}
// Of equal extremes the later one stays; NaN beats all. In either order of a and b the same bits.
template <class V>
__device__ __forceinline__ bool beats(Running running, const Extreme<V>& a, const Extreme<V>& b) {
  if (a.at < 0 || b.at < 0) return b.at < 0;
  bool a_nan = pg::math::is_nan(a.value), b_nan = pg::math::is_nan(b.value);
  if (a_nan != b_nan) return a_nan;
  if (a_nan || a.value == b.value) return a.at > b.at;
  return (a.value > b.value) == (running == Running::kLargest);
}
template <class T>
__device__ __forceinline__ T combine(Running running, T a, T b) {
  if constexpr (ExtremeTraits<T>::kIs) {
    return beats(running, a, b) ? a : b;
  } else {
    if constexpr (std::is_same_v<T, double>) {
      if (running == Running::kLogSum) return pg::math::LogAddExp()(a, b);
    }
    return running == Running::kProduct ? a * b : a + b;
  }
}
// Where element i of a line lies.
__device__ __forceinline__ int64_t place_of(const ScanArguments& a, int64_t i) {
  return a.reverse ? a.lines.length - 1 - i : i;
}
template <class T>
__device__ __forceinline__ T scan_value(const ScanArguments& a, const int64_t (&at)[kLineOperands], int64_t i) {
  using V = typename ExtremeTraits<T>::Value;
  int64_t bytes = Access<AnyInt>::bytes(a.dtype);
  const char* from = a.x + (at[1] + place_of(a, i) * a.lines.step[1]) * bytes;
  V value;
  if constexpr (std::is_same_v<V, double>)
    value = any_float(a.dtype, from);
  else
    value = static_cast<V>(any_int(a.dtype, from));
  if constexpr (ExtremeTraits<T>::kIs)
    return {value, i};
  else
    return value;
}
template <class T>
__device__ __forceinline__ void put_scan(const ScanArguments& a, const int64_t (&at)[kLineOperands], int64_t i,
                                         T result) {
  char* to = a.y + (at[0] + place_of(a, i) * a.lines.step[0]) * Access<AnyInt>::bytes(a.out_dtype);
  typename ExtremeTraits<T>::Value value;
  if constexpr (ExtremeTraits<T>::kIs) {
    value = result.value;
    a.index[at[2] + i * a.index_step] = result.at;
  } else {
    value = result;
  }
  if constexpr (std::is_same_v<decltype(value), double>)
    set_any_float(a.out_dtype, to, value);
  else
    set_any_int(a.out_dtype, to, static_cast<int64_t>(value));
}

template <class T>
__global__ void __launch_bounds__(kReduceThreads, 2) scan_lines(ScanArguments a) {
  for (int64_t line = blockIdx.x * kReduceThreads + threadIdx.x; line < a.lines.lines.count;
       line += gridDim.x * kReduceThreads) {
    keep_rolled(line);
    int64_t at[kLineOperands];
    a.lines.lines.locate(line, at);
    T total = start_of<T>(a.running);
    for (int64_t i = 0; i < a.lines.length; i++) {
      keep_rolled(i);
      total = combine(a.running, total, scan_value<T>(a, at, i));
      put_scan(a, at, i, total);
    }
  }
}

template <class T>
__device__ __forceinline__ T merge_block(const ScanArguments& a, T value) {
  return merge_group(value, kReduceThreads, [&](T& into, const T& other) { into = combine(a.running, into, other); });
}

// Block x: a line, y: a part of it.
template <class T>
__global__ void __launch_bounds__(kReduceThreads, 2) total_parts(ScanArguments a) {
  for (int64_t line = blockIdx.x; line < a.lines.lines.count; line += gridDim.x) {
    keep_rolled(line);
    int64_t at[kLineOperands], begin = blockIdx.y * a.per_part, end = begin + a.per_part;
    a.lines.lines.locate(line, at);
    if (end > a.lines.length) end = a.lines.length;
    T total = start_of<T>(a.running);
    for (int64_t i = begin + threadIdx.x; i < end; i += kReduceThreads) {
      keep_rolled(i);
      total = combine(a.running, total, scan_value<T>(a, at, i));
    }
    total = merge_block(a, total);
    if (threadIdx.x == 0) static_cast<T*>(a.totals)[line * a.parts + blockIdx.y] = total;
  }
}

// What the threads before this one come to, and what all do. All threads of the block call it.
template <class T>
struct Before {
  T own, all;
};
template <class T>
__device__ __forceinline__ Before<T> scan_threads(Running running, T value) {
  __shared__ T warps[kReduceThreads / 32];
  int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  T one = start_of<T>(running), inclusive = value;
  for (int step = 1; step < 32; step *= 2) {
    keep_rolled(step);
    T other = shuffle_up(inclusive, step);
    if (lane >= step) inclusive = combine(running, other, inclusive);
  }
  T before = shuffle_up(inclusive, 1);
  if (lane == 0) before = one;
  __syncthreads();  // of the use before
  if (lane == 31) warps[warp] = inclusive;
  __syncthreads();
  T base = one, all = one;
  for (int w = 0; w < kReduceThreads / 32; w++) {
    keep_rolled(w);
    if (w == warp) base = all;
    all = combine(running, all, warps[w]);
  }
  return {combine(running, base, before), all};
}

template <class T>
__global__ void __launch_bounds__(kReduceThreads, 2) scan_parts(ScanArguments a) {
  for (int64_t line = blockIdx.x; line < a.lines.lines.count; line += gridDim.x) {
    keep_rolled(line);
    int64_t at[kLineOperands], begin = blockIdx.y * a.per_part, end = begin + a.per_part;
    a.lines.lines.locate(line, at);
    if (end > a.lines.length) end = a.lines.length;
    T one = start_of<T>(a.running), total = one;
    if (a.totals != nullptr) {
      for (int64_t p = threadIdx.x; p < blockIdx.y; p += kReduceThreads) {
        keep_rolled(p);
        total = combine(a.running, total, static_cast<const T*>(a.totals)[line * a.parts + p]);
      }
      total = merge_block(a, total);
    }
    for (int64_t tile = begin; tile < end; tile += kTile) {
      keep_rolled(tile);
      int64_t first = tile + static_cast<int64_t>(threadIdx.x) * kItems;
      T values[kItems], sum = one;
      for (int j = 0; j < kItems; j++) {
        values[j] = first + j < end ? scan_value<T>(a, at, first + j) : one;
        sum = combine(a.running, sum, values[j]);
      }
      Before<T> before = scan_threads(a.running, sum);
      T up_to = combine(a.running, total, before.own);
      for (int j = 0; j < kItems; j++) {
        up_to = combine(a.running, up_to, values[j]);
        if (first + j < end) put_scan(a, at, first + j, up_to);
      }
      total = combine(a.running, total, before.all);
    }
  }
}

Running find_running(const pg::KernelCall& call) {
  if (call.is("cumprod")) return Running::kProduct;
  if (call.is("logcumsumexp")) return Running::kLogSum;
  if (call.is("cummax")) return Running::kLargest;
  return call.is("cummin") ? Running::kSmallest : Running::kSum;
}
bool is_extreme(const pg::KernelCall& call) { return call.is("cummax") || call.is("cummin"); }

class Cumulative final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    bool x = pg::dtype_class(pg::dtype_of(call.in(0))) == PG_M_FLOAT;
    bool y = pg::dtype_class(pg::dtype_of(call.out(0))) == PG_M_FLOAT;
    if (x != y) pg::fail_support("floats accumulate to floats, integers to integers");
  }
  Cumulative(const pg::KernelCall& call, pg::Plan& plan)
      : shape_({&call.out(0), &call.in(0), is_extreme(call) ? &call.out(1) : nullptr, nullptr},
               call.axis("axis", call.in(0).rank), 1, 8) {
    a_.dtype = pg::dtype_of(call.in(0));
    a_.out_dtype = pg::dtype_of(call.out(0));
    a_.running = find_running(call);
    if (a_.running == Running::kLogSum) a_.reverse = call.attr<bool>("reverse");
    if (is_extreme(call) && call.in(0).rank > 0) a_.index_step = call.out(1).stride[call.axis("axis", call.in(0).rank)];
    a_.lines = shape_.arguments(nullptr, nullptr, grid_);
    int64_t lines = shape_.lines(), length = shape_.length();
    by_thread_ = length <= 32 || (a_.lines.columns > 0 && lines >= kReduceThreads * 8);
    if (by_thread_) {
      grid_ = grid_for(lines, 1, kReduceThreads);
      return;
    }
    int64_t wanted = lines == 0 ? 1 : std::min(kEnoughBlocks / lines, length / (kTile * 2));
    a_.parts = std::clamp<int64_t>(wanted, 1, kMaxScanParts);
    a_.per_part = divide_up(divide_up(length, a_.parts), kTile) * kTile;
    a_.parts = divide_up(length, a_.per_part);
    grid_ = Grid();
    grid_.x = static_cast<uint32_t>(std::min(lines, kMaxBlocks));
    grid_.y = static_cast<uint32_t>(a_.parts);
    grid_.threads = kReduceThreads;
    if (a_.parts > 1) plan.workspace = static_cast<uint64_t>(lines * a_.parts) * (is_extreme(call) ? 16 : 8);
  }
  void run(const Launch& launch) override {
    if (shape_.length() == 0) return;
    ScanArguments a = a_;
    a.x = launch.in<char>(0), a.y = launch.out<char>(0);
    bool floating = pg::dtype_class(a.dtype) == PG_M_FLOAT;
    if (a.running == Running::kLargest || a.running == Running::kSmallest) {
      a.index = launch.out<int64_t>(1);
      return floating ? start<Extreme<double>>(launch, a) : start<Extreme<int64_t>>(launch, a);
    }
    floating ? start<double>(launch, a) : start<uint64_t>(launch, a);
  }

 private:
  template <class T>
  void start(const Launch& launch, ScanArguments& a) const {
    if (by_thread_) return launch(grid_, scan_lines<T>, a);
    if (a.parts > 1) {
      a.totals = launch.workspace();
      launch(grid_, total_parts<T>, a);
    }
    launch(grid_, scan_parts<T>, a);
  }

  LineShape shape_;
  ScanArguments a_;
  Grid grid_;
  bool by_thread_ = false;
};
PG_KERNEL("cumsum", Cumulative);
PG_KERNEL("cumprod", Cumulative);
PG_KERNEL("logcumsumexp", Cumulative);
PG_KERNEL("cummax", Cumulative);
PG_KERNEL("cummin", Cumulative);

}  // namespace
}  // namespace cuda
