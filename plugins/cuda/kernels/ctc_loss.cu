// SPDX-License-Identifier: Apache-2.0
// ctc_loss(log_probs, targets, input_lengths, target_lengths) -> loss and ctc_loss_grad, as perigee/kernels/ctc.hpp
// defines them, in float64: a block takes a sequence, a thread some of its states. The gradient runs forward again
// rather than keep what forward has seen.
#include <algorithm>
#include <cmath>

#include "../scratch.hpp"
#include "group.cuh"
#include "index_operand.hpp"
#include "kernel.hpp"

namespace cuda {
namespace {

struct CtcShape {
  int64_t steps = 0, count = 0, classes = 0, length = 0;  // of log_probs [steps, count, classes]; most labels
  int64_t stride[3] = {}, dloss_stride = 0, blank = 0;
  bool forgiving = false;

  PG_HD int64_t states() const { return 2 * length + 1; }
  // Faults count through the sequences: its two lengths, then its labels.
  PG_HD int64_t position(int64_t n, int64_t place) const { return n * (length + 2) + place; }
};

struct CtcIndices {
  IndexOperand labels, steps, lengths;
};

// A block's part of the workspace.
struct CtcRoom {
  int32_t *labels, *next;  // of the sequence; the next equal one, -1 where none follows, and -2 in front of the first
  double *alpha, *beta, *share, *posterior;
};
struct CtcLayout {
  uint64_t bytes = 0, labels, next, alpha, beta, share, posterior;

  CtcLayout() = default;
  CtcLayout(const CtcShape& s, bool backward) {
    Scratch scratch;
    auto numbers = [&](int64_t count) { return scratch.take(static_cast<uint64_t>(count) * sizeof(double)); };
    labels = scratch.take(static_cast<uint64_t>(s.length) * sizeof(int32_t));
    next = scratch.take(2 * static_cast<uint64_t>(s.length) * sizeof(int32_t));
    alpha = numbers((backward ? std::max<int64_t>(s.steps, 1) : 2) * s.states());
    beta = numbers(backward ? 2 * s.states() : 0);
    share = numbers(backward ? s.classes : 0);
    posterior = numbers(backward ? s.states() : 0);
    bytes = scratch.bytes();
  }
  __device__ CtcRoom room(char* workspace, int64_t block) const {
    char* own = workspace + static_cast<uint64_t>(block) * bytes;
    auto numbers = [&](uint64_t at) { return reinterpret_cast<double*>(own + at); };
    return {reinterpret_cast<int32_t*>(own + labels),
            reinterpret_cast<int32_t*>(own + next),
            numbers(alpha),
            numbers(beta),
            numbers(share),
            numbers(posterior)};
  }
};

__device__ __forceinline__ double ctc_log_add(double a, double b) {
  double high = a > b ? a : b, low = a > b ? b : a;
  return high == -INFINITY ? high : high + log1p(exp(low - high));
}

__device__ __noinline__ void note_ctc(const CtcShape& s, const FaultSite& site, FaultKind kind, int64_t limit,
                                      int64_t n, int64_t place, int64_t value) {
  FaultSite own = site;
  own.kind = kind, own.limit = limit;
  note_fault(own, value, s.position(n, place));
}

// A sequence, as all threads of its block see it.
template <class S>
struct CtcSequence {
  const CtcShape& s;
  const S* log_probs;  // of the sequence
  const int32_t* labels;
  int64_t steps, length;

  __device__ __forceinline__ int64_t states() const { return 2 * length + 1; }
  __device__ __forceinline__ int64_t label(int64_t state) const { return state % 2 == 0 ? s.blank : labels[state / 2]; }
  // Whether a path may come to a state from the last but one: not over a blank that parts equal labels.
  __device__ __forceinline__ bool skips(int64_t state) const {
    return state % 2 == 1 && state >= 3 && labels[state / 2] != labels[state / 2 - 1];
  }
  __device__ __forceinline__ double at(int64_t t, int64_t c) const {
    return unpack(log_probs[t * s.stride[0] + c * s.stride[2]]);
  }
  __device__ __forceinline__ double log_prob(int64_t t, int64_t state) const { return at(t, label(state)); }
};

// wrong[n]: whether sequence n has numbers that cannot be. A launch of its own: what calls note_fault keeps few
// registers.
__global__ void __launch_bounds__(kThreads)
    check_ctc(const __grid_constant__ CtcShape s, const __grid_constant__ CtcIndices in, int32_t* wrong,
              const __grid_constant__ FaultSite site) {
  for (int64_t n = blockIdx.x; n < s.count; n += gridDim.x) {
    int64_t steps = in.steps[n], length = in.lengths[n];
    bool right = steps >= 0 && steps <= s.steps, fits = length >= 0 && length <= s.length;
    if (threadIdx.x == 0) {
      if (!right) note_ctc(s, site, FaultKind::kInputLength, s.steps, n, 0, steps);
      if (!fits) note_ctc(s, site, FaultKind::kTargetLength, s.length, n, 1, length);
    }
    bool bad = !right || !fits;
    for (int64_t i = threadIdx.x; fits && i < length; i += blockDim.x) {
      int64_t label = in.labels[n * s.length + i];
      bool outside = is_outside(label, s.classes);
      if (!outside && label != s.blank) continue;
      bad = true;
      note_ctc(s, site, outside ? FaultKind::kLabel : FaultKind::kBlank, s.classes - 1, n, 2 + i, label);
    }
    int any = __syncthreads_or(bad);
    if (threadIdx.x == 0) wrong[n] = any;
  }
}

// Reads a sequence's numbers; whether they are as they must be. Called by all threads.
template <class S>
__device__ __forceinline__ bool read_ctc(CtcSequence<S>& q, const CtcIndices& in, int64_t n, const int32_t* wrong,
                                         int32_t* labels) {
  if (wrong[n] != 0) return false;
  q.steps = in.steps[n], q.length = in.lengths[n];
  for (int64_t i = threadIdx.x; i < q.length; i += blockDim.x)
    labels[i] = static_cast<int32_t>(in.labels[n * q.s.length + i]);
  __syncthreads();
  return true;
}

// Fills alpha, of which `rows` steps are kept: row t is t % rows. Returns the negative log likelihood.
template <class S>
__device__ __forceinline__ double ctc_forward(const CtcSequence<S>& q, double* alpha, int64_t rows) {
  if (q.steps == 0) return q.length == 0 ? 0.0 : INFINITY;
  int64_t n = q.states(), room = q.s.states();
  for (int64_t state = threadIdx.x; state < n; state += blockDim.x)
    alpha[state] = state < 2 ? q.log_prob(0, state) : -INFINITY;
  __syncthreads();
  for (int64_t t = 1; t < q.steps; t++) {
    const double* before = alpha + (t - 1) % rows * room;
    double* now = alpha + t % rows * room;
    for (int64_t state = threadIdx.x; state < n; state += blockDim.x) {
      double sum = before[state];
      if (state > 0) sum = ctc_log_add(sum, before[state - 1]);
      if (q.skips(state)) sum = ctc_log_add(sum, before[state - 2]);
      now[state] = sum + q.log_prob(t, state);
    }
    __syncthreads();
  }
  const double* last = alpha + (q.steps - 1) % rows * room;
  return -(n > 1 ? ctc_log_add(last[n - 1], last[n - 2]) : last[0]);
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    ctc_losses(const __grid_constant__ CtcShape s, const __grid_constant__ CtcIndices in,
               const __grid_constant__ CtcLayout layout, const S* log_probs, S* loss, const int32_t* wrong,
               char* workspace) {
  CtcRoom room = layout.room(workspace, blockIdx.x);
  for (int64_t n = blockIdx.x; n < s.count; n += gridDim.x) {
    CtcSequence<S> q{s, log_probs + n * s.stride[1], room.labels, 0, 0};
    bool right = read_ctc(q, in, n, wrong, room.labels);
    double nll = right ? ctc_forward(q, room.alpha, 2) : 0.0;
    if (threadIdx.x == 0) loss[n] = pack<S>(s.forgiving && nll == INFINITY ? 0.0 : nll);
    __syncthreads();  // the room is written again
  }
}

// Equal labels form chains, so that one thread adds up what belongs to a class.
__device__ __forceinline__ void chain_labels(const int32_t* labels, int64_t length, int32_t* next) {
  for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    int64_t before = i - 1, after = i + 1;
    while (before >= 0 && labels[before] != labels[i]) before--;
    while (after < length && labels[after] != labels[i]) after++;
    next[2 * i] = before < 0 ? 1 : 0;  // whether it is the first
    next[2 * i + 1] = after < length ? static_cast<int32_t>(after) : -1;
  }
  __syncthreads();
}

// What the paths through each class of a step have of all; posterior: of each state.
template <class S>
__device__ __forceinline__ void share_out(const CtcSequence<S>& q, const CtcRoom& room) {
  double blanks = 0;
  for (int64_t state = 2 * int64_t{threadIdx.x}; state < q.states(); state += 2 * int64_t{blockDim.x})
    blanks += room.posterior[state];
  blanks = merge_group(blanks, static_cast<int>(blockDim.x), AddUp());
  if (threadIdx.x == 0) room.share[q.s.blank] = blanks;
  for (int64_t i = threadIdx.x; i < q.length; i += blockDim.x) {
    if (room.next[2 * i] == 0) continue;
    double sum = 0;
    for (int64_t j = i; j >= 0; j = room.next[2 * j + 1]) sum += room.posterior[2 * j + 1];
    room.share[room.labels[i]] = sum;
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads, 2)
    ctc_slopes(const __grid_constant__ CtcShape s, const __grid_constant__ CtcIndices in,
               const __grid_constant__ CtcLayout layout, const S* dloss, const S* log_probs, S* slopes,
               const int32_t* wrong, char* workspace) {
  CtcRoom room = layout.room(workspace, blockIdx.x);
  for (int64_t n = blockIdx.x; n < s.count; n += gridDim.x) {
    CtcSequence<S> q{s, log_probs + n * s.stride[1], room.labels, 0, 0};
    bool right = read_ctc(q, in, n, wrong, room.labels);
    double nll = right ? ctc_forward(q, room.alpha, s.steps) : 0.0;
    bool nothing = !right || (s.forgiving && nll == INFINITY);
    if (nothing) q.steps = 0;
    for (int64_t c = threadIdx.x; c < s.classes; c += blockDim.x) room.share[c] = 0;
    if (!nothing) chain_labels(room.labels, q.length, room.next);
    __syncthreads();
    int64_t states = q.states();
    double scale = unpack(dloss[n * s.dloss_stride]);
    for (int64_t t = s.steps; t-- > 0;) {
      S* row = slopes + (t * s.count + n) * s.classes;
      if (t >= q.steps) {
        for (int64_t c = threadIdx.x; c < s.classes; c += blockDim.x) row[c] = pack<S>(0.0);
        continue;
      }
      const double *next = room.beta + (t + 1) % 2 * s.states(), *alpha = room.alpha + t * s.states();
      double* now = room.beta + t % 2 * s.states();
      for (int64_t state = threadIdx.x; state < states; state += blockDim.x) {
        double sum = state >= states - 2 ? 0.0 : -INFINITY;
        if (t + 1 < q.steps) {
          sum = next[state];
          if (state + 1 < states) sum = ctc_log_add(sum, next[state + 1]);
          if (state + 2 < states && q.skips(state + 2)) sum = ctc_log_add(sum, next[state + 2]);
        }
        room.posterior[state] = exp(alpha[state] + sum + nll);
        now[state] = sum + q.log_prob(t, state);
      }
      __syncthreads();
      share_out(q, room);
      __syncthreads();
      for (int64_t c = threadIdx.x; c < s.classes; c += blockDim.x)
        row[c] = pack<S>((exp(q.at(t, c)) - room.share[c]) * scale);
      __syncthreads();
    }
    __syncthreads();  // the room is written again
  }
}

class Ctc final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kNumbers);
    uint32_t x = first_of(call);
    with_float(pg::dtype_of(call.in(x)), [](auto) {});
    if (pg::dtype_of(call.out(0)) != pg::dtype_of(call.in(x))) pg::fail_support("the result has another dtype");
    if (!pg::is_contiguous(call.out(0))) pg::fail_support("the result must be contiguous");
    for (uint32_t i = x + 1; i < x + 4; i++) check_index(call, i);
    if (call.in(x).shape[2] > INT32_MAX) pg::fail_support("more than 2147483647 classes are not told apart");
  }
  Ctc(const pg::KernelCall& call, pg::Plan& plan)
      : first_(first_of(call)),
        dtype_(pg::dtype_of(call.in(first_))),
        indices_{IndexOperand(call.in(first_ + 1)), IndexOperand(call.in(first_ + 2)),
                 IndexOperand(call.in(first_ + 3))} {
    const pg_tensor& x = call.in(first_);
    s_.steps = x.shape[0], s_.count = x.shape[1], s_.classes = x.shape[2], s_.length = call.in(first_ + 1).shape[1];
    std::copy_n(x.stride, 3, s_.stride);
    if (first_ > 0) s_.dloss_stride = call.in(0).stride[0];
    s_.blank = call.attr<int64_t>("blank"), s_.forgiving = call.attr<bool>("zero_infinity");
    layout_ = CtcLayout(s_, first_ > 0);
    // Long sequences take much room: then a block takes several, one after the other.
    constexpr uint64_t kRoom = uint64_t{256} << 20;
    auto blocks = std::max<uint64_t>(1, kRoom / std::max<uint64_t>(layout_.bytes, 1));
    grid_.x = static_cast<uint32_t>(std::min({blocks, static_cast<uint64_t>(s_.count), uint64_t{65535}}));
    while (grid_.threads > 32 && grid_.threads / 2 >= std::max(s_.states(), first_ > 0 ? s_.classes : 0))
      grid_.threads /= 2;
    wrong_at_ = layout_.bytes * grid_.x;
    plan.workspace = wrong_at_ + static_cast<uint64_t>(s_.count) * sizeof(int32_t);
  }

  void run(const Launch& launch) override {
    if (s_.count == 0) return;
    FaultSite site = launch.fault_site(FaultKind::kInputLength, s_.steps, *launch.raw.inputs[first_]);
    site.rank = 2, site.shape[0] = s_.count, site.shape[1] = s_.length + 2;
    CtcIndices indices = indices_;
    indices.labels.data = launch.in(first_ + 1), indices.steps.data = launch.in(first_ + 2);
    indices.lengths.data = launch.in(first_ + 3);
    auto* room = launch.workspace<char>();
    auto* wrong = static_cast<int32_t*>(piece(room, wrong_at_));
    Grid each;
    each.x = static_cast<uint32_t>(std::min(s_.count, kMaxBlocks));
    launch(each, check_ctc, s_, indices, wrong, site);
    with_float(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      if (first_ == 0)
        launch(grid_, ctc_losses<S>, s_, indices, layout_, launch.in<S>(0), launch.out<S>(0), wrong, room);
      else
        launch(grid_, ctc_slopes<S>, s_, indices, layout_, launch.in<S>(0), launch.in<S>(1), launch.out<S>(0), wrong,
               room);
    });
  }

 private:
  static uint32_t first_of(const pg::KernelCall& call) { return call.is("ctc_loss") ? 0 : 1; }

  uint32_t first_, dtype_;
  CtcIndices indices_;
  CtcShape s_;
  CtcLayout layout_;
  uint64_t wrong_at_ = 0;
  Grid grid_;
};
PG_KERNEL("ctc_loss", Ctc);
PG_KERNEL("ctc_loss_grad", Ctc);

}  // namespace
}  // namespace cuda
