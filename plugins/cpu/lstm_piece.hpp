// SPDX-License-Identifier: Apache-2.0
// What kernels/simd/lstm.cpp is asked for: a stretch of a row of an LSTM's step behind its products, or of its way
// back, in the type that is computed in. Columns of gates come in the order i, f, g, o; what is kept ends with the new
// state's tanh.
#pragma once

#include <cstdint>

namespace cpu {

constexpr int kLstmGates = 4, kLstmKept = 5;
constexpr int64_t kLstmPiece = 256;  // the longest stretch

struct LstmForward {
  const void *x[kLstmGates], *hidden[kLstmGates], *c;
  void *h, *next;          // `next` may be c
  void* gates[kLstmKept];  // all, or NULL: nobody wants them
};

struct LstmBack {
  const void *dh, *dy, *dnext;  // of which some may be NULL, not all; what flows into h is the sum of the first two
  const void *gates[kLstmKept], *c;
  void *dx[kLstmGates], *dc;  // dc may be dnext
};

// By kF32, kF64. The bits of the operators that a step is made of, but for sigmoids below the least normal number.
struct LstmLoops {
  void (*forward[2])(const LstmForward& t, int64_t n);
  void (*back[2])(const LstmBack& t, int64_t n);
};
extern LstmLoops lstm_loops;  // of the best instruction set that this processor has

}  // namespace cpu
