// SPDX-License-Identifier: Apache-2.0
// ctc_loss(log_probs, targets, input_lengths, target_lengths) -> loss and ctc_loss_grad, a sequence at a time, in
// float64. The gradient runs forward again rather than keep what forward has seen.
#include "perigee/kernels/ctc.hpp"

#include "dense_reader.hpp"
#include "index_values.hpp"

namespace cpu {
namespace {

class Ctc final : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    uint32_t x = call.is("ctc_loss") ? 0 : 1;
    if (!is_float(storage_of(call.in(x))) || !pg::is_contiguous(call.out(0))) refuse(call);
    for (uint32_t i = x + 1; i < x + 4; i++) {
      if (!is_index(call.in(i))) refuse(call);
    }
  }
  Ctc(const pg::KernelCall& call, pg::Plan& plan)
      : first_(call.is("ctc_loss") ? 0 : 1),
        blank_(call.attr<int64_t>("blank")),
        forgiving_(call.attr<bool>("zero_infinity")),
        storage_(storage_of(call.in(first_))),
        labels_(call.in(first_ + 1)),
        steps_of_(call.in(first_ + 2)),
        length_of_(call.in(first_ + 3)) {
    const pg_tensor& x = call.in(first_);
    steps_ = x.shape[0], count_ = x.shape[1], classes_ = x.shape[2], length_ = call.in(first_ + 1).shape[1];
    std::copy_n(x.stride, 3, stride_);
    if (first_ > 0) dloss_stride_ = call.in(0).stride[0];
    int64_t states = 2 * length_ + 1;
    piece_ = steps_ * classes_ * (1 + first_) + steps_ * states + 2 * states;
    slices_ = std::max<int64_t>(1, std::min<int64_t>(pg::thread_count(), count_));
    plan.workspace = labels_.workspace() + steps_of_.workspace() + length_of_.workspace() +
                     static_cast<uint64_t>(piece_ * slices_) * 8;
  }
  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    auto* scratch = pg::host_pointer<char>(launch.workspace);
    auto read = [&](const IndexValues& values, uint32_t input) {
      const int64_t* row = values.read(pg::input(launch, input), scratch);
      scratch += values.workspace();
      return row;
    };
    const int64_t *labels = read(labels_, first_ + 1), *steps = read(steps_of_, first_ + 2),
                  *lengths = read(length_of_, first_ + 3);
    check(labels, steps, lengths);
    auto* room = reinterpret_cast<double*>(scratch);
    pg::parallel_for(slices_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; slice++) {
        for (int64_t n = count_ * slice / slices_; n < count_ * (slice + 1) / slices_; n++)
          run(launch, n, {steps[n], classes_, lengths[n], blank_, nullptr, labels + n * length_},
              room + slice * piece_);
      }
    });
  }

 private:
  void check(const int64_t* labels, const int64_t* steps, const int64_t* lengths) const {
    auto demand = [](bool fits, const char* what, int64_t n, int64_t value, int64_t most) {
      if (fits) return;
      pg::fail_argument(pg::format("%s of sequence %lld is %lld; expected 0 to %lld", what, static_cast<long long>(n),
                                   static_cast<long long>(value), static_cast<long long>(most)));
    };
    for (int64_t n = 0; n < count_; n++) {
      demand(steps[n] >= 0 && steps[n] <= steps_, "the input length", n, steps[n], steps_);
      demand(lengths[n] >= 0 && lengths[n] <= length_, "the target length", n, lengths[n], length_);
      for (int64_t s = 0; s < lengths[n]; s++) {
        int64_t label = labels[n * length_ + s];
        demand(label >= 0 && label < classes_, "a label", n, label, classes_ - 1);
        if (label == blank_)
          pg::fail_argument(pg::format("a label of sequence %lld is the blank, %lld", static_cast<long long>(n),
                                       static_cast<long long>(label)));
      }
    }
  }

  void run(const pg_launch& launch, int64_t n, pg::kernels::CtcSequence q, double* room) const {
    int64_t size = kStorageBytes[storage_];
    double *dense = room, *alpha = dense + steps_ * classes_, *beta = alpha + steps_ * (2 * length_ + 1);
    auto* x = pg::input<const char>(launch, first_);
    for (int64_t t = 0; t < q.steps; t++) {
      const char* row = x + (t * stride_[0] + n * stride_[1]) * size;
      if (stride_[2] == 1) {
        convert(storage_, sF64, row, dense + t * classes_, classes_);
        continue;
      }
      for (int64_t c = 0; c < classes_; c++)
        convert(storage_, sF64, row + c * stride_[2] * size, dense + t * classes_ + c, 1);
    }
    q.log_probs = dense;
    double nll = pg::kernels::ctc_alpha(q, alpha);
    bool nothing = forgiving_ && nll == INFINITY;
    auto* out = pg::output<char>(launch, 0);
    if (first_ == 0) {
      double loss = nothing ? 0.0 : nll;
      convert(sF64, storage_, &loss, out + n * size, 1);
      return;
    }
    double dloss, *slope = beta + 2 * (2 * length_ + 1);
    convert(storage_, sF64, pg::input<const char>(launch, 0) + n * dloss_stride_ * size, &dloss, 1);
    if (!nothing) pg::kernels::ctc_slope(q, alpha, nll, beta, slope);
    for (int64_t t = 0; t < steps_; t++) {
      double* row = slope + t * classes_;
      for (int64_t c = 0; c < classes_; c++) row[c] = nothing || t >= q.steps ? 0.0 : row[c] * dloss;
      convert(sF64, storage_, row, out + (t * count_ + n) * classes_ * size, classes_);
    }
  }

  uint32_t first_;
  int64_t blank_;
  bool forgiving_;
  Storage storage_;
  IndexValues labels_, steps_of_, length_of_;
  int64_t steps_, count_, classes_, length_, stride_[3], dloss_stride_ = 0, piece_, slices_;
};
PG_KERNEL("ctc_loss", Ctc);
PG_KERNEL("ctc_loss_grad", Ctc);

}  // namespace
}  // namespace cpu
