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
    backward_ = call.is("resample_grad");
    const pg_tensor &x = backward_ ? call.out(0) : call.in(0), &y = backward_ ? call.in(0) : call.out(0);
    auto axis = static_cast<uint32_t>(call.axis("axis", x.rank));
    for (uint32_t i = 0; i < x.rank; i++) (i < axis ? before_ : after_) *= i == axis ? 1 : x.shape[i];
    axis_ = {static_cast<Resampling>(call.attr<int32_t>("mode")), x.shape[axis], y.shape[axis],
             call.attr<bool>("align_corners"), call.attr<double>("scale")};
    in_ = backward_ ? axis_.out : axis_.in, out_ = backward_ ? axis_.in : axis_.out;
    if (before_ * after_ * out_ == 0) return;
    if (in_ + out_ <= kWhole) table_ = made_of(0, out_);
    Scratch scratch;
    source_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    if (before_ * after_ * out_ == 0) return;
    Scratch scratch(host_pointer(launch.workspace));
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(source_.get(input(launch, 0), scratch));
      auto* y = output<T>(launch, 0);
      if (in_ + out_ <= kWhole) return run({table_, 0, out_}, x, y);
      for (int64_t first = 0; first < out_; first += kPiece) {
        int64_t last = std::min(out_, first + kPiece);
        run({made_of(first, last), first, last - first}, x, y);
      }
    });
  }

 private:
  // The table of a longer axis is made in pieces where it is run: by then there is memory for the result, which may be
  // smaller than the table.
  static constexpr int64_t kWhole = 1 << 20, kPiece = 1 << 16;

  // What some of the axis' outputs are made of.
  struct Piece {
    const ResampleTable& table;
    int64_t first, count;

    // How many elements each output is made of; 0 where they are not as many for all.
    int64_t taps() const {
      int64_t each = table.begin[1];
      for (int64_t o = 0; o < count; o++)
        if (table.begin[static_cast<size_t>(o) + 1] != (o + 1) * each) return 0;
      return each;
    }
  };

  // Of what is computed: outputs, or, backward, inputs.
  ResampleTable made_of(int64_t first, int64_t last) const {
    return backward_ ? transposed(first, last) : axis_.table(first, last);
  }
  // What inputs [first, last) go to, in the order of outputs.
  ResampleTable transposed(int64_t first, int64_t last) const {
    int64_t begin = first_output([&](const ResampleTable& t) { return t.index.back() >= first; });
    int64_t end = first_output([&](const ResampleTable& t) { return t.index.front() >= last; });
    ResampleTable table = axis_.table(begin, std::max(begin, end)), result;
    std::vector<std::vector<std::pair<int64_t, double>>> uses(static_cast<size_t>(last - first));
    for (int64_t o = begin; o < end; o++) {
      for (int64_t k = table.begin[o - begin]; k < table.begin[o - begin + 1]; k++) {
        int64_t at = table.index[k];
        if (at >= first && at < last) uses[static_cast<size_t>(at - first)].push_back({o, table.weight[k]});
      }
    }
    for (const auto& list : uses) {
      for (auto [o, weight] : list) result.add(o, weight);
      result.end_output();
    }
    return result;
  }
  // The first output for which `holds`, of which all behind it do too; else their number.
  template <class Holds>
  int64_t first_output(Holds&& holds) const {
    int64_t low = 0, high = axis_.out;
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      holds(axis_.table(middle, middle + 1)) ? high = middle : low = middle + 1;
    }
    return low;
  }

  // Along the last axis: one number after the other. kTaps: what taps() says, where it is worth a loop of its own.
  template <int kTaps, class T>
  void run_rows(const Piece& piece, const T* x, T* y) const {
    int64_t grain = std::max<int64_t>(1, 4096 / piece.count), count = piece.count, offset = piece.first;
    const int64_t *first = piece.table.begin.data(), *index = piece.table.index.data();
    const double* weight = piece.table.weight.data();
    parallel_for(before_, grain, [=, this](int64_t begin, int64_t end) {
      using A = Accumulator<T>;
      for (int64_t row = begin; row < end; row++) {
        const T* from = x + row * in_;
        T* to = y + row * out_ + offset;
        for (int64_t o = 0; o < count; o++) {
          A sum{};
          const int64_t start = kTaps > 0 ? o * kTaps : first[o], last = kTaps > 0 ? start + kTaps : first[o + 1];
          for (int64_t k = start; k < last; k++) sum += static_cast<A>(weight[k]) * load<T>(from[index[k]]);
          to[o] = store<T>(sum);
        }
      }
    });
  }
  template <class T>
  void run(const Piece& piece, const T* x, T* y) const {
    if (after_ == 1) {
      const int64_t each = piece.taps();
      return each == 1   ? run_rows<1>(piece, x, y)
             : each == 2 ? run_rows<2>(piece, x, y)
             : each == 4 ? run_rows<4>(piece, x, y)
                         : run_rows<0>(piece, x, y);
    }
    const ResampleTable& table = piece.table;
    int64_t grain = std::max<int64_t>(1, 16384 / (after_ * 4)), lines = piece.count, offset = piece.first;
    parallel_for(before_ * lines, grain, [=, &table, this](int64_t begin, int64_t end) {
      using A = Accumulator<T>;
      constexpr int64_t kBlock = 256;
      A sums[kBlock];
      for (int64_t line = begin; line < end; line++) {
        const int64_t b = line / lines, o = line % lines;
        const T* from = x + b * in_ * after_;
        T* to = y + (b * out_ + offset + o) * after_;
        int64_t first = table.begin[o], last = table.begin[o + 1];
        for (int64_t at = 0; at < after_; at += kBlock) {
          int64_t count = std::min(kBlock, after_ - at);
          std::fill_n(sums, count, A{});
          for (int64_t k = first; k < last; k++) {
            const T* source = from + table.index[k] * after_ + at;
            A weight = static_cast<A>(table.weight[k]);
            for (int64_t i = 0; i < count; i++) sums[i] += weight * load<T>(source[i]);
          }
          for (int64_t i = 0; i < count; i++) to[at + i] = store<T>(sums[i]);
        }
      }
    });
  }

  uint32_t dtype_;
  DenseInput source_;
  bool backward_;
  int64_t before_ = 1, after_ = 1, in_, out_;  // in_, out_: of what is read and of what is written
  ResampledAxis axis_;
  ResampleTable table_;  // of the whole axis, where it is short
};

PG_KERNEL("resample", Resample);
PG_KERNEL("resample_grad", Resample);

}  // namespace
}  // namespace pg::cpu
