// SPDX-License-Identifier: Apache-2.0
// Losses of two tensors, element by element: their costs, summed in the same pass, and the way back.
#include <algorithm>
#include <vector>

#include "block_loop.hpp"
#include "probabilities.hpp"

namespace cpu::pointwise_losses {
namespace {

enum Reduce { kMean, kSum, kNone };

constexpr int64_t kChunk = 65536;  // elements that one piece of work adds up
constexpr uint32_t kAbsent = UINT32_MAX;

// What an operator's name and attributes choose.
struct Form {
  LossOp op;
  const char* parameter = nullptr;             // the attribute that p[0] is
  uint32_t third = kAbsent, weight = kAbsent;  // where these inputs stand behind the prediction
};

Form find_form(const pg::KernelCall& call, uint32_t first) {
  std::string name = call.op();
  if (first != 0) name.resize(name.size() - 5);  // _grad
  auto present = [&](uint32_t place) { return call.has(first + place) ? place : kAbsent; };
  if (name == "mse_loss") return {lMse, nullptr, kAbsent, present(2)};
  if (name == "l1_loss") return {lL1, nullptr, kAbsent, present(2)};
  if (name == "huber_loss") return {lHuber, "delta", kAbsent, present(2)};
  if (name == "smooth_l1_loss") return {lSmoothL1, "beta", kAbsent, present(2)};
  if (name == "binary_cross_entropy") return {lBce, nullptr, kAbsent, present(2)};
  if (name == "binary_cross_entropy_with_logits")
    return {call.has(first + 2) ? lBceLogitsWeighed : lBceLogits, nullptr, present(2), present(3)};
  if (name == "kl_div") return {call.attr<bool>("log_target") ? lKlDivLog : lKlDiv};
  if (name == "poisson_nll_loss") {
    bool full = call.attr<bool>("full");
    if (call.attr<bool>("log_input")) return {full ? lPoissonLogFull : lPoissonLog};
    return {full ? lPoissonFull : lPoisson, "eps"};
  }
  if (name == "gaussian_nll_loss") return {call.attr<bool>("full") ? lGaussianFull : lGaussian, "eps", present(2)};
  if (name == "hinge_loss") return {lHinge};
  if (name == "soft_margin_loss") return {lSoftMargin};
  if (name == "hinge_embedding_loss") return {lHingeEmbedding, "margin"};
  pg::fail(PG_E_INTERNAL, "unknown operator");
}

bool costly(LossOp op) { return op > lSmoothL1 && op != lHinge && op != lHingeEmbedding; }

// The prediction as it would lie if it had the shape of the costs: what sums go through in its order.
class Expanded {
 public:
  Expanded(const pg_tensor& x, const pg_tensor& y) : tensor_(x) {
    tensor_.rank = std::max(x.rank, y.rank);
    tensor_.shape = shape_;
    tensor_.stride = stride_;
    for (uint32_t i = tensor_.rank, dense = 1; i-- > 0;) {
      auto size = [i, this](const pg_tensor& t) {
        uint32_t lead = tensor_.rank - t.rank;
        return i < lead ? int64_t{1} : t.shape[i - lead];
      };
      shape_[i] = size(x) == 1 ? size(y) : size(x);
      stride_[i] = dense;
      dense *= static_cast<uint32_t>(shape_[i]);
    }
    bool same = tensor_.rank == x.rank && std::equal(shape_, shape_ + x.rank, x.shape);
    if (same) std::copy_n(x.stride, x.rank, stride_);
  }
  const pg_tensor& tensor() const { return tensor_; }

 private:
  pg_tensor tensor_;
  int64_t shape_[PG_MAX_RANK], stride_[PG_MAX_RANK];
};

// What both directions share. Operands of the loops: 1 the prediction, 2 the target, 3 the third tensor, 4 the weight;
// the prediction stands in for those that are absent.
class LossCall {
 public:
  LossCall(const pg::KernelCall& call, uint32_t first)
      : form_(find_form(call, first)), first_(first), reduce_(static_cast<Reduce>(call.attr<int>("reduction"))) {
    storage_ = storage_of(call.in(first));
    compute_ = kComputeOf[storage_];
    if (form_.parameter != nullptr) parameter_ = call.runtime<double>(form_.parameter);
  }
  static void supports(const pg::KernelCall& call, uint32_t first) {
    require_all_dense(call), refuse_turned(call);
    Storage s = storage_of(call.in(first));
    bool same = is_float(s) && storage_of(call.out(0)) == s;
    for (uint32_t i = 0; same && i < call.input_count(); i++) same = !call.has(i) || storage_of(call.in(i)) == s;
    if (!same) refuse(call);
  }

  const pg_tensor& operand(const pg::KernelCall& call, uint32_t k) const { return call.in(place(k)); }
  void* address(const pg_launch& launch, uint32_t k) const { return const_cast<void*>(pg::input(launch, place(k))); }
  bool weighed() const { return form_.weight != kAbsent; }
  LossOp op() const { return form_.op; }
  Reduce reduce() const { return reduce_; }
  Storage storage() const { return storage_; }
  Storage type() const { return kStorageOf[compute_]; }
  Compute compute() const { return compute_; }

  // p[0] in the type of the arithmetic.
  struct Packed {
    alignas(8) char bytes[pg::math::kMaxParameters * 8] = {};
  };
  Packed parameters(const pg_launch& launch) const {
    Packed packed;
    double value = form_.op == lBce             ? storage_ == sF16 ? 0x1p-15 : 1e-12
                   : form_.parameter != nullptr ? parameter_(launch)
                                                : 0.0;
    put_number(type(), value, packed.bytes);
    return packed;
  }

 private:
  uint32_t place(uint32_t k) const {
    uint32_t offset = k == 2 ? 1 : k == 3 ? form_.third : k == 4 ? form_.weight : 0;
    return first_ + (offset == kAbsent ? 0 : offset);
  }
  Form form_;
  uint32_t first_;
  Reduce reduce_;
  Storage storage_ = sF32;
  Compute compute_ = kF32;
  pg::Runtime<double> parameter_;
};

struct PointwiseLoss final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { LossCall::supports(call, 0); }
  PointwiseLoss(const pg::KernelCall& call, pg::Plan&) : call_(call, 0) {
    Storage type = call_.type();
    Expanded expanded(call.in(0), call.in(1));
    const pg_tensor& order = call_.reduce() == kNone ? call.out(0) : expanded.tensor();
    loop_ = BlockLoop<5>({{&order, type},
                          {&call_.operand(call, 1), type},
                          {&call_.operand(call, 2), type},
                          {&call_.operand(call, 3), type},
                          {&call_.operand(call, 4), type}});
    if (costly(call_.op())) loop_.set_grain(kGrainCostly);
    costs_ = simd->loss[call_.op()][call_.compute()];
    sum_ = simd->loss_sum[call_.op()][call_.compute()];
    multiply_ = simd->binary[pMul][call_.compute()];
    add_ = simd->reduce[rSum][call_.compute()];
  }

  void launch(const pg_launch& launch) override {
    if (call_.op() == lBce) check_probabilities(*launch.inputs[0], pg::input(launch, 0), "binary_cross_entropy");
    if (call_.op() == lGaussian || call_.op() == lGaussianFull)
      check_variances(*launch.inputs[2], pg::input(launch, 2), "gaussian_nll_loss");
    auto with = call_.parameters(launch);
    void* base[5] = {pg::output(launch, 0), call_.address(launch, 1), call_.address(launch, 2),
                     call_.address(launch, 3), call_.address(launch, 4)};
    if (call_.reduce() == kNone) {
      return loop_.run(base, [&](void* const* p, int64_t n) {
        costs_(p[1], p[2], p[3], p[0], n, with.bytes);
        if (call_.weighed()) multiply_(p[0], p[4], p[0], n);
      });
    }
    double result = total(base, with.bytes);
    if (call_.reduce() == kMean) result /= static_cast<double>(loop_.count());
    put_number(call_.storage(), result, base[0]);
  }

 private:
  double total(void* const (&base)[5], const void* with) const {
    auto range = [&](int64_t begin, int64_t end) {
      double sum = 0;
      loop_.visit(base, begin, end, [&](void* const* p, int64_t n) {
        sum += call_.weighed() ? weighed(p, n, with) : sum_(p[1], p[2], p[3], n, with);
      });
      return sum;
    };
    int64_t count = loop_.count(), chunks = (count + kChunk - 1) / kChunk;
    if (chunks <= 1) return range(0, count);
    std::vector<double> partial(static_cast<size_t>(chunks));
    pg::parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c++)
        partial[static_cast<size_t>(c)] = range(c * kChunk, std::min(count, (c + 1) * kChunk));
    });
    double sum = 0;
    for (double part : partial) sum += part;
    return sum;
  }
  // The sum of n costs times their weights.
  double weighed(void* const* p, int64_t n, const void* with) const {
    alignas(64) char costs[kBlock * 8];
    int64_t bytes = kStorageBytes[call_.type()];
    Acc acc;
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t m = std::min(kBlock, n - i);
      auto at = [&](int k) { return static_cast<char*>(p[k]) + i * bytes; };
      costs_(at(1), at(2), at(3), costs, m, with);
      multiply_(costs, at(4), costs, m);
      add_(costs, m, i, &acc);
    }
    return acc.f;
  }

  LossCall call_;
  TernaryFn costs_;
  LossSumFn sum_;
  BinaryFn multiply_;
  ReduceFn add_;
  BlockLoop<5> loop_;
};

struct PointwiseLossGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { LossCall::supports(call, 1); }
  PointwiseLossGrad(const pg::KernelCall& call, pg::Plan&) : call_(call, 1) {
    Storage type = call_.type();
    const pg_tensor& flow = call_.reduce() == kNone ? call.in(0) : call_.operand(call, 1);
    loop_ = BlockLoop<6>({{&call.out(0), type},
                          {&call_.operand(call, 1), type},
                          {&call_.operand(call, 2), type},
                          {&call_.operand(call, 3), type},
                          {&call_.operand(call, 4), type},
                          {&flow, type}});
    if (costly(call_.op())) loop_.set_grain(kGrainCostly);
    slopes_ = simd->loss_slope[call_.op()][call_.compute()];
    multiply_ = simd->binary[pMul][call_.compute()];
  }

  // dx = slope weight flow, the flow being one number where the loss is.
  void launch(const pg_launch& launch) override {
    bool single = call_.reduce() != kNone;
    double scale = 1;
    if (single) convert(call_.storage(), sF64, pg::input(launch, 0), &scale, 1);
    if (call_.reduce() == kMean) scale /= static_cast<double>(loop_.count());
    auto with = call_.parameters(launch);
    void* base[6] = {
        pg::output(launch, 0),    call_.address(launch, 1),
        call_.address(launch, 2), call_.address(launch, 3),
        call_.address(launch, 4), single ? call_.address(launch, 1) : const_cast<void*>(pg::input(launch, 0))};
    loop_.run(base, [&](void* const* p, int64_t n) {
      slopes_(p[1], p[2], p[3], p[0], n, scale, with.bytes);
      if (call_.weighed()) multiply_(p[0], p[4], p[0], n);
      if (!single) multiply_(p[0], p[5], p[0], n);
    });
  }

 private:
  LossCall call_;
  LossSlopeFn slopes_;
  BinaryFn multiply_;
  BlockLoop<6> loop_;
};

#define PG_LOSS(name)             \
  PG_KERNEL(name, PointwiseLoss); \
  PG_KERNEL(name "_grad", PointwiseLossGrad)
PG_LOSS("mse_loss");
PG_LOSS("l1_loss");
PG_LOSS("huber_loss");
PG_LOSS("smooth_l1_loss");
PG_LOSS("binary_cross_entropy");
PG_LOSS("binary_cross_entropy_with_logits");
PG_LOSS("kl_div");
PG_LOSS("poisson_nll_loss");
PG_LOSS("gaussian_nll_loss");
PG_LOSS("hinge_loss");
PG_LOSS("soft_margin_loss");
PG_LOSS("hinge_embedding_loss");
#undef PG_LOSS

}  // namespace
}  // namespace cpu::pointwise_losses
