// SPDX-License-Identifier: Apache-2.0
// ctc_loss and its gradient.
#include "perigee/kernels/ctc.hpp"

#include "../launch.hpp"

namespace sim {
namespace {

namespace reference = pg::reference;

struct Batch {
  Batch(const Work& work, size_t first)
      : shape(work.in(first).shape),
        log_probs(reference::read<double>(work.in(first))),
        labels(reference::read<int64_t>(work.in(first + 1))),
        steps(reference::read<int64_t>(work.in(first + 2))),
        lengths(reference::read<int64_t>(work.in(first + 3))),
        longest(work.in(first + 1).shape[1]),
        blank(work.attr<int64_t>("blank")),
        forgiving(work.attr<bool>("zero_infinity")) {
    for (size_t n = 0; n < steps.size(); n++) check(n);
  }
  void check(size_t n) const {
    bool fits = steps[n] >= 0 && steps[n] <= shape[0] && lengths[n] >= 0 && lengths[n] <= longest;
    for (int64_t s = 0; fits && s < lengths[n]; s++) {
      int64_t label = labels[n * static_cast<size_t>(longest) + static_cast<size_t>(s)];
      fits = label >= 0 && label < shape[2] && label != blank;
    }
    if (!fits) pg::fail_argument(pg::format("the lengths or labels of sequence %zu are out of range", n));
  }
  // Sequence n; `dense` receives its log probabilities, `alpha` what forward says. Answers the loss.
  double run(size_t n, std::vector<double>& dense, std::vector<double>& alpha, pg::kernels::CtcSequence& q) const {
    auto classes = static_cast<size_t>(shape[2]), count = steps.size(), length = static_cast<size_t>(steps[n]);
    dense.assign(length * classes, 0);
    for (size_t t = 0; t < length; t++)
      for (size_t c = 0; c < classes; c++) dense[t * classes + c] = log_probs[(t * count + n) * classes + c];
    q = {steps[n], shape[2], lengths[n], blank, dense.data(), labels.data() + n * static_cast<size_t>(longest)};
    alpha.assign(length * static_cast<size_t>(q.states()), 0);
    return pg::kernels::ctc_alpha(q, alpha.data());
  }
  reference::Dims shape;
  std::vector<double> log_probs;
  std::vector<int64_t> labels, steps, lengths;
  int64_t longest, blank;
  bool forgiving;
};

void ctc_loss(const Work& work) {
  Batch batch(work, 0);
  std::vector<double> out, dense, alpha;
  for (size_t n = 0; n < batch.steps.size(); n++) {
    pg::kernels::CtcSequence q;
    double nll = batch.run(n, dense, alpha, q);
    out.push_back(batch.forgiving && nll == INFINITY ? 0 : nll);
  }
  reference::write(work.out(0), out);
}

void ctc_loss_grad(const Work& work) {
  Batch batch(work, 1);
  auto dloss = reference::read<double>(work.in(0));
  auto classes = static_cast<size_t>(batch.shape[2]), count = batch.steps.size();
  std::vector<double> out(batch.log_probs.size()), dense, alpha;
  for (size_t n = 0; n < count; n++) {
    pg::kernels::CtcSequence q;
    double nll = batch.run(n, dense, alpha, q);
    if (batch.forgiving && nll == INFINITY) continue;
    std::vector<double> beta(static_cast<size_t>(2 * q.states())), slope(dense.size());
    pg::kernels::ctc_slope(q, alpha.data(), nll, beta.data(), slope.data());
    for (size_t t = 0; t < static_cast<size_t>(q.steps); t++)
      for (size_t c = 0; c < classes; c++) out[(t * count + n) * classes + c] = slope[t * classes + c] * dloss[n];
  }
  reference::write(work.out(0), out);
}

PG_SIM_KERNEL("ctc_loss", ctc_loss, kFloats);
PG_SIM_KERNEL("ctc_loss_grad", ctc_loss_grad, kFloats);

}  // namespace
}  // namespace sim
