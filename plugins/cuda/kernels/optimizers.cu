// SPDX-License-Identifier: Apache-2.0
// All optimizer steps: one launch for some eighty tensors, four elements at a time. In float32, float64 for float64
// parameters. Their arithmetic: perigee/kernels/optimizer.hpp.
#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "multi_tensor.hpp"
#include "perigee/kernels/optimizer.hpp"

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

// One block: a chunk of one of the table's tensors. Nothing is done where `found` is true.
// Given: Rule, or of captured launches const Rule*.
template <class Rule, class Given, class A>
__global__ void __launch_bounds__(kThreads, 2)
    step_tensors(const __grid_constant__ Given given, const uint8_t* found,
                 const __grid_constant__ TensorTable<Rule::kOperands> table) {
  constexpr int N = Rule::kOperands;
  const Rule& rule = functor_of(given);
  if (found != nullptr && *found != 0) return;
  int t = table.find(blockIdx.x);
  bool together = table.aligned[t] != 0;
  uint32_t present = 0;
  for (int k = 0; k < N; k++) present |= table.at[k][t] != nullptr ? 1u << k : 0;
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
      rule(one, present);
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
template <class Rule, class Given, class A>
__global__ void __launch_bounds__(kThreads, 2)
    step_strided(const __grid_constant__ Given given, const uint8_t* found, StridedTensor<Rule::kOperands> tensor) {
  constexpr int N = Rule::kOperands;
  const Rule& rule = functor_of(given);
  if (found != nullptr && *found != 0) return;
  uint32_t present = 0;
  for (int k = 0; k < N; k++) present |= tensor.at[k] != nullptr ? 1u << k : 0;
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
    rule(one, present);
    for (int k = 0; k < N; k++) {
      x[k][0] = one[k];
      if (k != 1 && tensor.at[k] != nullptr) write_any(tensor.code[k], tensor.at[k], at[k], false, 1, x[k]);
    }
  }
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
      items_.emplace_back(operands, float_code);
    }
  }

  // float rules for most parameters, wide ones for float64.
  template <template <class> class Rule>
  void run(const Launch& launch, const uint8_t* found, const double* attrs) const {
    pass<float>(launch, found, Rule<float>(attrs), false);
    pass<double>(launch, found, Rule<double>(attrs), true);
  }

 private:
  template <class A, class Rule>
  void pass(const Launch& launch, const uint8_t* found, const Rule& rule, bool wide) const {
    TableFiller<N> filler;
    auto start = [&](const TensorTable<N>& table, uint32_t blocks) {
      Grid grid;
      grid.x = blocks;
      grid.threads = kThreads;
      if (const Rule* at = nullptr; is_renewed(rule, at))
        launch(grid, step_tensors<Rule, const Rule*, A>, at, found, table);
      else
        launch(grid, step_tensors<Rule, Rule, A>, rule, found, table);
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
      const Grid grid = grid_for(item.nest.count);
      if (const Rule* at = nullptr; is_renewed(rule, at))
        launch(grid, step_strided<Rule, const Rule*, A>, at, found, tensor);
      else
        launch(grid, step_strided<Rule, Rule, A>, rule, found, tensor);
    }
    filler.flush(start);
  }

  uint32_t count_, begin_[N] = {};
  bool present_[N] = {};
  std::vector<TensorItem<N>> items_;
};

template <template <class> class Rule>
class Update final : public Kernel {
 public:
  static constexpr int kOperands = Rule<float>::kOperands;

  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kFloats | PG_M_BOOL);
    uint32_t end = call.group_begin(kOperands);
    for (uint32_t i = 0; i < end; i++) {
      if (call.has(i) && pg::dtype_class(pg::dtype_of(call.in(i))) != PG_M_FLOAT) {
        pg::fail_support(pg::format("%s: booleans are not updated", call.op()));
      }
    }
  }
  Update(const pg::KernelCall& call, pg::Plan&) : found_(call.group_begin(kOperands)), tensors_(call) {
    pg::Runtime<double>* next = attrs_;
    for (const char* name : Rule<float>::kAttrs) *next++ = call.runtime<double>(name);
    conditional_ = call.has(found_);
  }

  bool renews() const override { return true; }
  void run(const Launch& launch) override {
    double values[pg::update::kMaxAttrs];
    for (size_t i = 0; i < std::size(Rule<float>::kAttrs); i++) values[i] = attrs_[i](launch.raw);
    tensors_.template run<Rule>(launch, conditional_ ? launch.in<uint8_t>(found_) : nullptr, values);
  }

 private:
  pg::Runtime<double> attrs_[pg::update::kMaxAttrs];
  uint32_t found_;
  bool conditional_;
  Tensors<kOperands> tensors_;
};

#define PG_ROW(name, Rule)                       \
  using Rule##Update = Update<pg::update::Rule>; \
  PG_KERNEL(name, Rule##Update);
PG_UPDATE_RULES(PG_ROW)
#undef PG_ROW

}  // namespace
}  // namespace cuda
