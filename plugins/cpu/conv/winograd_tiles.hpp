// SPDX-License-Identifier: Apache-2.0
// Convolutions of float32 by filters of 3x3 that slide by one, and gradients of their inputs, by tiles of results: own
// loops for processors where oneDNN has none.
#pragma once

#include <optional>

#include "conv/conv.hpp"
#include "winograd.hpp"

namespace pg::cpu {

// Of kWinogradTilings the one that takes the least time; nothing where the direct way does, or the processor has no
// such loops. `packed`: filters are transformed once, not at each call. The choice depends on the shape alone.
std::optional<int> find_winograd_tiling(const ConvShape& s, bool packed);
// Dense images of which eight channels lie side by side (nChw8c); or with all channels last.
::cpu::WinogradImages blocked_images(const int64_t (&size)[3], int64_t channels);
void lie_channels_last(::cpu::WinogradImages& images);

class Winograd {
 public:
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
  void take_channels_last() { lie_channels_last(in_), lie_channels_last(out_); }
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

// The gradient of the filters, and of a bias.
class WinogradSlopes {
 public:
  // Of filters that are row-major or have channels last.
  static std::optional<WinogradSlopes> make(const ConvShape& s);

  uint64_t workspace() const;
  struct Call {
    const float *x, *dy;
    float *dweight, *dbias;  // dbias may be NULL
    void* workspace;
  };
  void take_channels_last() { lie_channels_last(in_), lie_channels_last(out_); }
  void run(const Call& call) const;

 private:
  struct Room {
    float *v, *w, *sums;
  };
  WinogradSlopes(const ConvShape& s, int tiling);
  int64_t filters_of(int64_t part) const;  // the first one
  Room reserve(Scratch& scratch) const;
  void run_part(const Call& call, const Room& room, int64_t part) const;

  const ::cpu::WinogradLoop* loop_;
  ::cpu::WinogradTiling tiling_;
  ::cpu::WinogradImages in_, out_;
  int64_t top_, left_, high_, wide_, tiles_, most_, blocks_, parts_;
  int64_t filter_step_, channel_step_, number_step_;
};

}  // namespace pg::cpu
