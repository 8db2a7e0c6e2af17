// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 by filters of 3x3 that slide by one, and gradients of their inputs, by tiles of results: own
// loops for processors where oneDNN has none.
#pragma once

#include <optional>

#include "conv/conv.hpp"
#include "winograd.hpp"

namespace pg::cpu {

class Winograd {
 public:
  // Nothing where it does not pay, or the processor has no such loop. `packed`: filters are transformed once, not at
  // each call. The choice depends on the shape alone.
  static std::optional<Winograd> make(const ConvShape& s, bool packed);

  uint64_t weight_bytes() const;
  // weight: row-major filters. On this thread if the shape is `alone`.
  void transform(const float* weight, float* to) const;

  uint64_t workspace() const;
  struct Call {
    const float *x, *weight, *bias;  // of an input gradient x is dy; weight: transformed; bias may be NULL
    float* y;
    bool add = false, relu = false;  // y is added to; what is below 0 becomes 0
    void* workspace;
  };
  // Eight channels lie side by side (nChw8c), or where this is called all of them do.
  void take_channels_last();
  void run(const Call& call) const;

 private:
  Winograd(const ConvShape& s, int tiling);
  int64_t weight_step() const;
  uint64_t room(int64_t channels) const;

  const ::cpu::WinogradLoop* loop_;
  ::cpu::WinogradTiling tiling_;
  ::cpu::WinogradImages in_, out_;
  bool turned_, alone_;
  int64_t top_, left_, high_, wide_, tiles_;
  int64_t most_, chunks_, blocks_, parts_;  // tiles at a time; blocks of filters, and what they are shared out in
  int64_t threads_;
};

}  // namespace pg::cpu
