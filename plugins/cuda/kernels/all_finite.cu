// SPDX-License-Identifier: Apache-2.0
// all_finite(xs) -> whether no element of any tensor is infinite or NaN: one launch for a few hundred tensors.
#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "multi_tensor.hpp"

namespace cuda {
namespace {

__global__ void set_true(uint8_t* out) { *out = 1; }

// Whether any of the first n of the floats at `at` is not finite: its exponent is all ones.
template <class S>
__device__ __forceinline__ bool has_wild(const char* at, bool together, int n, S exponent) {
  constexpr int kBytes = sizeof(S) == 2 ? 8 : 16, kPerAccess = kBytes / sizeof(S);
  alignas(16) S bits[4] = {};
  if (together && n == 4) {
    for (int i = 0; i < 4; i += kPerAccess) {
      memcpy(bits + i, __builtin_assume_aligned(at + i * sizeof(S), kBytes), kBytes);
    }
  } else {
    for (int i = 0; i < 4; i++) {
      if (i < n) bits[i] = *reinterpret_cast<const S*>(at + i * sizeof(S));
    }
  }
  bool wild = false;
  for (S one : bits) wild = wild || (one & exponent) == exponent;
  return wild;
}
__device__ __forceinline__ bool any_wild(uint8_t code, const char* base, int64_t i, bool together, int n) {
  switch (code) {
    case kCodeF32: return has_wild<uint32_t>(base + i * 4, together, n, 0x7f800000u);
    case kCodeF16: return has_wild<uint16_t>(base + i * 2, together, n, 0x7c00);
    case kCodeBF16: return has_wild<uint16_t>(base + i * 2, together, n, 0x7f80);
    default: return has_wild<uint64_t>(base + i * 8, together, n, 0x7ff0000000000000u);
  }
}

// All threads that write write the same.
__global__ void __launch_bounds__(kThreads, 2)
    look_at_tensors(const __grid_constant__ TensorTable<1> table, uint8_t* out) {
  int t = table.find(blockIdx.x);
  int64_t begin = static_cast<int64_t>(blockIdx.x - table.first_block[t]) * kChunk, size = table.size[t];
  int64_t end = begin + kChunk < size ? begin + kChunk : size;
  bool wild = false;
  for (int64_t i = begin + 4 * static_cast<int64_t>(threadIdx.x); i < end; i += 4 * int64_t{kThreads}) {
    keep_rolled(i);
    int n = end - i < 4 ? static_cast<int>(end - i) : 4;
    wild = wild || any_wild(table.code[0][t], table.at[0][t], i, table.aligned[t] != 0, n);
  }
  if (wild) *out = 0;
}

__global__ void __launch_bounds__(kThreads, 2)
    look_at_strided(const char* at, uint8_t code, Walk<1> walk, uint8_t* out) {
  bool wild = false;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < walk.count; i += int64_t{gridDim.x} * kThreads) {
    keep_rolled(i);
    wild = wild || any_wild(code, at, walk.offset(i), false, 1);
  }
  if (wild) *out = 0;
}

class AllFinite final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) { check_dtypes(call, kAny); }
  AllFinite(const pg::KernelCall& call, pg::Plan&) {
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (pg::dtype_class(pg::dtype_of(call.in(i))) != PG_M_FLOAT) continue;  // integers always are
      const pg_tensor* operands[1] = {&call.in(i)};
      items_.emplace_back(operands, float_code);
      inputs_.push_back(i);
    }
  }
  void run(const Launch& launch) override {
    auto* out = launch.out<uint8_t>(0);
    Grid one;
    one.threads = 1;
    launch(one, set_true, out);
    TableFiller<1> filler;
    auto start = [&](const TensorTable<1>& table, uint32_t blocks) {
      Grid grid;
      grid.x = blocks;
      grid.threads = kThreads;
      launch(grid, look_at_tensors, table, out);
    };
    for (size_t i = 0; i < items_.size(); i++) {
      const TensorItem<1>& item = items_[i];
      if (item.nest.count == 0) continue;
      char* at[1] = {launch.mutated<char>(inputs_[i])};
      if (item.dense)
        filler.add(item, at, start);
      else
        launch(grid_for(item.nest.count), look_at_strided, at[0], item.code[0], Walk<1>(item.nest), out);
    }
    filler.flush(start);
  }

 private:
  std::vector<TensorItem<1>> items_;
  std::vector<uint32_t> inputs_;
};
PG_KERNEL("all_finite", AllFinite);

}  // namespace
}  // namespace cuda
