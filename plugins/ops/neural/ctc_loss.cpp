// SPDX-License-Identifier: Apache-2.0
// ctc_loss and ctc_loss_grad.
#include "../rules.hpp"

namespace pg::schema_ctc_loss {
namespace {

OpBuilder& ctc_inputs(OpBuilder& op) {
  return op.input("log_probs", kFloating, "[T, N, C]: log_softmax along C")
      .input("targets", kInteger,
             "[N, S]: labels from 0, none the blank; those behind a sequence's length are not read")
      .input("input_lengths", kInteger, "[N]: steps of each sequence, at most T")
      .input("target_lengths", kInteger, "[N]: labels of each sequence, at most S")
      .attr<int>("blank", 0, "the label that stands for none, from 0")
      .attr<bool>("zero_infinity", false, "losses that are infinite, and their gradients, count as 0");
}

void check_ctc(const ShapeContext& c, uint32_t first) {
  c.check_rank(first, 3, 3);
  Dim n = c.dim(first, 1), classes = c.dim(first, 2);
  for (uint32_t i = first + 1; i < first + 4; i++) {
    c.check_index(i);
    c.check_rank(i, i == first + 1 ? 2 : 1, i == first + 1 ? 2 : 1);
    c.check_dim(i, 0, n, "the number of sequences");
  }
  int64_t blank = c.get<int>("blank");
  c.need(blank >= 0 && (classes.symbolic() || blank < classes.value),
         "blank %lld is out of range for %s; expected 0..%lld", static_cast<long long>(blank), c.text(first).c_str(),
         static_cast<long long>(classes.value - 1));
}

const bool declared = [] {
  ctc_inputs(declare_op("ctc_loss").category("neural").numeric(PG_NUMERIC_FLOAT32))
      .doc(
          "Negative log likelihood of a sequence of labels, over all ways to align it with the steps (Graves et al. "
          "2006). The gradient is that of what log_softmax is taken of, as PyTorch's: exp(log_probs) - posterior. It "
          "has "
          "no gradient of its own.")
      .output("loss", "[N]")
      .shape([](ShapeContext& c) {
        check_ctc(c, 0);
        c.out(0).set(c.dtype(0), Shape{c.dim(0, 1)});
      })
      .saves("log_probs", "targets", "input_lengths", "target_lengths")
      .grad([](GradContext& g) {
        static constinit OpRef op("ctc_loss_grad");
        g.din(0) = g.call(op, g.dout(0), g.in(0), g.in(1), g.in(2), g.in(3));
      });

  ctc_inputs(
      declare_op("ctc_loss_grad").category("neural").numeric(PG_NUMERIC_FLOAT32).input("dloss", kFloating, "[N]"))
      .doc("Gradient of ctc_loss.")
      .output("dlog_probs", "[T, N, C]: 0 behind a sequence's length")
      .shape([](ShapeContext& c) {
        check_ctc(c, 1);
        c.check_rank(0, 1, 1);
        c.check_dim(0, 0, c.dim(1, 1), "the number of sequences");
        c.check_same_dtype(0, 1);
        c.out(0) = c.in(1);
      })
      .saves("dloss", "log_probs", "targets", "input_lengths", "target_lengths")
      .grad([](GradContext&) { fail(PG_E_NOT_SUPPORTED, "ctc_loss has no second derivative"); });
  return true;
}();

}  // namespace
}  // namespace pg::schema_ctc_loss
