// SPDX-License-Identifier: Apache-2.0
// new_op in one pass over the elements: in float64 for float64, in float32 for the rest.
#include <cmath>

#include "block_loop.hpp"

namespace cpu {
namespace {

template <class T>
void apply_new_op(const void* from, void* to, int64_t n, T beta) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] / (T(1) + std::exp(-beta * x[i]));
}

struct NewOp final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    Storage s = storage_of(call.in(0));
    if (!is_float(s) || storage_of(call.out(0)) != s) refuse(call);
  }
  NewOp(const pg::KernelCall& call, pg::Plan&)
      : wide_(storage_of(call.in(0)) == sF64), beta_(call.attr<double>("beta")) {
    Storage type = wide_ ? sF64 : sF32;
    loop_ = BlockLoop<2>({{&call.out(0), type}, {&call.in(0), type}});
  }
  void launch(const pg_launch& launch) override {
    void* base[2] = {pg::output(launch, 0), const_cast<void*>(pg::input(launch, 0))};
    loop_.run(base, [this](void* const* p, int64_t n) {
      if (wide_)
        apply_new_op<double>(p[1], p[0], n, beta_);
      else
        apply_new_op<float>(p[1], p[0], n, static_cast<float>(beta_));
    });
  }

 private:
  bool wide_;
  double beta_;
  BlockLoop<2> loop_;
};
PG_KERNEL("new_op", NewOp);

}  // namespace
}  // namespace cpu
