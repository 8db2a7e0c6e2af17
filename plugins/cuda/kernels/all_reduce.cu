// SPDX-License-Identifier: Apache-2.0
// all_reduce within one device: every output is the sum, mean, largest or smallest over all inputs, in their order. One
// launch for up to kMany dense tensors; what is left over goes through the workspace, in double or int64.
#include <vector>

#include "access.cuh"
#include "group.cuh"
#include "kernel.hpp"
#include "perigee/kernels/math.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

enum Choice { kReduceSum, kReduceMean, kReduceMax, kReduceMin };
constexpr int kMany = 32;

struct AllReduceArguments {
  const char* x[kMany] = {};
  char* y[kMany] = {};
  int32_t inputs = 0, outputs = 0, choice = kReduceSum;
  uint32_t dtype = 0;
  bool dense = true, begins = true;  // begins: nothing is in `sums` yet
  double divisor = 0;                // of the results; 0: none
  void* sums = nullptr;
  Walk<1> walk;  // of the inputs, unless dense
};

// T: double or int64_t.
template <class T>
__device__ __forceinline__ T combine(int32_t choice, T a, T b) {
  return choice == kReduceMax   ? pg::math::Maximum()(a, b)
         : choice == kReduceMin ? pg::math::Minimum()(a, b)
                                : pg::math::Add()(a, b);
}

template <class S>
__global__ void __launch_bounds__(kThreads, 2) reduce_tensors(AllReduceArguments a) {
  using T = typename Access<S>::C;
  int64_t bytes = Access<S>::bytes(a.dtype);
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < a.walk.count; i += int64_t{gridDim.x} * kThreads) {
    keep_rolled(i);
    int64_t at = (a.dense ? i : a.walk.offset(i)) * bytes;
    T total = a.begins ? T(0) : static_cast<const T*>(a.sums)[i];
    for (int32_t k = 0; k < a.inputs; k++) {
      keep_rolled(k);
      T x[1];
      load<S, 1>(a.dtype, a.x[k] + at, x);
      total = a.begins && k == 0 ? x[0] : combine(a.choice, total, x[0]);
    }
    if (a.outputs == 0) static_cast<T*>(a.sums)[i] = total;
    if constexpr (std::is_same_v<T, double>) total = a.divisor == 0 ? total : total / a.divisor;
    for (int32_t k = 0; k < a.outputs; k++) {
      keep_rolled(k);
      if constexpr (std::is_same_v<T, double>)
        set_any_float(a.dtype, a.y[k] + i * bytes, total);
      else
        set_any_int(a.dtype, a.y[k] + i * bytes, total);
    }
  }
}

class AllReduce final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (call.input_count() == 0) pg::fail_support("all_reduce needs at least one tensor");
    uint32_t dtype = pg::dtype_of(call.in(0));
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (pg::dtype_of(call.in(i)) != dtype || pg::dtype_of(call.out(i)) != dtype || !pg::is_contiguous(call.out(i))) {
        pg::fail_support("all_reduce wants tensors of one dtype, and dense results");
      }
    }
    if (pg::dtype_class(dtype) != PG_M_FLOAT && call.attr<int>("op") == kReduceMean)
      pg::fail_support("means are of floats");
  }
  AllReduce(const pg::KernelCall& call, pg::Plan& plan)
      : choice_(call.attr<int>("op")), dtype_(pg::dtype_of(call.in(0))) {
    uint32_t dense = 0;
    for (uint32_t i = 0; i < call.input_count(); i++) {
      walks_.push_back(walk_of(call.in(i)));
      dense += walks_.back().linear(0);
    }
    one_launch_ = dense == call.input_count() && dense <= kMany;
    if (!one_launch_) plan.workspace = static_cast<uint64_t>(walks_[0].count) * 8;
  }

  void run(const Launch& launch) override {
    auto count = static_cast<uint32_t>(walks_.size());
    AllReduceArguments a;
    a.choice = choice_, a.dtype = dtype_, a.sums = launch.workspace();
    if (one_launch_) {
      for (uint32_t i = 0; i < count; i++) a.x[i] = launch.in<char>(i);
      a.inputs = static_cast<int32_t>(count);
      a.walk = walks_[0];
      return put(launch, a, 0);
    }
    for (uint32_t i = 0; i < count; i++) {
      a.x[0] = launch.in<char>(i);
      a.inputs = 1;
      a.walk = walks_[i];
      a.dense = walks_[i].linear(0);
      start(launch, a);
      a.begins = false;
    }
    a.inputs = 0;
    for (uint32_t first = 0; first < count; first += kMany) put(launch, a, first);
  }

 private:
  void put(const Launch& launch, AllReduceArguments& a, uint32_t first) const {
    auto count = static_cast<uint32_t>(walks_.size());
    a.outputs = static_cast<int32_t>(count - first < kMany ? count - first : kMany);
    for (int32_t k = 0; k < a.outputs; k++) a.y[k] = launch.out<char>(first + static_cast<uint32_t>(k));
    a.divisor = choice_ == kReduceMean ? static_cast<double>(count) : 0;
    start(launch, a);
  }
  void start(const Launch& launch, const AllReduceArguments& a) const {
    bool floating = pg::dtype_class(dtype_) == PG_M_FLOAT;
    launch(grid_for(a.walk.count), floating ? reduce_tensors<AnyFloat> : reduce_tensors<AnyInt>, a);
  }

  int32_t choice_;
  uint32_t dtype_;
  bool one_launch_ = true;
  std::vector<Walk<1>> walks_;
};
PG_KERNEL("all_reduce", AllReduce);

}  // namespace
}  // namespace cuda
