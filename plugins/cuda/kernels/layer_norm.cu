// SPDX-License-Identifier: Apache-2.0
// layer_norm(x, weight?, bias?) -> y, mean, invstd and layer_norm_grad(dy, x, weight?, mean, invstd) -> dx, dweight,
// dbias. x is rows of the `dims` trailing axes; a group of threads has a row and keeps it in shared memory where it
// fits. dweight and dbias are reductions over rows.
#include "line_sums.cuh"
#include "normalise.hpp"

namespace cuda {
namespace {

// Rows of N operands, and vectors that belong to the places within one.
template <int N>
struct RowArguments {
  const char* x[N] = {};
  char* y = nullptr;  // dense
  uint32_t dtype = 0;
  int32_t lanes = 1, per_group = 0;
  bool packets = false, cached = false;
  int64_t count = 0, size = 0;
  Walk<N> rows, row;
  const char *weight = nullptr, *bias = nullptr;
  uint32_t weight_dtype = 0, bias_dtype = 0;
  Walk<2> affine;  // weight, bias
  void *mean = nullptr, *invstd = nullptr;
  double eps = 0;
};

// One thread's elements of a row, W at a time.
template <class S, int W, int N>
struct RowPart {
  using C = typename Access<S>::C;
  const RowArguments<N>& a;
  const int64_t (&start)[N];
  C* cache;  // element j of the thread lies at j * lanes
  int lane;

  template <class Body>
  __device__ __forceinline__ void each(const Body& body) const {
    uint32_t mine = 0;  // of use where a line is cached; of longer ones it may wrap around
    for (int64_t i = static_cast<int64_t>(lane) * W; i < a.size; i += static_cast<int64_t>(a.lanes) * W) {
      keep_rolled(i);
      body(i, cache + (a.cached ? mine : 0));
      mine += static_cast<uint32_t>(W * a.lanes);
    }
  }
  __device__ __forceinline__ void fetch(int64_t i, C (&values)[N][W]) const {
    int64_t at[N];
    a.row.locate(i, at);
    for (int n = 0; n < N; n++) load<S, W>(a.dtype, a.x[n] + (start[n] + at[n]) * int64_t{sizeof(S)}, values[n]);
  }
  // The same of the one operand that may be kept.
  __device__ __forceinline__ void fetch(int64_t i, C (&values)[W]) const {
    C all[1][W];
    fetch(i, all);
    for (int w = 0; w < W; w++) values[w] = all[0][w];
  }
  __device__ __forceinline__ void again(int64_t i, const C* own, C (&values)[W]) const {
    if (!a.cached) return fetch(i, values);
    for (int w = 0; w < W; w++) values[w] = own[w * a.lanes];
  }
  __device__ __forceinline__ void keep(C* own, const C (&values)[W]) const {
    for (int w = 0; a.cached && w < W; w++) own[w * a.lanes] = values[w];
  }
  __device__ __forceinline__ void put(int64_t row, int64_t i, const C (&values)[W]) const {
    store<S, W>(a.dtype, a.y + (row * a.size + i) * int64_t{sizeof(S)}, values);
  }
  __device__ __forceinline__ void affine(int64_t i, C& weight, C& bias) const {
    int64_t at[2];
    a.affine.locate(i, at);
    weight = 1, bias = 0;
    if (a.weight != nullptr) {
      weight = static_cast<C>(any_float(a.weight_dtype, a.weight + at[0] * Access<AnyFloat>::bytes(a.weight_dtype)));
    }
    if (a.bias != nullptr) {
      bias = static_cast<C>(any_float(a.bias_dtype, a.bias + at[1] * Access<AnyFloat>::bytes(a.bias_dtype)));
    }
  }
};

template <class S, int W>
__device__ __forceinline__ void normalise_row(const RowArguments<1>& a, int64_t row, bool mine,
                                              typename Access<S>::C* cache, int lane) {
  using C = typename Access<S>::C;
  int64_t start[1] = {};
  if (mine) a.rows.locate(row, start);
  RowPart<S, W, 1> part{a, start, cache, lane};
  const LineScale<C> scale = scale_of_line<W, C>(part, mine, a.lanes, static_cast<double>(a.size), a.eps);
  if (!mine) return;
  part.each([&](int64_t i, C* own) {
    C x[W];
    part.again(i, own, x);
    for (int w = 0; w < W; w++) {
      C weight, bias;
      part.affine(i + w, weight, bias);
      x[w] = (x[w] - scale.mean) * scale.invstd * weight + bias;
    }
    part.put(row, i, x);
  });
  if (lane != 0) return;
  if (a.mean != nullptr) static_cast<C*>(a.mean)[row] = scale.mean;
  if (a.invstd != nullptr) static_cast<C*>(a.invstd)[row] = scale.invstd;
}

// With xh = (x - mean) invstd and g = dy weight: dx = invstd (g - mean(g) - xh mean(g xh)).
template <class S, int W>
__device__ __forceinline__ void differentiate_row(const RowArguments<2>& a, int64_t row, bool mine,
                                                  typename Access<S>::C* cache, int lane) {
  using C = typename Access<S>::C;
  struct Sums {
    double g, gx;
  };
  int64_t start[2] = {};
  C mean = 0, invstd = 0;
  if (mine) {
    a.rows.locate(row, start);
    mean = static_cast<const C*>(a.mean)[row], invstd = static_cast<const C*>(a.invstd)[row];
  }
  RowPart<S, W, 2> part{a, start, cache, lane};
  Sums sums{0, 0};
  auto weighted = [&](int64_t i, C(&values)[2][W]) {  // g, xh
    part.fetch(i, values);
    for (int w = 0; w < W; w++) {
      C weight, bias;
      part.affine(i + w, weight, bias);
      values[0][w] *= weight;
      values[1][w] = (values[1][w] - mean) * invstd;
    }
  };
  if (mine) {
    part.each([&](int64_t i, C*) {
      C values[2][W];
      weighted(i, values);
      sums.g += static_cast<double>(tree_sum(values[0]));
      for (int w = 0; w < W; w++) values[1][w] *= values[0][w];
      sums.gx += static_cast<double>(tree_sum(values[1]));
    });
  }
  sums = merge_group(sums, a.lanes, [](Sums& into, const Sums& other) {
    into.g += other.g;
    into.gx += other.gx;
  });
  if (!mine) return;
  C shift = static_cast<C>(sums.g / static_cast<double>(a.size)),
    slope = static_cast<C>(sums.gx / static_cast<double>(a.size));
  part.each([&](int64_t i, C*) {
    C values[2][W];
    weighted(i, values);
    for (int w = 0; w < W; w++) values[0][w] = invstd * (values[0][w] - shift - values[1][w] * slope);
    part.put(row, i, values[0]);
  });
}

template <class S, int N>
__global__ void __launch_bounds__(kReduceThreads, 2) layer_norm_rows(RowArguments<N> a) {
  using C = typename Access<S>::C;
  constexpr int kWidth = Access<S>::kWidth;
  int lane = static_cast<int>(threadIdx.x) & (a.lanes - 1), group = static_cast<int>(threadIdx.x) / a.lanes;
  int groups = kReduceThreads / a.lanes;
  C* cache = dynamic_shared<C>() + group * a.per_group + lane;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * groups; first < a.count;
       first += static_cast<int64_t>(gridDim.x) * groups) {
    keep_rolled(first);
    int64_t row = first + group;
    bool mine = row < a.count;
    if constexpr (N == 1) {
      if (a.packets)
        normalise_row<S, kWidth>(a, row, mine, cache, lane);
      else
        normalise_row<S, 1>(a, row, mine, cache, lane);
    } else {
      if (a.packets)
        differentiate_row<S, kWidth>(a, row, mine, cache, lane);
      else
        differentiate_row<S, 1>(a, row, mine, cache, lane);
    }
  }
}

// ---- rows in registers ----

// Rows of packets, of at most 32 E elements, E a lane of the warp that has the row: read once. Weights and biases are
// packets too.
constexpr int kRowLanes = kFullLanes;

// W of a vector's elements, of the storage of x or of float32; `absent` where there is no vector.
template <class S, int W>
__device__ __forceinline__ void read_affine(const char* at, uint32_t dtype, uint32_t own, int32_t i, float absent,
                                            float (&values)[W]) {
  if (at == nullptr) {
#pragma unroll
    for (int w = 0; w < W; w++) values[w] = absent;
  } else if (sizeof(S) == 4 || dtype == own) {
    unpack_packet<S>(read_packet(at + i * int64_t{sizeof(S)}), values);
  } else {
#pragma unroll
    for (int w = 0; w < W; w += 4) unpack_packet<float>(read_packet(at + (i + w) * int64_t{4}), values + w);
  }
}

template <class S, int E>
__global__ void __launch_bounds__(kReduceThreads, 2) layer_norm_kept(const __grid_constant__ RowArguments<1> a) {
  constexpr int W = Access<S>::kWidth, P = E / W, kRows = kReduceThreads / kRowLanes;
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes, warp = static_cast<int>(threadIdx.x) / kRowLanes;
  const auto size = static_cast<int32_t>(a.size);
  const double share = 1 / static_cast<double>(size);
  for (int64_t row = int64_t{blockIdx.x} * kRows + warp; row < a.count; row += int64_t{gridDim.x} * kRows) {
    keep_rolled(row);
    int64_t start[1];
    a.rows.locate(row, start);
    const char* x = a.x[0] + start[0] * int64_t{sizeof(S)};
    char* y = a.y + row * a.size * int64_t{sizeof(S)};
    float values[P][W];
    const LineScale<float> scale = keep_line<S>(x, lane, size, share, a.eps, values);
#pragma unroll
    for (int p = 0; p < P; p++) {
      int32_t i = (p * kRowLanes + lane) * W;
      if (i >= size) continue;
      float weight[W], bias[W];
      read_affine<S>(a.weight, a.weight_dtype, a.dtype, i, 1, weight);
      read_affine<S>(a.bias, a.bias_dtype, a.dtype, i, 0, bias);
#pragma unroll
      for (int w = 0; w < W; w++) values[p][w] = values[p][w] * scale.invstd * weight[w] + bias[w];
      write_packet(y + i * int64_t{sizeof(S)}, pack_packet<S>(values[p]), true);
    }
    if (lane != 0) continue;
    if (a.mean != nullptr) static_cast<float*>(a.mean)[row] = scale.mean;
    if (a.invstd != nullptr) static_cast<float*>(a.invstd)[row] = scale.invstd;
  }
}

// As differentiate_row. A warp reads its row twice, of both operands: the second time it is still near.
template <class S>
__global__ void __launch_bounds__(kReduceThreads, 2) layer_norm_slopes(const __grid_constant__ RowArguments<2> a) {
  constexpr int W = Access<S>::kWidth, kRows = kReduceThreads / kRowLanes, U = W == 4 ? 4 : 2;
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes, warp = static_cast<int>(threadIdx.x) / kRowLanes;
  const auto size = static_cast<int32_t>(a.size);
  const double share = 1 / static_cast<double>(size);
  for (int64_t row = int64_t{blockIdx.x} * kRows + warp; row < a.count; row += int64_t{gridDim.x} * kRows) {
    keep_rolled(row);
    int64_t start[2];
    a.rows.locate(row, start);
    const char *dy = a.x[0] + start[0] * int64_t{sizeof(S)}, *x = a.x[1] + start[1] * int64_t{sizeof(S)};
    const float mean = static_cast<const float*>(a.mean)[row], invstd = static_cast<const float*>(a.invstd)[row];
    // body(i, g, xh)
    auto each = [&](const auto& body) {
      for (int32_t first = lane * W; first < size; first += U * kRowLanes * W) {
        keep_rolled(first);
        uint4 left[U], right[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
          int32_t i = first + u * kRowLanes * W;
          left[u] = i < size ? read_packet(dy + i * int64_t{sizeof(S)}) : uint4{};
          right[u] = i < size ? read_packet(x + i * int64_t{sizeof(S)}) : uint4{};
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
          int32_t i = first + u * kRowLanes * W;
          if (i >= size) continue;
          float weight[W], g[W], xh[W];
          read_affine<S>(a.weight, a.weight_dtype, a.dtype, i, 1, weight);
          unpack_packet<S>(left[u], g);
          unpack_packet<S>(right[u], xh);
#pragma unroll
          for (int w = 0; w < W; w++) {
            g[w] *= weight[w];
            xh[w] = (xh[w] - mean) * invstd;
          }
          body(i, g, xh);
        }
      }
    };
    double sum = 0, products = 0;
    each([&](int32_t, float(&g)[W], float(&xh)[W]) {
      sum += static_cast<double>(tree_sum(g));
#pragma unroll
      for (int w = 0; w < W; w++) xh[w] *= g[w];
      products += static_cast<double>(tree_sum(xh));
    });
#pragma unroll
    for (int step = kRowLanes / 2; step > 0; step /= 2) {
      sum += shuffle_xor(sum, step);
      products += shuffle_xor(products, step);
    }
    const auto shift = static_cast<float>(sum * share), slope = static_cast<float>(products * share);
    char* dx = a.y + row * a.size * int64_t{sizeof(S)};
    each([&](int32_t i, float(&g)[W], float(&xh)[W]) {
#pragma unroll
      for (int w = 0; w < W; w++) g[w] = invstd * (g[w] - shift - xh[w] * slope);
      write_packet(dx + i * int64_t{sizeof(S)}, pack_packet<S>(g), true);
    });
  }
}

// Whether rows of at most `most` elements are such.
template <int N>
bool kept(const RowArguments<N>& a, int64_t most) {
  auto fits = [&](const char* at, uint32_t dtype, int which) {
    return at == nullptr || ((reinterpret_cast<uintptr_t>(at) & 15u) == 0 && a.affine.linear(which) &&
                             (dtype == a.dtype || dtype == PG_F32));
  };
  return a.packets && a.dtype != PG_F64 && a.size >= 256 && a.size <= most && fits(a.weight, a.weight_dtype, 0) &&
         fits(a.bias, a.bias_dtype, 1);
}
Grid kept_grid(int64_t rows) {
  Grid grid;
  grid.threads = kReduceThreads;
  grid.x = static_cast<uint32_t>(std::min(divide_up(rows, kReduceThreads / kRowLanes), kMaxBlocks));
  return grid;
}
// body(Tag<S>()) of the three dtypes that are computed in float.
template <class Body>
void with_narrow(uint32_t dtype, const Body& body) {
  if (dtype == PG_F32) return body(Tag<float>());
  if (dtype == PG_F16) return body(Tag<f16>());
  body(Tag<bf16>());
}

uint32_t rows_rank(const pg::KernelCall& call, const pg_tensor& x) {
  auto dims = call.attr<int64_t>("dims");
  if (dims < 1 || dims > x.rank) pg::fail_argument(pg::format("%s: dims is out of range", call.op()));
  return x.rank - static_cast<uint32_t>(dims);
}

// The shape of rows, prepared.
template <int N>
class Rows {
 public:
  Rows() = default;
  Rows(const pg_tensor* const (&operands)[N], uint32_t leading, const pg_tensor* weight, const pg_tensor* bias) {
    const pg_tensor& x = *operands[0];
    int64_t stride[N][PG_MAX_RANK] = {}, inner[N][PG_MAX_RANK] = {}, affine[2][PG_MAX_RANK] = {};
    for (uint32_t i = 0; i < x.rank; i++) {
      for (int n = 0; n < N; n++) {
        (i < leading ? stride[n][i] : inner[n][i - leading]) = operands[n]->stride[i];
      }
      if (i >= leading && weight != nullptr) affine[0][i - leading] = weight->stride[i - leading];
      if (i >= leading && bias != nullptr) affine[1][i - leading] = bias->stride[i - leading];
    }
    a_.rows = Walk<N>(pg::make_nest<N>(leading, x.shape, stride, false));
    a_.row = Walk<N>(pg::make_nest<N>(x.rank - leading, x.shape + leading, inner, false));
    a_.affine = Walk<2>(pg::make_nest<2>(x.rank - leading, x.shape + leading, affine, false));
    a_.count = a_.rows.count, a_.size = a_.row.count;
    a_.dtype = pg::dtype_of(x);
    if (weight != nullptr) a_.weight_dtype = pg::dtype_of(*weight);
    if (bias != nullptr) a_.bias_dtype = pg::dtype_of(*bias);
  }
  int64_t count() const { return a_.count; }
  int64_t size() const { return a_.size; }

  // Arguments but for the vectors.
  template <class S>
  RowArguments<N> arguments(const void* const (&operands)[N], void* y, Grid& grid) const {
    constexpr int64_t kWidth = Access<S>::kWidth;
    RowArguments<N> a = a_;
    uintptr_t addresses = reinterpret_cast<uintptr_t>(y);
    a.packets = a_.size % kWidth == 0;
    for (int n = 0; n < N; n++) {
      a.x[n] = static_cast<const char*>(operands[n]);
      addresses |= reinterpret_cast<uintptr_t>(operands[n]);
      a.packets = a.packets && a_.row.linear(n);
      for (int i = 0; i < a_.rows.rank; i++) a.packets = a.packets && a_.rows.stride[n][i] % kWidth == 0;
    }
    a.packets = a.packets && (addresses & 15u) == 0;
    a.y = static_cast<char*>(y);
    CachedRowsPlan plan = plan_cached_rows(a.count, a.size, a.packets ? kWidth : 1, sizeof(typename Access<S>::C));
    a.lanes = plan.lanes, a.per_group = plan.per_group, a.cached = plan.cached;
    grid = plan.grid;
    return a;
  }

 private:
  RowArguments<N> a_;
};

class LayerNorm final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_norm_dtypes(call, 0, 1, 2);
    rows_rank(call, call.in(0));
  }
  LayerNorm(const pg::KernelCall& call, pg::Plan&)
      : dtype_(pg::dtype_of(call.in(0))),
        has_mean_(call.has_output(1)),
        has_invstd_(call.has_output(2)),
        eps_(call.runtime<double>("eps")),
        rows_({&call.in(0)}, rows_rank(call, call.in(0)), call.has(1) ? &call.in(1) : nullptr,
              call.has(2) ? &call.in(2) : nullptr) {}
  void run(const Launch& launch) override {
    if (rows_.count() * rows_.size() == 0) return;
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      Grid grid;
      RowArguments<1> a = rows_.arguments<S>({launch.in(0)}, launch.out(0), grid);
      a.weight = launch.has(1) ? launch.in<char>(1) : nullptr;
      a.bias = launch.has(2) ? launch.in<char>(2) : nullptr;
      a.mean = has_mean_ ? launch.out(1) : nullptr;
      a.invstd = has_invstd_ ? launch.out(2) : nullptr;
      a.eps = eps_(launch.raw);
      if (!kept(a, 2048)) return launch(grid, layer_norm_rows<S, 1>, a);
      with_narrow(dtype_, [&](auto own) {
        using N = typename decltype(own)::type;
        launch(kept_grid(a.count), a.size <= 1024 ? layer_norm_kept<N, 32> : layer_norm_kept<N, 64>, a);
      });
    });
  }

 private:
  uint32_t dtype_;
  bool has_mean_, has_invstd_;
  pg::Runtime<double> eps_;
  Rows<1> rows_;
};
PG_KERNEL("layer_norm", LayerNorm, 0, 0, 1u << 1 | 1u << 2);

// Places within a row stay, rows go.
ReduceShape<2> by_place(const pg::KernelCall& call) {
  const pg_tensor* operands[2] = {&call.in(0), &call.in(1)};
  const pg_tensor& x = call.in(1);
  ReduceAxes<2> split(operands, (1u << rows_rank(call, x)) - 1);
  int64_t width = 1;
  uint32_t dtype = pg::dtype_of(x);
  with_float_storage(dtype, [&](auto tag) { width = Access<typename decltype(tag)::type>::kWidth; });
  return ReduceShape<2>(dtype, width, pg::make_nest<3>(split.kept, split.kept_shape, split.kept_stride, false),
                        pg::make_nest<2>(split.reduced, split.reduced_shape, split.reduced_stride, false));
}

class LayerNormGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_norm_dtypes(call, 1, 2, 4);
    uint32_t dtype = pg::dtype_of(call.in(1));
    if (pg::dtype_of(call.in(0)) != dtype) pg::fail_support("dy and x must share one dtype");
    for (uint32_t i : {3u, 4u}) {
      if (pg::dtype_of(call.in(i)) != statistics_dtype(dtype) || !pg::is_contiguous(call.in(i))) {
        pg::fail_support("mean and invstd must be as layer_norm leaves them: dense, of the statistics' dtype");
      }
    }
    rows_rank(call, call.in(1));
  }
  LayerNormGrad(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.in(1))),
        outputs_(call.output_count()),
        rows_({&call.in(0), &call.in(1)}, rows_rank(call, call.in(1)), call.has(2) ? &call.in(2) : nullptr, nullptr),
        shape_(by_place(call)) {
    grad_.by_place = true;
    for (uint32_t i = 1; i < outputs_; i++) {
      AnyVector& v = i == 1 ? grad_.dweight : grad_.dbias;
      v.dtype = pg::dtype_of(call.out(i));
    }
    plan.workspace = shape_.workspace();
  }
  void run(const Launch& launch) override {
    if (rows_.size() == 0) return;
    const void* operands[2] = {launch.in(0), launch.in(1)};
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      Grid grid;
      RowArguments<2> a = rows_.arguments<S>(operands, launch.out(0), grid);
      grid.shared = 0;  // rows of two operands are read again instead
      a.weight = launch.has(2) ? launch.in<char>(2) : nullptr;
      a.mean = launch.mutated(3), a.invstd = launch.mutated(4);
      if (!kept(a, 4096)) return launch(grid, layer_norm_rows<S, 2>, a);
      with_narrow(dtype_,
                  [&](auto own) { launch(kept_grid(a.count), layer_norm_slopes<typename decltype(own)::type>, a); });
    });
    if (outputs_ < 2) return;
    NormGrad grad = grad_;
    grad.mean.at = launch.mutated<char>(3), grad.invstd.at = launch.mutated<char>(4);
    grad.dweight.at = launch.out<char>(1);
    grad.dbias.at = outputs_ > 2 ? launch.out<char>(2) : nullptr;
    reduce_norm_grad(launch, dtype_, shape_, grad, operands, launch.workspace());
  }

 private:
  uint32_t dtype_, outputs_;
  Rows<2> rows_;
  ReduceShape<2> shape_;
  NormGrad grad_;
};
PG_KERNEL("layer_norm_grad", LayerNormGrad);

}  // namespace
}  // namespace cuda
