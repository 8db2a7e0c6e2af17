// SPDX-License-Identifier: Apache-2.0
// batch_norm(x, weight?, bias?, running_mean?, running_var?) -> y, mean, invstd and batch_norm_grad(dy, x, weight?,
// mean, invstd) -> dx, dweight, dbias. A reduction over each channel leaves four numbers of it, with which a second
// launch makes every element. Where cuDNN serves a call (batch_norm_cudnn.hpp) these kernels wait for addresses that it
// does not take.
#include <algorithm>

#include "kernels/batch_norm_cudnn.hpp"
#include "normalise.hpp"
#include "reduce.cuh"
#include "reducers.cuh"

namespace cuda {
namespace {

__device__ __forceinline__ double value_of(const AnyVector& v, int64_t i, double otherwise) {
  return v.at == nullptr ? otherwise : any_float(v.dtype, v.at + i * v.stride * Access<AnyFloat>::bytes(v.dtype));
}
__device__ __forceinline__ void set_value(const AnyVector& v, int64_t i, double value) {
  if (v.at != nullptr) set_any_float(v.dtype, v.at + i * v.stride * Access<AnyFloat>::bytes(v.dtype), value);
}

// What the statistics of a channel become.
struct Channel {
  AnyVector weight, bias, running_mean, running_var;
  double momentum = 0, eps = 0;
  void *mean = nullptr, *invstd = nullptr, *terms = nullptr;  // mean and invstd may be absent
};

template <class C>
__device__ __forceinline__ void put_channel(const Channel& a, int64_t c, double mean, double variance) {
  C center = static_cast<C>(mean), rounded = static_cast<C>(variance);
  C invstd = static_cast<C>(1 / sqrt(static_cast<double>(rounded) + a.eps));
  if (a.mean != nullptr) static_cast<C*>(a.mean)[c] = center;
  if (a.invstd != nullptr) static_cast<C*>(a.invstd)[c] = invstd;
  static_cast<Terms<C>*>(a.terms)[c] = {center, invstd * static_cast<C>(value_of(a.weight, c, 1)),
                                        static_cast<C>(value_of(a.bias, c, 0)), C(0)};
}

template <class S>
struct StatisticsOf : MomentsOf<S> {
  using C = typename Access<S>::C;
  Channel channel;

  __device__ void finish(int64_t c, int64_t, const Moments& s) const {
    double variance = s.squares / s.count, m = channel.momentum;
    put_channel<C>(channel, c, s.count == 0 ? variance : s.mean, variance);
    if (s.count == 0) return;
    // The running variance is that of the population.
    double unbiased = s.count / (s.count - 1) * variance;
    const AnyVector &mean = channel.running_mean, &var = channel.running_var;
    set_value(mean, c, (1 - m) * value_of(mean, c, 0) + m * s.mean);
    set_value(var, c, (1 - m) * value_of(var, c, 1) + m * unbiased);
  }
};

template <class C>
__global__ void __launch_bounds__(kThreads) use_running(Channel a, int64_t channels) {
  for (int64_t c = blockIdx.x * int64_t{kThreads} + threadIdx.x; c < channels; c += int64_t{gridDim.x} * kThreads) {
    put_channel<C>(a, c, value_of(a.running_mean, c, 0), value_of(a.running_var, c, 1));
  }
}

template <class S>
struct NormGradOf {
  using Storage = S;
  using C = typename Access<S>::C;
  static constexpr int kOperands = 2;
  struct State {
    double dy, dyx;
  };
  NormGrad a;

  __device__ void start(State& s) const { s = {0, 0}; }
  template <int M, class Place>
  __device__ State state_of(const C (&values)[2][M], int64_t k, const Place& place) const {
    C mean = 0, invstd = 0, products[M];
    if (!a.by_place) mean = static_cast<C>(value_of(a.mean, k, 0)), invstd = static_cast<C>(value_of(a.invstd, k, 0));
    for (int j = 0; j < M; j++) {
      if (a.by_place) {
        mean = reinterpret_cast<const C*>(a.mean.at)[place(j)];
        invstd = reinterpret_cast<const C*>(a.invstd.at)[place(j)];
      }
      products[j] = values[0][j] * ((values[1][j] - mean) * invstd);
    }
    return {static_cast<double>(tree_sum(values[0])), static_cast<double>(tree_sum(products))};
  }
  __device__ void merge(State& into, const State& other) const {
    into.dy += other.dy;
    into.dyx += other.dyx;
  }
  __device__ void finish(int64_t k, int64_t, const State& s) const {
    set_value(a.dweight, k, s.dyx);
    set_value(a.dbias, k, s.dy);
    if (a.terms == nullptr) return;
    double invstd = value_of(a.invstd, k, 0), slope = value_of(a.weight, k, 1) * invstd;
    double scale = a.training ? -slope * invstd * s.dyx / a.count : 0, shift = a.training ? -slope * s.dy / a.count : 0;
    static_cast<Terms<C>*>(a.terms)[k] = {static_cast<C>(value_of(a.mean, k, 0)), static_cast<C>(scale),
                                          static_cast<C>(shift), static_cast<C>(slope)};
  }
};

// ---- every element ----

struct ElementArguments {
  const char *x = nullptr, *dy = nullptr;  // absent: does not count
  char* y = nullptr;                       // dense
  const void* terms = nullptr;             // of channels
  uint32_t dtype = 0;
  bool packets = false;    // x and dy are dense too, and all addresses aligned
  bool one_plane = false;  // a packet lies within one plane
  int64_t count = 0;
  bool narrow = true;
  Extent plane, channels;  // elements of a channel's plane, channels
  Walk<2> walk;            // x, dy
};

template <class S, int W>
__device__ __forceinline__ void put_elements(const ElementArguments& a, int64_t i) {
  using C = typename Access<S>::C;
  int64_t at[2] = {i, i};
  if (!a.packets) a.walk.locate(i, at);
  C x[W], dy[W], y[W];
  if (a.x != nullptr) load<S, W>(a.dtype, a.x + at[0] * int64_t{sizeof(S)}, x);
  if (a.dy != nullptr) load<S, W>(a.dtype, a.dy + at[1] * int64_t{sizeof(S)}, dy);
  Terms<C> t{};
  for (int w = 0; w < W; w++) {
    if (w == 0 || !a.one_plane) {
      int64_t rest = i + w, plane = a.plane.split(rest, a.narrow);
      a.channels.split(plane, a.narrow);
      t = static_cast<const Terms<C>*>(a.terms)[plane];
    }
    y[w] = t.shift;
    if (a.x != nullptr) y[w] = (x[w] - t.center) * t.scale + y[w];
    if (a.dy != nullptr) y[w] = t.slope * dy[w] + y[w];
  }
  store<S, W>(a.dtype, a.y + i * int64_t{sizeof(S)}, y);
}

template <class S>
__global__ void __launch_bounds__(kThreads, 2) make_elements(ElementArguments a) {
  constexpr int W = Access<S>::kWidth;
  int64_t first = blockIdx.x * int64_t{kThreads} + threadIdx.x, step = int64_t{gridDim.x} * kThreads;
  int64_t packets = a.packets ? a.count / W : 0;
  for (int64_t q = first; q < packets; q += step) {
    keep_rolled(q);
    put_elements<S, W>(a, q * W);
  }
  for (int64_t i = packets * W + first; i < a.count; i += step) {
    keep_rolled(i);
    put_elements<S, 1>(a, i);
  }
}

// The shape of x, and how its elements are made.
class Elements {
 public:
  Elements() = default;
  // other: dy, or NULL.
  Elements(const pg_tensor& x, const pg_tensor* other) : dtype_(pg::dtype_of(x)) {
    int64_t stride[2][PG_MAX_RANK] = {}, plane = 1;
    for (uint32_t i = 0; i < x.rank; i++) {
      stride[0][i] = x.stride[i];
      stride[1][i] = other == nullptr ? x.stride[i] : other->stride[i];
      if (i >= 2) plane *= x.shape[i];
    }
    a_.walk = Walk<2>(pg::make_nest<2>(x.rank, x.shape, stride, false));
    a_.count = a_.walk.count;
    a_.narrow = a_.walk.narrow;
    a_.plane = Extent(plane);
    a_.channels = Extent(x.shape[1]);
    a_.dtype = dtype_;
  }
  void run(const Launch& launch, const void* x, const void* dy, const void* terms, void* y) const {
    ElementArguments a = a_;
    a.x = static_cast<const char*>(x), a.dy = static_cast<const char*>(dy), a.y = static_cast<char*>(y);
    a.terms = terms;
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      constexpr int64_t kWidth = Access<S>::kWidth;
      uintptr_t addresses =
          reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(dy) | reinterpret_cast<uintptr_t>(y);
      a.packets = a.walk.linear(0) && a.walk.linear(1) && (addresses & 15u) == 0;
      a.one_plane = a.plane.size % kWidth == 0;
      launch(grid_for(a.count, a.packets ? kWidth : 1), make_elements<S>, a);
    });
  }

 private:
  uint32_t dtype_ = 0;
  ElementArguments a_;
};

template <int N>
ReduceShape<N> by_channel(const pg_tensor* const (&operands)[N]) {
  const pg_tensor& x = *operands[0];
  ReduceAxes<N> split(operands, ((1u << x.rank) - 1) & ~2u);
  int64_t width = 1;
  uint32_t dtype = pg::dtype_of(x);
  with_float_storage(dtype, [&](auto tag) { width = Access<typename decltype(tag)::type>::kWidth; });
  return ReduceShape<N>(dtype, width, pg::make_nest<N + 1>(split.kept, split.kept_shape, split.kept_stride, false),
                        pg::make_nest<N>(split.reduced, split.reduced_shape, split.reduced_stride, true));
}

class BatchNorm final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_norm_dtypes(call, 0, 1, 4);
    if (call.in(0).rank < 2) pg::fail_support("batch_norm: x must have at least 2 axes");
  }
  BatchNorm(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.in(0))),
        channels_(call.in(0).shape[1]),
        training_(call.attr<bool>("training")),
        momentum_(call.runtime<double>("momentum")),
        eps_(call.runtime<double>("eps")),
        by_cudnn_(call),
        shape_(by_channel<1>({&call.in(0)})),
        elements_(call.in(0), nullptr) {
    for (uint32_t i = 0; i < 4; i++) {
      if (call.has(i + 1)) vectors_[i] = vector_of(call.in(i + 1));
    }
    outputs_ = call.output_count();
    terms_bytes_ = (static_cast<uint64_t>(channels_) * kTermBytes + 255) / 256 * 256;
    plan.workspace = std::max(terms_bytes_ + shape_.workspace(), by_cudnn_.workspace());
  }
  void run(const Launch& launch) override {
    if (by_cudnn_.run(launch)) return;
    Channel channel;
    AnyVector* vectors[] = {&channel.weight, &channel.bias, &channel.running_mean, &channel.running_var};
    for (uint32_t i = 0; i < 4; i++) {
      *vectors[i] = vectors_[i];
      vectors[i]->at = launch.has(i + 1) ? launch.mutated<char>(i + 1) : nullptr;
    }
    channel.momentum = momentum_(launch.raw), channel.eps = eps_(launch.raw);
    channel.mean = outputs_ > 1 ? launch.out(1) : nullptr;
    channel.invstd = outputs_ > 2 ? launch.out(2) : nullptr;
    channel.terms = launch.workspace();
    const void* x = launch.in(0);
    with_float_storage(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      if (!training_) return launch(grid_for(channels_), use_running<typename Access<S>::C>, channel, channels_);
      StatisticsOf<S> r;
      r.channel = channel;
      const void* base[] = {x};
      reduce(launch, shape_, r, base, launch.workspace<char>() + terms_bytes_);
    });
    elements_.run(launch, x, nullptr, launch.workspace(), launch.out(0));
  }

 private:
  uint32_t dtype_, outputs_ = 1;
  int64_t channels_;
  bool training_;
  pg::Runtime<double> momentum_, eps_;
  NormByCudnn by_cudnn_;
  ReduceShape<1> shape_;
  Elements elements_;
  AnyVector vectors_[4];  // weight, bias, running mean and variance
  uint64_t terms_bytes_ = 0;
};
PG_KERNEL("batch_norm", BatchNorm);

class BatchNormGrad final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_norm_dtypes(call, 1, 2, 4);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.in(1))) pg::fail_support("dy and x must share one dtype");
    if (call.in(1).rank < 2) pg::fail_support("batch_norm: x must have at least 2 axes");
  }
  BatchNormGrad(const pg::KernelCall& call, pg::Plan& plan)
      : dtype_(pg::dtype_of(call.in(1))),
        by_cudnn_(call),
        shape_(by_channel<2>({&call.in(0), &call.in(1)})),
        elements_(call.in(1), &call.in(0)),
        outputs_(call.output_count()) {
    grad_.training = call.attr<bool>("training");
    grad_.count = static_cast<double>(shape_.elements());
    if (call.has(2)) grad_.weight = vector_of(call.in(2));
    grad_.mean = vector_of(call.in(3)), grad_.invstd = vector_of(call.in(4));
    if (outputs_ > 1) grad_.dweight = vector_of(call.out(1));
    if (outputs_ > 2) grad_.dbias = vector_of(call.out(2));
    terms_bytes_ = (static_cast<uint64_t>(call.in(1).shape[1]) * kTermBytes + 255) / 256 * 256;
    plan.workspace = std::max(terms_bytes_ + shape_.workspace(), by_cudnn_.workspace());
  }
  void run(const Launch& launch) override {
    if (by_cudnn_.run(launch)) return;
    NormGrad grad = grad_;
    grad.weight.at = launch.has(2) ? launch.mutated<char>(2) : nullptr;
    grad.mean.at = launch.mutated<char>(3), grad.invstd.at = launch.mutated<char>(4);
    if (outputs_ > 1) grad.dweight.at = launch.out<char>(1);
    if (outputs_ > 2) grad.dbias.at = launch.out<char>(2);
    grad.terms = launch.workspace();
    const void* operands[] = {launch.in(0), launch.in(1)};
    reduce_norm_grad(launch, dtype_, shape_, grad, operands, launch.workspace<char>() + terms_bytes_);
    elements_.run(launch, grad_.training ? launch.in(1) : nullptr, launch.in(0), launch.workspace(), launch.out(0));
  }

 private:
  uint32_t dtype_;
  NormByCudnn by_cudnn_;
  ReduceShape<2> shape_;
  Elements elements_;
  uint32_t outputs_;
  NormGrad grad_;
  uint64_t terms_bytes_ = 0;
};
PG_KERNEL("batch_norm_grad", BatchNormGrad);

}  // namespace

void reduce_norm_grad(const Launch& launch, uint32_t dtype, const ReduceShape<2>& shape, const NormGrad& grad,
                      const void* const* operands, void* workspace) {
  with_float_storage(dtype, [&](auto tag) {
    NormGradOf<typename decltype(tag)::type> r;
    r.a = grad;
    reduce(launch, shape, r, operands, workspace);
  });
}

void require_norm_dtypes(const pg::KernelCall& call, uint32_t x, uint32_t first, uint32_t last) {
  check_dtypes(call, kFloats);
  uint32_t dtype = pg::dtype_of(call.in(x));
  for (uint32_t i = first; i <= last; i++) {
    if (!call.has(i)) continue;
    uint32_t own = pg::dtype_of(call.in(i));
    if (own != dtype && own != statistics_dtype(dtype)) {
      pg::fail_support(pg::format("%s: input %u is %s; expected the dtype of x or of its statistics", call.op(), i,
                                  pg::dtype_name(own)));
    }
  }
  for (uint32_t i = 0; i < call.output_count(); i++) {
    if (call.has_output(i) && !pg::is_contiguous(call.out(i))) pg::fail_support("the results must be dense");
  }
}

}  // namespace cuda
