// SPDX-License-Identifier: Apache-2.0
// gru_cell and its way back.
#include "kernels/recurrent.hpp"

namespace cpu {
namespace {

constexpr int64_t kGates = 3;

class GruCell final : public RecurrentStep {
 public:
  GruCell(const pg::KernelCall& call, pg::Plan&) : RecurrentStep(call.in(2), kGates) {}
  void launch(const pg_launch& launch) override {
    const auto *x = pg::input<const char>(launch, 0), *hidden = pg::input<const char>(launch, 1),
               *h = pg::input<const char>(launch, 2);
    auto *next = pg::output<char>(launch, 0), *gates = pg::output<char>(launch, 1);
    each_piece([=, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kGates], left, right;
      char* y[kGates];
      const int64_t wide = row * kGates * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kGates; k++) {
        y[k] = stretch_.out(gates, wide + k * size_, rooms[k]);
        const char *a = stretch_.in(x, wide + k * size_, n, left), *b = stretch_.in(hidden, wide + k * size_, n, right);
        if (k == 2) loops_.binary(pMul, y[0], b, y[k], n), b = y[k];
        loops_.binary(pAdd, a, b, y[k], n);
        loops_.unary(k == 2 ? pTanh : pSigmoid, y[k], y[k], n);
      }
      char* state = stretch_.out(next, at, left);
      simd->ternary[pLerp][loops_.compute](y[2], stretch_.in(h, at, n, right), y[1], state, n, nullptr);
      stretch_.done(next, at, n, state);
      for (int64_t k = 0; k < kGates; k++) stretch_.done(gates, wide + k * size_, n, y[k]);
    });
  }
};
PG_KERNEL("gru_cell", GruCell);

class GruCellGrad final : public RecurrentStep {
 public:
  GruCellGrad(const pg::KernelCall& call, pg::Plan&) : RecurrentStep(call.in(3), kGates) {}
  void launch(const pg_launch& launch) override {
    const auto *dnext = pg::input<const char>(launch, 0), *gates = pg::input<const char>(launch, 1),
               *hidden = pg::input<const char>(launch, 2), *h = pg::input<const char>(launch, 3);
    auto *dx = pg::output<char>(launch, 0), *dhidden = pg::output<char>(launch, 1), *dh = pg::output<char>(launch, 2);
    each_piece([=, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kGates], flow, before, within, through, sum, result;
      const char* y[kGates];
      const int64_t wide = row * kGates * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kGates; k++) y[k] = stretch_.in(gates, wide + k * size_, n, rooms[k]);
      const char *d = stretch_.in(dnext, at, n, flow), *old = stretch_.in(h, at, n, before);
      const char* inner = stretch_.in(hidden, wide + 2 * size_, n, within);
      auto write = [&](char* data, int64_t k, const char* values) {
        char* to = stretch_.out(data, wide + k * size_, result);
        if (values != to) std::memcpy(to, values, static_cast<size_t>(n * kStorageBytes[kStorageOf[loops_.compute]]));
        stretch_.done(data, wide + k * size_, n, to);
      };
      char* kept = stretch_.out(dh, at, through);
      loops_.binary(pMul, d, y[1], kept, n);
      loops_.binary(pSub, d, kept, sum, n);
      stretch_.done(dh, at, n, kept);
      alignas(64) Room slope;
      loops_.slope(pTanhGrad, y[2], sum, slope, n);
      write(dx, 2, slope);
      loops_.binary(pMul, slope, y[0], sum, n);
      write(dhidden, 2, sum);
      loops_.binary(pMul, slope, inner, sum, n);
      loops_.slope(pSigmoidGrad, y[0], sum, slope, n);
      write(dx, 0, slope), write(dhidden, 0, slope);
      loops_.binary(pSub, old, y[2], sum, n);
      loops_.binary(pMul, d, sum, sum, n);
      loops_.slope(pSigmoidGrad, y[1], sum, slope, n);
      write(dx, 1, slope), write(dhidden, 1, slope);
    });
  }
};
PG_KERNEL("gru_cell_grad", GruCellGrad);

}  // namespace
}  // namespace cpu
