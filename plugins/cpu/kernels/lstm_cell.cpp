// SPDX-License-Identifier: Apache-2.0
// lstm_cell and its way back, of a stretch of a row at a time: what lies between the formulas stays in the first cache.
#include "kernels/recurrent.hpp"

namespace cpu {
namespace {

constexpr int64_t kGates = 4, kKept = 5;

class LstmCell final : public RecurrentStep {
 public:
  LstmCell(const pg::KernelCall& call, pg::Plan&) : RecurrentStep(call.in(2), kKept) {}
  void launch(const pg_launch& launch) override {
    const auto *x = pg::input<const char>(launch, 0), *hidden = pg::input<const char>(launch, 1),
               *c = pg::input<const char>(launch, 2);
    auto *h = pg::output<char>(launch, 0), *next = pg::output<char>(launch, 1), *gates = pg::output<char>(launch, 2);
    each_piece([=, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kKept], left, right;
      char* y[kKept];
      const int64_t sums = row * kGates * size_ + j, kept = row * kKept * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kKept; k++) y[k] = stretch_.out(gates, kept + k * size_, rooms[k]);
      for (int64_t k = 0; k < kGates; k++) {
        const char* a = stretch_.in(x, sums + k * size_, n, left);
        loops_.binary(pAdd, a, stretch_.in(hidden, sums + k * size_, n, right), y[k], n);
        loops_.unary(k == 2 ? pTanh : pSigmoid, y[k], y[k], n);
      }
      char* state = stretch_.out(next, at, left);
      loops_.binary(pMul, y[1], stretch_.in(c, at, n, right), state, n);
      loops_.binary(pMul, y[0], y[2], y[4], n);
      loops_.binary(pAdd, state, y[4], state, n);
      loops_.unary(pTanh, state, y[4], n);
      char* z = stretch_.out(h, at, right);
      loops_.binary(pMul, y[3], y[4], z, n);
      stretch_.done(next, at, n, state);
      stretch_.done(h, at, n, z);
      for (int64_t k = 0; k < kKept; k++) stretch_.done(gates, kept + k * size_, n, y[k]);
    });
  }
};
PG_KERNEL("lstm_cell", LstmCell);

class LstmCellGrad final : public RecurrentStep {
 public:
  LstmCellGrad(const pg::KernelCall& call, pg::Plan&) : RecurrentStep(call.in(3), kKept) {}
  void launch(const pg_launch& launch) override {
    const auto *dh = pg::input<const char>(launch, 0), *dnext = pg::input<const char>(launch, 1),
               *gates = pg::input<const char>(launch, 2), *c = pg::input<const char>(launch, 3);
    auto *dx = pg::output<char>(launch, 0), *dc = pg::output<char>(launch, 1);
    each_piece([=, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kKept], flows[3], sum, product, result;
      const char* y[kKept];
      const int64_t kept = row * kKept * size_ + j, sums = row * kGates * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kKept; k++) y[k] = stretch_.in(gates, kept + k * size_, n, rooms[k]);
      const char *flow = stretch_.in(dh, at, n, flows[0]), *d = stretch_.in(dnext, at, n, flows[1]);
      const char* before = stretch_.in(c, at, n, flows[2]);
      if (flow != nullptr) {  // through the state's tanh
        loops_.binary(pMul, flow, y[3], product, n);
        loops_.slope(pTanhGrad, y[4], product, sum, n);
        if (d != nullptr) loops_.binary(pAdd, d, sum, sum, n);
        d = sum;
      }
      const char* others[kGates] = {y[2], before, y[0], y[4]};
      for (int64_t k = 0; k < kGates; k++) {
        if (k == 3 && flow == nullptr)
          std::memset(product, 0, sizeof product);
        else
          loops_.binary(pMul, k == 3 ? flow : d, others[k], product, n);
        char* z = stretch_.out(dx, sums + k * size_, result);
        loops_.slope(k == 2 ? pTanhGrad : pSigmoidGrad, y[k], product, z, n);
        stretch_.done(dx, sums + k * size_, n, z);
      }
      char* z = stretch_.out(dc, at, result);
      loops_.binary(pMul, d, y[1], z, n);
      stretch_.done(dc, at, n, z);
    });
  }
};
PG_KERNEL("lstm_cell_grad", LstmCellGrad);

}  // namespace
}  // namespace cpu
