// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention(q, k, v, mask?, key?) -> out, lse and its gradient (dout, q, k, v, mask?, key?, lse,
// delta) -> dq, dk, dv. The products are cuBLASLt's: 16-bit floats as they are, on tensor cores, summed up in float32.
// Between them own kernels make weights of scores, which stay in float32; a mask is read where it lies, and that of
// is_causal is never made. Scores exist for some heads at a time only. Forward, of 16-bit floats without a mask or
// dropout, cuDNN computes the whole where it can (attention_cudnn.hpp).
#include "access.cuh"
#include "kernels/attention_cudnn.hpp"
#include "kernels/attention_heads.hpp"
#include "normalise.hpp"
#include "perigee/kernels/math.hpp"
#include "perigee/kernels/philox.hpp"
#include "reducers.cuh"
#include "scratch.hpp"
#include "stretch.cuh"

namespace cuda {
namespace {

// Scores of a block of heads, what is made of them, and where a row of them finds its mask and statistics. Of C but for
// the weights and slopes, which go into products and have the dtype of q.
struct ScoreRows {
  const char *scores = nullptr, *flows = nullptr;  // flows: the gradient of the dropped weights
  char *weights = nullptr, *slopes = nullptr;      // slopes: the gradient of q k'
  const char *mask = nullptr, *lse = nullptr, *delta = nullptr;
  char* lse_out = nullptr;
  const int64_t* key = nullptr;  // seed and offset of the dropout
  Walk<3> walk;                  // over the rows of all heads: mask, lse, delta
  int64_t first = 0, rows = 0, keys = 0, queries = 0, mask_step = 0, key_step = 0;
  uint32_t mask_dtype = 0, dtype = 0;
  int32_t lanes = 1;  // threads of a row
  bool causal = false;
  float p = 0;
  double scale = 1, kept = 1;  // kept: the factor of weights that are not dropped
};

// One row as a thread sees it.
template <class C>
struct ScoreRow {
  const ScoreRows& a;
  int64_t number, limit, at[3] = {};  // number: among all rows; limit: keys that may be seen
  C scale, kept;
  uint64_t seed = 0, offset = 0;

  __device__ ScoreRow(const ScoreRows& a, int64_t row)
      : a(a), number(a.first + row), limit(a.keys), scale(static_cast<C>(a.scale)), kept(static_cast<C>(a.kept)) {
    a.walk.locate(number, at);
    if (a.causal) limit = min(limit, number % a.queries + 1);
    if (a.key != nullptr) seed = static_cast<uint64_t>(a.key[0]), offset = static_cast<uint64_t>(a.key[a.key_step]);
  }
  __device__ __forceinline__ C score(const C* scores, int64_t j) const {
    C s = scores[j] * scale;
    if (a.mask == nullptr) return s;
    const char* at_mask = a.mask + (at[0] + j * a.mask_step) * Access<AnyFloat>::bytes(a.mask_dtype);
    if (a.mask_dtype == PG_B8) return *at_mask != 0 ? s : -std::numeric_limits<C>::infinity();
    return s + static_cast<C>(any_float(a.mask_dtype, at_mask));
  }
  // What the dropout multiplies a weight by.
  __device__ __forceinline__ C factor(int64_t j) const {
    if (a.key == nullptr) return 1;
    auto element = static_cast<uint64_t>(number * a.keys + j);
    return pg::philox::keep(seed, offset, element, static_cast<double>(a.p)) ? kept : C(0);
  }
};

// body(row, lane, mine) by `lanes` threads a row; those without a row take part in what groups do together.
template <class Body>
__device__ __forceinline__ void each_row(const ScoreRows& a, const Body& body) {
  int lane = static_cast<int>(threadIdx.x) & (a.lanes - 1), group = static_cast<int>(threadIdx.x) / a.lanes;
  int groups = static_cast<int>(kThreads) / a.lanes;
  for (int64_t first = int64_t{blockIdx.x} * groups; first < a.rows; first += int64_t{gridDim.x} * groups) {
    keep_rolled(first);
    bool mine = first + group < a.rows;
    body(mine ? first + group : 0, lane, mine);
  }
}

// Weights of scores. A row of which nothing may be seen gets zeros, and an infinite lse.
template <class S>
__global__ void __launch_bounds__(kThreads, 2) weigh_scores(const __grid_constant__ ScoreRows a) {
  using C = typename Access<S>::C;
  each_row(a, [&](int64_t row, int lane, bool mine) {
    ScoreRow<C> r(a, row);
    const C* scores = reinterpret_cast<const C*>(a.scores) + row * a.keys;
    C top = static_cast<C>(-3e38);  // so that rows of nothing but -inf sum up to 0
    for (int64_t j = lane; mine && j < r.limit; j += a.lanes) {
      keep_rolled(j);
      top = pg::math::Maximum()(top, r.score(scores, j));
    }
    top = merge_group(top, a.lanes, [](C& into, const C& other) { into = pg::math::Maximum()(into, other); });
    double sum = 0;
    for (int64_t j = lane; mine && j < r.limit; j += a.lanes) {
      keep_rolled(j);
      sum += static_cast<double>(pg::math::exp_of(r.score(scores, j) - top));
    }
    C total = static_cast<C>(merge_group(sum, a.lanes, AddUp()));
    bool blind = total == 0;
    if (blind) total = 1;
    for (int64_t j = lane; mine && j < a.keys; j += a.lanes) {
      keep_rolled(j);
      C weight[1] = {j < r.limit ? pg::math::exp_of(r.score(scores, j) - top) / total * r.factor(j) : C(0)};
      store<S, 1>(a.dtype, a.weights + (row * a.keys + j) * int64_t{sizeof(S)}, weight);
    }
    if (!mine || lane != 0 || a.lse_out == nullptr) return;
    reinterpret_cast<C*>(a.lse_out)[r.number] =
        blind ? std::numeric_limits<C>::infinity() : top + pg::math::log_of(total);
  });
}

// The weights again, by lse, and what they and the gradient that flows back to them say of q k'.
template <class S>
__global__ void __launch_bounds__(kThreads, 2) slope_scores(const __grid_constant__ ScoreRows a) {
  using C = typename Access<S>::C;
  each_row(a, [&](int64_t row, int lane, bool mine) {
    if (!mine) return;
    ScoreRow<C> r(a, row);
    const C *scores = reinterpret_cast<const C*>(a.scores) + row * a.keys,
            *flows = reinterpret_cast<const C*>(a.flows) + row * a.keys;
    C lse = reinterpret_cast<const C*>(a.lse)[r.at[1]], delta = reinterpret_cast<const C*>(a.delta)[r.at[2]];
    for (int64_t j = lane; j < a.keys; j += a.lanes) {
      keep_rolled(j);
      C weight[1] = {0}, slope[1] = {0};
      if (j < r.limit) {
        C p = pg::math::exp_of(r.score(scores, j) - lse), factor = r.factor(j);
        weight[0] = p * factor;
        slope[0] = p * ((factor == 0 ? C(0) : flows[j] * factor) - delta) * r.scale;
      }
      int64_t at = (row * a.keys + j) * int64_t{sizeof(S)};
      store<S, 1>(a.dtype, a.weights + at, weight);
      store<S, 1>(a.dtype, a.slopes + at, slope);
    }
  });
}

// ---- rows that nothing masks but their place, and of which nothing is dropped ----

// A warp or a block has a row. Four scores are a packet of float32, and what is made of them 8 bytes of 16-bit floats.
constexpr int kScorePacket = 4, kWarpLanes = 32;

template <class S>
__device__ __forceinline__ void put_four(uint32_t dtype, char* base, int64_t element, const float (&values)[4]) {
  char* at = base + element * int64_t{sizeof(S)};
  if constexpr (std::is_same_v<S, float>) {
    write_packet(at, pack_packet<float>(values), true);
  } else {
    uint32_t low, high;
    if (dtype == PG_BF16)
      low = pack_two<bf16>(values[0], values[1]), high = pack_two<bf16>(values[2], values[3]);
    else
      low = pack_two<f16>(values[0], values[1]), high = pack_two<f16>(values[2], values[3]);
#if defined(__CUDA_ARCH__)
    *reinterpret_cast<uint2*>(at) = {low, high};
#else
    const uint32_t both[2] = {low, high};
    memcpy(at, both, sizeof both);
#endif
  }
}

__device__ __forceinline__ int32_t seen_keys(const ScoreRows& a, int64_t number) {
  auto keys = static_cast<int32_t>(a.keys);
  if (!a.causal) return keys;
  int64_t query = number < (int64_t{1} << 31) && a.queries < (int64_t{1} << 31)
                      ? static_cast<uint32_t>(number) % static_cast<uint32_t>(a.queries)
                      : number % a.queries;
  return query + 1 < keys ? static_cast<int32_t>(query + 1) : keys;
}

// Weights of scores, of at most 4 P keys a thread, which stay in registers: read once, raised once.
template <class S, int P, int kLanes>
__global__ void __launch_bounds__(kThreads, 2) weigh_plain(const __grid_constant__ ScoreRows a) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes, group = static_cast<int>(threadIdx.x) / kLanes;
  constexpr int kRows = static_cast<int>(kThreads) / kLanes, kStep = kLanes * kScorePacket;
  const auto scale = static_cast<float>(a.scale), hidden = -std::numeric_limits<float>::infinity();
  const auto keys = static_cast<int32_t>(a.keys);
  for (int64_t row = int64_t{blockIdx.x} * kRows + group; row < a.rows; row += int64_t{gridDim.x} * kRows) {
    keep_rolled(row);
    const int32_t limit = seen_keys(a, a.first + row);
    const char* scores = a.scores + row * a.keys * int64_t{sizeof(float)};
    uint4 raw[P];
    float powers[P][kScorePacket], top = -3e38f;  // so that rows of nothing but -inf sum up to 0
#pragma unroll
    for (int p = 0; p < P; p++) {
      int32_t j = p * kStep + lane * kScorePacket;
      raw[p] = j < limit ? read_packet(scores + j * int64_t{sizeof(float)}) : uint4{};
    }
#pragma unroll
    for (int p = 0; p < P; p++) {
      int32_t j = p * kStep + lane * kScorePacket;
      float values[kScorePacket];
      unpack_packet<float>(raw[p], values);
#pragma unroll
      for (int i = 0; i < kScorePacket; i++) {
        powers[p][i] = j + i < limit ? values[i] * scale : hidden;
        top = larger_of(top, powers[p][i]);
      }
    }
    top = merge_group(top, kLanes, [](float& into, float other) { into = larger_of(into, other); });
    float sums[P];
#pragma unroll
    for (int p = 0; p < P; p++) {
#pragma unroll
      for (int i = 0; i < kScorePacket; i++) powers[p][i] = power_of<S>(powers[p][i] - top);
      sums[p] = tree_sum(powers[p]);
    }
    const float total = merge_group(tree_sum(sums), kLanes, AddUp());
    const bool blind = total == 0;
    const float share = blind ? 0.0f : 1.0f / total;
#pragma unroll
    for (int p = 0; p < P; p++) {
      int32_t j = p * kStep + lane * kScorePacket;
      float weights[kScorePacket];
#pragma unroll
      for (int i = 0; i < kScorePacket; i++) weights[i] = j + i < limit ? powers[p][i] * share : 0.0f;
      if (j < keys) put_four<S>(a.dtype, a.weights, row * a.keys + j, weights);
    }
    if (lane == 0 && a.lse_out != nullptr) {
      reinterpret_cast<float*>(a.lse_out)[a.first + row] =
          blind ? std::numeric_limits<float>::infinity() : top + pg::math::log_of(total);
    }
  }
}

// As slope_scores.
template <class S>
__global__ void __launch_bounds__(kThreads, 2) slope_plain(const __grid_constant__ ScoreRows a) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes, warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  constexpr int kRows = static_cast<int>(kThreads) / kWarpLanes, kStep = kWarpLanes * kScorePacket, U = 4;
  const auto scale = static_cast<float>(a.scale);
  const auto keys = static_cast<int32_t>(a.keys);
  for (int64_t row = int64_t{blockIdx.x} * kRows + warp; row < a.rows; row += int64_t{gridDim.x} * kRows) {
    keep_rolled(row);
    const int64_t number = a.first + row, start = row * a.keys;
    const int32_t limit = seen_keys(a, number);
    int64_t at[3];
    a.walk.locate(number, at);
    const float lse = reinterpret_cast<const float*>(a.lse)[at[1]],
                delta = reinterpret_cast<const float*>(a.delta)[at[2]];
    for (int32_t first = lane * kScorePacket; first < keys; first += U * kStep) {
      keep_rolled(first);
      uint4 scores[U], flows[U];
#pragma unroll
      for (int u = 0; u < U; u++) {
        int32_t j = first + u * kStep;
        scores[u] = j < limit ? read_packet(a.scores + (start + j) * int64_t{sizeof(float)}) : uint4{};
        flows[u] = j < limit ? read_packet(a.flows + (start + j) * int64_t{sizeof(float)}) : uint4{};
      }
#pragma unroll
      for (int u = 0; u < U; u++) {
        int32_t j = first + u * kStep;
        float score[kScorePacket], flow[kScorePacket], weight[kScorePacket], slope[kScorePacket];
        unpack_packet<float>(scores[u], score);
        unpack_packet<float>(flows[u], flow);
#pragma unroll
        for (int i = 0; i < kScorePacket; i++) {
          float p = power_of<S>(score[i] * scale - lse);
          bool seen = j + i < limit;
          weight[i] = seen ? p : 0.0f;
          slope[i] = seen ? p * (flow[i] - delta) * scale : 0.0f;
        }
        if (j >= keys) continue;
        put_four<S>(a.dtype, a.weights, start + j, weight);
        put_four<S>(a.dtype, a.slopes, start + j, slope);
      }
    }
  }
}

// Whether the two above do: packets begin where rows do (the scratch memory is aligned), and are of float32.
bool plain(const ScoreRows& a) {
  return a.mask == nullptr && a.key == nullptr && a.dtype != PG_F64 && a.keys > 0 && a.keys % kScorePacket == 0;
}
Grid plain_grid(const ScoreRows& a, int lanes) {
  Grid grid;
  grid.x = static_cast<uint32_t>(std::min(divide_up(a.rows, int64_t{kThreads} / lanes), kMaxBlocks));
  return grid;
}

void launch_weights(const Launch& launch, const Grid& grid, const ScoreRows& a) {
  with_float_storage(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<S, double>) {
      constexpr int kBlock = static_cast<int>(kThreads);
      const int64_t keys = plain(a) ? a.keys : std::numeric_limits<int64_t>::max();
      if (keys <= 256) return launch(plain_grid(a, kWarpLanes), weigh_plain<S, 2, kWarpLanes>, a);
      if (keys <= 1024) return launch(plain_grid(a, kWarpLanes), weigh_plain<S, 8, kWarpLanes>, a);
      if (keys <= 2048) return launch(plain_grid(a, kBlock), weigh_plain<S, 2, kBlock>, a);
      if (keys <= 8192) return launch(plain_grid(a, kBlock), weigh_plain<S, 8, kBlock>, a);
    }
    launch(grid, weigh_scores<S>, a);
  });
}
void launch_slopes(const Launch& launch, const Grid& grid, const ScoreRows& a) {
  with_float_storage(a.dtype, [&](auto tag) {
    using S = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<S, double>) {
      if (plain(a) && a.keys < (int64_t{1} << 30)) return launch(plain_grid(a, kWarpLanes), slope_plain<S>, a);
    }
    launch(grid, slope_scores<S>, a);
  });
}

// What both directions share. `first` is the input q.
class AttentionKernel : public Kernel {
 protected:
  enum Input : uint32_t { kQ, kK, kV, kMask, kKey };

  static void check(const pg::KernelCall& call, uint32_t first) {
    check_dtypes(call, kAny);
    uint32_t dtype = pg::dtype_of(call.in(first));
    with_float(dtype, [](auto) {});
    for (uint32_t i : {kK, kV}) {
      if (pg::dtype_of(call.in(first + i)) != dtype) pg::fail_support("q, k and v must share one dtype");
    }
    for (uint32_t i = 0; i < call.output_count(); i++) {
      if (call.has_output(i) && !pg::is_contiguous(call.out(i))) pg::fail_support("the results must be dense");
    }
  }

  AttentionKernel(const pg::KernelCall& call, uint32_t first, int matrices)
      : first_(first),
        dtype_(pg::dtype_of(call.in(first))),
        statistic_(statistics_dtype(dtype_)),
        heads_(call.in(first + kQ), call.in(first + kK), call.in(first + kV)),
        q_(call.in(first + kQ)),
        k_(call.in(first + kK)),
        v_(call.in(first + kV)),
        device_(call.raw->device),
        what_(std::string(call.op()) + " of " + pg::describe(call)),
        scale_(call.runtime<double>("scale")),
        drop_(call.runtime<double>("dropout_p")) {
    int64_t score = pg::dtype_bytes(statistic_), weight = pg::dtype_bytes(dtype_);
    blocks_ = heads_.blocks(matrices * (score + (apart() ? weight : 0)));
    rows_.keys = heads_.keys, rows_.queries = std::max<int64_t>(heads_.queries, 1);
    rows_.rows = blocks_.heads * heads_.queries;
    rows_.causal = call.attr<bool>("is_causal");
    rows_.dtype = dtype_;
    if (call.has(first + kKey)) rows_.key_step = call.in(first + kKey).stride[0];
    while (rows_.lanes < 32 && rows_.lanes < heads_.keys) rows_.lanes *= 2;
    if (heads_.keys > 2048) rows_.lanes = kThreads;
  }

  // Where each row finds its mask and, of the gradient, its statistics.
  void place_rows(const pg::KernelCall& call, const pg_tensor* lse, const pg_tensor* delta) {
    const pg_tensor& q = call.in(first_ + kQ);
    int64_t stride[3][PG_MAX_RANK] = {}, mask[PG_MAX_RANK] = {};
    if (call.has(first_ + kMask)) {
      pg::broadcast_strides(call.in(first_ + kMask), q.rank, mask);
      rows_.mask_dtype = pg::dtype_of(call.in(first_ + kMask));
      rows_.mask_step = mask[q.rank - 1];
    }
    for (uint32_t i = 0; i + 1 < q.rank; i++) {
      stride[0][i] = mask[i];
      if (lse != nullptr) stride[1][i] = lse->stride[i], stride[2][i] = delta->stride[i];
    }
    rows_.walk = Walk<3>(pg::make_nest<3>(q.rank - 1, q.shape, stride, false));
  }

  // Scores and weights of one dtype are one matrix.
  bool apart() const { return dtype_ != statistic_; }
  uint64_t take(Scratch& scratch, uint32_t dtype) const {
    auto count = static_cast<uint64_t>(rows_.rows * heads_.keys);
    return scratch.take(count * static_cast<uint64_t>(pg::dtype_bytes(dtype)));
  }
  std::unique_ptr<linalg::Product> product(int64_t m, int64_t n, int64_t k, const HeadOperand& a, const HeadOperand& b,
                                           uint32_t result) {
    auto made = linalg::make_product(blocks_.product(dtype_, m, n, k, a, b), result, device_, what_);
    product_bytes_ = std::max(product_bytes_, made->workspace());
    return made;
  }
  // A matrix a head in the scratch memory: weights or slopes.
  HeadOperand weights() const { return HeadOperand(heads_.shape, heads_.queries, heads_.keys); }

  // What scores are multiplied by.
  double scale(const Launch& launch) const {
    const double given = scale_(launch.raw);
    if (given != 0) return given;
    return heads_.width > 0 ? 1 / std::sqrt(static_cast<double>(heads_.width)) : 1;
  }

  ScoreRows rows(const Launch& launch, int64_t block) const {
    ScoreRows r = rows_;
    r.first = block * r.rows;
    r.mask = launch.has(first_ + kMask) ? launch.in<char>(first_ + kMask) : nullptr;
    r.scale = scale(launch);
    if (!launch.has(first_ + kKey)) return r;
    r.key = launch.in<int64_t>(first_ + kKey);
    double p = drop_(launch.raw);
    if (!(p >= 0 && p <= 1)) pg::fail_argument(pg::format("dropout_p is %g; expected 0 to 1", p));
    r.p = static_cast<float>(p), r.kept = p < 1 ? 1 / (1 - p) : 0;
    return r;
  }
  // The grid of kernels over the rows of a block.
  Grid grid() const {
    Grid grid;
    grid.x = static_cast<uint32_t>(std::min(divide_up(rows_.rows, kThreads / rows_.lanes), kMaxBlocks));
    return grid;
  }

  const char* input(const Launch& launch, uint32_t i, const HeadOperand& operand, int64_t block) const {
    return launch.in<char>(i) + blocks_.offset(operand, block) * pg::dtype_bytes(dtype_);
  }
  // Of an output with `count` elements a head.
  char* output(const Launch& launch, uint32_t i, int64_t count, int64_t block) const {
    return launch.out<char>(i) + block * blocks_.heads * count * pg::dtype_bytes(dtype_);
  }

  uint32_t first_, dtype_, statistic_;
  Heads heads_;
  HeadBlocks blocks_;
  HeadOperand q_, k_, v_;
  ScoreRows rows_;
  uint64_t product_bytes_ = 0;

 private:
  uint32_t device_;
  std::string what_;
  pg::Runtime<double> scale_, drop_;
};

class AttentionForward final : public AttentionKernel {
 public:
  static void supports(const pg::KernelCall& call) { check(call, kQ); }
  AttentionForward(const pg::KernelCall& call, pg::Plan& plan)
      : AttentionKernel(call, kQ, 1), by_cudnn_(call), has_lse_(call.has_output(1)) {
    place_rows(call, nullptr, nullptr);
    score_ = product(heads_.queries, heads_.keys, heads_.width, q_, k_.turned(), statistic_);
    sum_ = product(heads_.queries, heads_.value_width, heads_.keys, weights(), v_, dtype_);
    Scratch scratch;
    scores_at_ = take(scratch, statistic_), weights_at_ = apart() ? take(scratch, dtype_) : scores_at_;
    product_at_ = scratch.take(product_bytes_);
    plan.workspace = std::max(scratch.bytes(), by_cudnn_.workspace());
  }

  void run(const Launch& launch) override {
    if (by_cudnn_.run(launch, scale(launch), has_lse_)) return;
    auto at = [&](uint64_t piece) { return launch.workspace<char>() + piece; };
    for (int64_t block = 0; block < blocks_.count; block++) {
      ScoreRows r = rows(launch, block);
      r.scores = at(scores_at_), r.weights = at(weights_at_);
      if (has_lse_) r.lse_out = launch.out<char>(1);
      score_->run(launch.native(), {input(launch, kQ, q_, block), input(launch, kK, k_, block), nullptr, at(scores_at_),
                                    at(product_at_)});
      launch_weights(launch, grid(), r);
      sum_->run(launch.native(), {r.weights, input(launch, kV, v_, block), nullptr,
                                  output(launch, 0, heads_.queries * heads_.value_width, block), at(product_at_)});
    }
  }

 private:
  AttentionByCudnn by_cudnn_;
  bool has_lse_;
  std::unique_ptr<linalg::Product> score_, sum_;
  uint64_t scores_at_, weights_at_, product_at_;
};

class AttentionBackward final : public AttentionKernel {
  static constexpr uint32_t kDout = 0, kFirst = 1, kLse = 6, kDelta = 7;

 public:
  static void supports(const pg::KernelCall& call) {
    check(call, kFirst);
    uint32_t dtype = pg::dtype_of(call.in(kFirst)), statistic = statistics_dtype(dtype);
    if (pg::dtype_of(call.in(kDout)) != dtype) pg::fail_support("dout has another dtype than q");
    for (uint32_t i : {kLse, kDelta}) {
      if (pg::dtype_of(call.in(i)) != statistic) pg::fail_support("lse and delta must be of the statistics' dtype");
    }
  }
  AttentionBackward(const pg::KernelCall& call, pg::Plan& plan)
      : AttentionKernel(call, kFirst, 2), dout_(call.in(kDout)) {
    place_rows(call, &call.in(kLse), &call.in(kDelta));
    const Heads& h = heads_;
    score_ = product(h.queries, h.keys, h.width, q_, k_.turned(), statistic_);
    flow_ = product(h.queries, h.keys, h.value_width, dout_, v_.turned(), statistic_);
    if (call.has_output(0)) dq_ = product(h.queries, h.width, h.keys, weights(), k_, dtype_);
    if (call.has_output(1)) dk_ = product(h.keys, h.width, h.queries, weights().turned(), q_, dtype_);
    if (call.has_output(2)) dv_ = product(h.keys, h.value_width, h.queries, weights().turned(), dout_, dtype_);
    Scratch scratch;
    scores_at_ = take(scratch, statistic_), flows_at_ = take(scratch, statistic_);
    weights_at_ = apart() ? take(scratch, dtype_) : scores_at_;
    slopes_at_ = apart() ? take(scratch, dtype_) : flows_at_;
    product_at_ = scratch.take(product_bytes_);
    plan.workspace = scratch.bytes();
  }

  void run(const Launch& launch) override {
    auto at = [&](uint64_t piece) { return launch.workspace<char>() + piece; };
    const Heads& h = heads_;
    for (int64_t block = 0; block < blocks_.count; block++) {
      const char *q = input(launch, kFirst + kQ, q_, block), *k = input(launch, kFirst + kK, k_, block),
                 *v = input(launch, kFirst + kV, v_, block), *dout = input(launch, kDout, dout_, block);
      auto multiply = [&](const std::unique_ptr<linalg::Product>& product, const char* a, const char* b, char* c) {
        if (product != nullptr) product->run(launch.native(), {a, b, nullptr, c, at(product_at_)});
      };
      ScoreRows r = rows(launch, block);
      r.scores = at(scores_at_), r.flows = at(flows_at_), r.weights = at(weights_at_), r.slopes = at(slopes_at_);
      r.lse = launch.in<char>(kLse), r.delta = launch.in<char>(kDelta);
      multiply(score_, q, k, at(scores_at_));
      multiply(flow_, dout, v, at(flows_at_));
      launch_slopes(launch, grid(), r);
      if (dq_) multiply(dq_, r.slopes, k, output(launch, 0, h.queries * h.width, block));
      if (dk_) multiply(dk_, r.slopes, q, output(launch, 1, h.keys * h.width, block));
      if (dv_) multiply(dv_, r.weights, dout, output(launch, 2, h.keys * h.value_width, block));
    }
  }

 private:
  HeadOperand dout_;
  std::unique_ptr<linalg::Product> score_, flow_, dq_, dk_, dv_;
  uint64_t scores_at_, flows_at_, weights_at_, slopes_at_, product_at_;
};

PG_KERNEL("scaled_dot_product_attention", AttentionForward, 0, 0, 1u << 1);
PG_KERNEL("scaled_dot_product_attention_grad", AttentionBackward);

}  // namespace
}  // namespace cuda
