// SPDX-License-Identifier: Apache-2.0
// A step of an LSTM behind its products, and its way back, of a stretch of a row at a time: what lies between the
// formulas stays in the first cache.
#pragma once

#include "kernels/recurrent.hpp"
#include "lstm_piece.hpp"

namespace cpu {

class LstmRows : public RecurrentStep {
 protected:
  static constexpr int64_t kGates = kLstmGates, kKept = kLstmKept;

  static_assert(kPiece <= kLstmPiece);

  explicit LstmRows(const pg_tensor& state) : RecurrentStep(state, kKept) {}

  // `next` may be c; `gates` may be NULL: nobody wants them.
  struct Forward {
    const char *x, *hidden, *c;
    char *h, *next, *gates;
  };
  void forward(const Forward& f) const {
    each_piece([&f, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room sums[2 * kGates], kept[kKept], states[3];
      const int64_t wide = row * kGates * size_ + j, gates = row * kKept * size_ + j, at = row * size_ + j;
      LstmForward t{};
      for (int64_t k = 0; k < kGates; k++) {
        t.x[k] = stretch_.in(f.x, wide + k * size_, n, sums[k]);
        t.hidden[k] = stretch_.in(f.hidden, wide + k * size_, n, sums[kGates + k]);
      }
      t.c = stretch_.in(f.c, at, n, states[0]);
      char *next = stretch_.out(f.next, at, states[1]), *h = stretch_.out(f.h, at, states[2]);
      t.next = next, t.h = h;
      for (int64_t k = 0; k < kKept && f.gates != nullptr; k++)
        t.gates[k] = stretch_.out(f.gates, gates + k * size_, kept[k]);
      lstm_loops.forward[loops_.compute](t, n);
      stretch_.done(f.next, at, n, next);
      stretch_.done(f.h, at, n, h);
      for (int64_t k = 0; k < kKept && f.gates != nullptr; k++) stretch_.done(f.gates, gates + k * size_, n, kept[k]);
    });
  }

  // What flows into h is the sum of dh and dy; of these and dnext some may be NULL, not all. dc may be dnext.
  struct Back {
    const char *dh, *dy, *dnext, *gates, *c;
    char *dx, *dc;
  };
  void back(const Back& b) const {
    each_piece([&b, this](int64_t row, int64_t j, int64_t n) {
      alignas(64) Room rooms[kKept], flows[4], sums[kGates], state;
      const int64_t kept = row * kKept * size_ + j, wide = row * kGates * size_ + j, at = row * size_ + j;
      LstmBack t{};
      for (int64_t k = 0; k < kKept; k++) t.gates[k] = stretch_.in(b.gates, kept + k * size_, n, rooms[k]);
      t.dh = stretch_.in(b.dh, at, n, flows[0]), t.dy = stretch_.in(b.dy, at, n, flows[1]);
      t.dnext = stretch_.in(b.dnext, at, n, flows[2]), t.c = stretch_.in(b.c, at, n, flows[3]);
      char* dx[kGates];
      for (int64_t k = 0; k < kGates; k++) t.dx[k] = dx[k] = stretch_.out(b.dx, wide + k * size_, sums[k]);
      char* dc = stretch_.out(b.dc, at, state);
      t.dc = dc;
      lstm_loops.back[loops_.compute](t, n);
      for (int64_t k = 0; k < kGates; k++) stretch_.done(b.dx, wide + k * size_, n, dx[k]);
      stretch_.done(b.dc, at, n, dc);
    });
  }
};

}  // namespace cpu
