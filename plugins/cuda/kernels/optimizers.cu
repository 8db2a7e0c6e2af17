// SPDX-License-Identifier: Apache-2.0
// adam (Kingma and Ba 2015; decoupled decay: Loshchilov and Hutter 2019) and sgd: one launch for some eighty tensors,
// four elements at a time. In float32, float64 for float64 parameters.
#include <cmath>

#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "multi_tensor.hpp"

namespace cuda {
namespace {

// Four elements, or the first n of them.
template <class S, class A>
__device__ __forceinline__ void read_four(const char* at, bool together, int n, A (&x)[4]) {
  const S* from = reinterpret_cast<const S*>(at);
  if (together && n == 4) {
    constexpr int kBytes = sizeof(S) == 2 ? 8 : 16, kPerAccess = kBytes / sizeof(S);
    alignas(16) S packet[4];
    for (int i = 0; i < 4; i += kPerAccess)
      memcpy(packet + i, __builtin_assume_aligned(at + i * sizeof(S), kBytes), kBytes);
    for (int i = 0; i < 4; i++) x[i] = static_cast<A>(widen<S>(packet[i]));
  } else {
    for (int i = 0; i < 4; i++) x[i] = i < n ? static_cast<A>(widen<S>(from[i])) : A(0);
  }
}
template <class S, class A>
__device__ __forceinline__ void write_four(char* at, bool together, int n, const A (&x)[4]) {
  S* to = reinterpret_cast<S*>(at);
  if (together && n == 4) {
    constexpr int kBytes = sizeof(S) == 2 ? 8 : 16, kPerAccess = kBytes / sizeof(S);
    alignas(16) S packet[4];
    for (int i = 0; i < 4; i++) packet[i] = narrow<S>(x[i]);
    for (int i = 0; i < 4; i += kPerAccess)
      memcpy(__builtin_assume_aligned(at + i * sizeof(S), kBytes), packet + i, kBytes);
  } else {
    for (int i = 0; i < 4; i++) {
      if (i < n) to[i] = narrow<S>(x[i]);
    }
  }
}
__device__ __forceinline__ int64_t bytes_of(uint8_t code) { return code == kCodeF64 ? 8 : code == kCodeF32 ? 4 : 2; }
template <class A>
__device__ __forceinline__ void read_any(uint8_t code, const char* base, int64_t i, bool together, int n, A (&x)[4]) {
  const char* at = base + i * bytes_of(code);
  switch (code) {
    case kCodeF32: return read_four<float>(at, together, n, x);
    case kCodeF16: return read_four<f16>(at, together, n, x);
    case kCodeBF16: return read_four<bf16>(at, together, n, x);
    default: return read_four<double>(at, together, n, x);
  }
}
template <class A>
__device__ __forceinline__ void write_any(uint8_t code, char* base, int64_t i, bool together, int n, const A (&x)[4]) {
  char* at = base + i * bytes_of(code);
  switch (code) {
    case kCodeF32: return write_four<float>(at, together, n, x);
    case kCodeF16: return write_four<f16>(at, together, n, x);
    case kCodeBF16: return write_four<bf16>(at, together, n, x);
    default: return write_four<double>(at, together, n, x);
  }
}

// Steps change x[0] (the parameter) and the state behind the gradient x[1], one element at a time.
template <class T>
struct AdamStep {
  using A = T;
  static constexpr int kOperands = 4;
  A step_size, beta1, beta2, eps, decay, keep, grad_scale, inv_root2;

  __device__ __forceinline__ void operator()(A (&x)[4], bool) const {
    A param = x[0] * keep, grad = fma(decay, param, x[1] * grad_scale), square = grad * grad;
    x[2] = fma(beta1, x[2] - grad, grad);
    x[3] = fma(beta2, x[3] - square, square);
    x[0] = param - step_size * x[2] / fma(std::sqrt(x[3]), inv_root2, eps);
  }
};
template <class T>
struct SgdStep {
  using A = T;
  static constexpr int kOperands = 3;
  A lr, momentum, dampening, decay;
  bool nesterov, first;

  __device__ __forceinline__ void operator()(A (&x)[3], bool has_state) const {
    A grad = fma(decay, x[0], x[1]);
    if (has_state) {
      x[2] = first ? grad : fma(momentum, x[2], (A(1) - dampening) * grad);
      grad = nesterov ? fma(momentum, x[2], grad) : x[2];
    }
    x[0] -= lr * grad;
  }
};

// One block: a chunk of one of the table's tensors.
template <class Step>
__global__ void __launch_bounds__(kThreads, 2)
    step_tensors(Step step, const __grid_constant__ TensorTable<Step::kOperands> table) {
  using A = typename Step::A;
  constexpr int N = Step::kOperands;
  int t = table.find(blockIdx.x);
  bool together = table.aligned[t] != 0, has_state = table.at[N - 1][t] != nullptr;
  int64_t begin = static_cast<int64_t>(blockIdx.x - table.first_block[t]) * kChunk, size = table.size[t];
  int64_t end = begin + kChunk < size ? begin + kChunk : size;
  for (int64_t i = begin + 4 * static_cast<int64_t>(threadIdx.x); i < end; i += 4 * int64_t{kThreads}) {
    keep_rolled(i);
    int n = end - i < 4 ? static_cast<int>(end - i) : 4;
    A x[N][4] = {};
    for (int k = 0; k < N; k++) {
      if (table.at[k][t] != nullptr) read_any(table.code[k][t], table.at[k][t], i, together, n, x[k]);
    }
    for (int j = 0; j < 4; j++) {
      A one[N];
      for (int k = 0; k < N; k++) one[k] = x[k][j];
      step(one, has_state);
      for (int k = 0; k < N; k++) x[k][j] = one[k];
    }
    for (int k = 0; k < N; k++) {
      if (k != 1 && table.at[k][t] != nullptr) write_any(table.code[k][t], table.at[k][t], i, together, n, x[k]);
    }
  }
}

// A tensor whose operands lie differently in memory.
template <int N>
struct StridedTensor {
  char* at[N] = {};
  uint8_t code[N] = {};
  Walk<N> walk;
};
template <class Step>
__global__ void __launch_bounds__(kThreads, 2) step_strided(Step step, StridedTensor<Step::kOperands> tensor) {
  using A = typename Step::A;
  constexpr int N = Step::kOperands;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < tensor.walk.count;
       i += int64_t{gridDim.x} * kThreads) {
    keep_rolled(i);
    int64_t at[N];
    tensor.walk.locate(i, at);
    A one[N] = {}, x[N][4] = {};
    for (int k = 0; k < N; k++) {
      if (tensor.at[k] != nullptr) read_any(tensor.code[k], tensor.at[k], at[k], false, 1, x[k]);
      one[k] = x[k][0];
    }
    step(one, tensor.at[N - 1] != nullptr);
    for (int k = 0; k < N; k++) {
      x[k][0] = one[k];
      if (k != 1 && tensor.at[k] != nullptr) write_any(tensor.code[k], tensor.at[k], at[k], false, 1, x[k]);
    }
  }
}

uint8_t code_of(uint32_t dtype) {
  return dtype == PG_F32 ? kCodeF32 : dtype == PG_F16 ? kCodeF16 : dtype == PG_BF16 ? kCodeBF16 : kCodeF64;
}

// The operands of all tensors, group after group; groups may be empty.
template <int N>
class Tensors {
 public:
  explicit Tensors(const pg::KernelCall& call) : count_(call.group(0)) {
    for (uint32_t k = 0; k < N; k++) {
      begin_[k] = call.group_begin(k);
      present_[k] = call.group(k) != 0;
      if (present_[k] && call.group(k) != count_) {
        pg::fail_argument(pg::format("%s: group %u has %u tensors; expected %u", call.op(), k, call.group(k), count_));
      }
    }
    for (uint32_t i = 0; i < count_; i++) {
      const pg_tensor* operands[N];
      for (uint32_t k = 0; k < N; k++) operands[k] = present_[k] ? call.raw->inputs[begin_[k] + i] : nullptr;
      items_.emplace_back(operands, code_of);
    }
  }

  // float steps for most parameters, wide ones for float64.
  template <template <class> class Step>
  void run(const Launch& launch, const Step<float>& narrow_step, const Step<double>& wide_step) const {
    pass(launch, narrow_step, false);
    pass(launch, wide_step, true);
  }

 private:
  template <class Step>
  void pass(const Launch& launch, const Step& step, bool wide) const {
    TableFiller<N> filler;
    auto start = [&](const TensorTable<N>& table, uint32_t blocks) {
      Grid grid;
      grid.x = blocks;
      grid.threads = kThreads;
      launch(grid, step_tensors<Step>, step, table);
    };
    for (uint32_t i = 0; i < count_; i++) {
      const TensorItem<N>& item = items_[i];
      if ((item.code[0] == kCodeF64) != wide || item.nest.count == 0) continue;
      char* at[N];
      for (uint32_t k = 0; k < N; k++) at[k] = item.present[k] ? launch.mutated<char>(begin_[k] + i) : nullptr;
      if (item.dense) {
        filler.add(item, at, start);
        continue;
      }
      StridedTensor<N> tensor;
      for (uint32_t k = 0; k < N; k++) tensor.at[k] = at[k], tensor.code[k] = item.code[k];
      tensor.walk = Walk<N>(item.nest);
      launch(grid_for(item.nest.count), step_strided<Step>, step, tensor);
    }
    filler.flush(start);
  }

  uint32_t count_, begin_[N] = {};
  bool present_[N] = {};
  std::vector<TensorItem<N>> items_;
};

class Adam final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kFloats); }
  Adam(const pg::KernelCall& call, pg::Plan&)
      : lr_(call.runtime<double>("lr")),
        beta1_(call.runtime<double>("beta1")),
        beta2_(call.runtime<double>("beta2")),
        eps_(call.runtime<double>("eps")),
        decay_(call.runtime<double>("weight_decay")),
        step_(call.runtime<double>("step")),
        scale_(call.runtime<double>("grad_scale")),
        decoupled_(call.attr<bool>("decoupled")),
        tensors_(call) {}

  void run(const Launch& launch) override {
    const pg_launch& raw = launch.raw;
    double lr = lr_(raw), beta1 = beta1_(raw), beta2 = beta2_(raw), decay = decay_(raw), t = step_(raw);
    double correction1 = 1 - std::pow(beta1, t), root2 = std::sqrt(1 - std::pow(beta2, t));
    AdamStep<double> wide{
        lr / correction1, beta1,    beta2, eps_(raw), decoupled_ ? 0 : decay, decoupled_ ? 1 - lr * decay : 1,
        1 / scale_(raw),  1 / root2};
    AdamStep<float> step{static_cast<float>(wide.step_size),  static_cast<float>(wide.beta1),
                         static_cast<float>(wide.beta2),      static_cast<float>(wide.eps),
                         static_cast<float>(wide.decay),      static_cast<float>(wide.keep),
                         static_cast<float>(wide.grad_scale), static_cast<float>(wide.inv_root2)};
    tensors_.run<AdamStep>(launch, step, wide);
  }

 private:
  pg::Runtime<double> lr_, beta1_, beta2_, eps_, decay_, step_, scale_;
  bool decoupled_;
  Tensors<4> tensors_;
};
PG_KERNEL("adam", Adam);

class Sgd final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kFloats); }
  Sgd(const pg::KernelCall& call, pg::Plan&)
      : lr_(call.runtime<double>("lr")),
        momentum_(call.runtime<double>("momentum")),
        dampening_(call.runtime<double>("dampening")),
        decay_(call.runtime<double>("weight_decay")),
        first_(call.runtime<bool>("first")),
        nesterov_(call.attr<bool>("nesterov")),
        tensors_(call) {}

  void run(const Launch& launch) override {
    const pg_launch& raw = launch.raw;
    SgdStep<double> wide{lr_(raw), momentum_(raw), dampening_(raw), decay_(raw), nesterov_, first_(raw)};
    SgdStep<float> step{static_cast<float>(wide.lr),
                        static_cast<float>(wide.momentum),
                        static_cast<float>(wide.dampening),
                        static_cast<float>(wide.decay),
                        wide.nesterov,
                        wide.first};
    tensors_.run<SgdStep>(launch, step, wide);
  }

 private:
  pg::Runtime<double> lr_, momentum_, dampening_, decay_;
  pg::Runtime<bool> first_;
  bool nesterov_;
  Tensors<3> tensors_;
};
PG_KERNEL("sgd", Sgd);

}  // namespace
}  // namespace cuda
