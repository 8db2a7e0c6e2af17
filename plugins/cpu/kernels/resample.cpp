// SPDX-License-Identifier: Apache-2.0
// resample(x) -> y and resample_grad(dy, x) -> dx, where of x only the shape counts. x lies as [before, in, after];
// lines of `after` elements are added up whole.
#include "perigee/kernels/resample.hpp"

#include <algorithm>

#include "kernels/windows.hpp"
#include "linalg/dense.hpp"

namespace pg::cpu {
namespace {

class Resample final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (dtype_of(call.in(0)) != dtype_of(call.out(0))) fail_support("the result has another dtype");
    if (!is_dense(call.out(0))) fail_support("the result must be dense");
  }
  Resample(const KernelCall& call, Plan& plan) : dtype_(dtype_of(call.out(0))), source_(call.in(0)) {
    bool backward = call.is("resample_grad");
    const pg_tensor &x = backward ? call.out(0) : call.in(0), &y = backward ? call.in(0) : call.out(0);
    auto axis = static_cast<uint32_t>(call.axis("axis", x.rank));
    for (uint32_t i = 0; i < x.rank; i++) (i < axis ? before_ : after_) *= i == axis ? 1 : x.shape[i];
    in_ = x.shape[axis], out_ = y.shape[axis];
    if (before_ * after_ == 0) return;  // the table of a long axis is large
    table_ = resample_table(static_cast<Resampling>(call.attr<int32_t>("mode")), in_, out_,
                            call.attr<bool>("align_corners"), call.attr<double>("scale"));
    if (backward) table_ = transposed(table_), std::swap(in_, out_);
    Scratch scratch;
    source_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (before_ * after_ * out_ == 0) return;
    Scratch scratch(host_pointer(launch.workspace));
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      run(static_cast<const T*>(source_.get(input(launch, 0), scratch)), output<T>(launch, 0));
    });
  }

 private:
  // What each input goes to becomes what each output is made of, in the order of outputs.
  ResampleTable transposed(const ResampleTable& table) const {
    std::vector<std::vector<std::pair<int64_t, double>>> uses(static_cast<size_t>(in_));
    for (int64_t o = 0; o < out_; o++) {
      for (int64_t k = table.begin[o]; k < table.begin[o + 1]; k++)
        uses[static_cast<size_t>(table.index[k])].push_back({o, table.weight[k]});
    }
    ResampleTable result;
    for (const auto& list : uses) {
      for (auto [o, weight] : list) result.add(o, weight);
      result.end_output();
    }
    return result;
  }

  // How many elements each output is made of; 0 where they are not as many for all.
  int64_t taps() const {
    int64_t each = out_ > 0 ? table_.begin[1] : 0;
    for (int64_t o = 0; o < out_; o++)
      if (table_.begin[static_cast<size_t>(o) + 1] != (o + 1) * each) return 0;
    return each;
  }
  // Along the last axis: one number after the other. kTaps: what taps() says, where it is worth a loop of its own.
  template <int kTaps, class T>
  void run_rows(const T* x, T* y) const {
    int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, out_));
    parallel_for(before_, grain, [=, this](int64_t begin, int64_t end) {
      using A = Accumulator<T>;
      const int64_t *first = table_.begin.data(), *index = table_.index.data();
      const double* weight = table_.weight.data();
      for (int64_t row = begin; row < end; row++) {
        const T* from = x + row * in_;
        T* to = y + row * out_;
        for (int64_t o = 0; o < out_; o++) {
          A sum{};
          const int64_t start = kTaps > 0 ? o * kTaps : first[o], last = kTaps > 0 ? start + kTaps : first[o + 1];
          for (int64_t k = start; k < last; k++) sum += static_cast<A>(weight[k]) * load<T>(from[index[k]]);
          to[o] = store<T>(sum);
        }
      }
    });
  }
  template <class T>
  void run(const T* x, T* y) const {
    if (after_ == 1) {
      const int64_t each = taps();
      return each == 1   ? run_rows<1>(x, y)
             : each == 2 ? run_rows<2>(x, y)
             : each == 4 ? run_rows<4>(x, y)
                         : run_rows<0>(x, y);
    }
    int64_t grain = std::max<int64_t>(1, 16384 / (after_ * 4));
    parallel_for(before_ * out_, grain, [=, this](int64_t begin, int64_t end) {
      using A = Accumulator<T>;
      constexpr int64_t kBlock = 256;
      A sums[kBlock];
      for (int64_t line = begin; line < end; line++) {
        const T* from = x + line / out_ * in_ * after_;
        T* to = y + line * after_;
        int64_t first = table_.begin[line % out_], last = table_.begin[line % out_ + 1];
        for (int64_t at = 0; at < after_; at += kBlock) {
          int64_t count = std::min(kBlock, after_ - at);
          std::fill_n(sums, count, A{});
          for (int64_t k = first; k < last; k++) {
            const T* source = from + table_.index[k] * after_ + at;
            A weight = static_cast<A>(table_.weight[k]);
            for (int64_t i = 0; i < count; i++) sums[i] += weight * load<T>(source[i]);
          }
          for (int64_t i = 0; i < count; i++) to[at + i] = store<T>(sums[i]);
        }
      }
    });
  }

  uint32_t dtype_;
  DenseInput source_;
  int64_t before_ = 1, after_ = 1, in_, out_;
  ResampleTable table_;
};

PG_KERNEL("resample", Resample);
PG_KERNEL("resample_grad", Resample);

}  // namespace
}  // namespace pg::cpu
