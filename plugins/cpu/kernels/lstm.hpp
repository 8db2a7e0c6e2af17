// SPDX-License-Identifier: Apache-2.0
// A step of an LSTM behind its products, and its way back, of a stretch of a row at a time: what lies between the
// formulas stays in the first cache.
#pragma once

#include "kernels/recurrent.hpp"

namespace cpu {

class LstmRows : public RecurrentStep {
 protected:
  static constexpr int64_t kGates = 4, kKept = 5;

  explicit LstmRows(const pg_tensor& state) : RecurrentStep(state, kKept) {}

  // `next` may be c; `gates` may be NULL: nobody wants them.
  struct Forward {
    const char *x, *hidden, *c;
    char *h, *next, *gates;
  };
  void forward(const Forward& f) const {
    each_piece([&f, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kKept], left, right;
      char* y[kKept];
      const int64_t sums = row * kGates * size_ + j, kept = row * kKept * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kKept; k++)
        y[k] = f.gates == nullptr ? rooms[k] : stretch_.out(f.gates, kept + k * size_, rooms[k]);
      for (int64_t k = 0; k < kGates; k++) {
        const char* a = stretch_.in(f.x, sums + k * size_, n, left);
        loops_.binary(pAdd, a, stretch_.in(f.hidden, sums + k * size_, n, right), y[k], n);
        loops_.unary(k == 2 ? pTanh : pSigmoid, y[k], y[k], n);
      }
      char* state = stretch_.out(f.next, at, left);
      loops_.binary(pMul, y[1], stretch_.in(f.c, at, n, right), state, n);
      loops_.binary(pMul, y[0], y[2], y[4], n);
      loops_.binary(pAdd, state, y[4], state, n);
      loops_.unary(pTanh, state, y[4], n);
      char* z = stretch_.out(f.h, at, right);
      loops_.binary(pMul, y[3], y[4], z, n);
      stretch_.done(f.next, at, n, state);
      stretch_.done(f.h, at, n, z);
      if (f.gates == nullptr) return;
      for (int64_t k = 0; k < kKept; k++) stretch_.done(f.gates, kept + k * size_, n, y[k]);
    });
  }

  // What flows into h is the sum of dh and dy; of these and dnext some may be NULL, not all. dc may be dnext.
  struct Back {
    const char *dh, *dy, *dnext, *gates, *c;
    char *dx, *dc;
  };
  void back(const Back& b) const {
    each_piece([&b, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kKept], flows[4], both, sum, product, result;
      const char* y[kKept];
      const int64_t kept = row * kKept * size_ + j, sums = row * kGates * size_ + j, at = row * size_ + j;
      for (int64_t k = 0; k < kKept; k++) y[k] = stretch_.in(b.gates, kept + k * size_, n, rooms[k]);
      const char *flow = stretch_.in(b.dh, at, n, flows[0]), *more = stretch_.in(b.dy, at, n, flows[3]);
      const char *d = stretch_.in(b.dnext, at, n, flows[1]), *before = stretch_.in(b.c, at, n, flows[2]);
      if (flow != nullptr && more != nullptr) {
        loops_.binary(pAdd, flow, more, both, n);
        flow = both;
      } else if (flow == nullptr) {
        flow = more;
      }
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
        char* z = stretch_.out(b.dx, sums + k * size_, result);
        loops_.slope(k == 2 ? pTanhGrad : pSigmoidGrad, y[k], product, z, n);
        stretch_.done(b.dx, sums + k * size_, n, z);
      }
      char* z = stretch_.out(b.dc, at, result);
      loops_.binary(pMul, d, y[1], z, n);
      stretch_.done(b.dc, at, n, z);
    });
  }
};

}  // namespace cpu
