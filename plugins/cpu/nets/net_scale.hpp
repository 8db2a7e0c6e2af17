// SPDX-License-Identifier: Apache-2.0
// Products with a number a channel, in the layouts that convolutions leave their results in.
#pragma once

#include "nets/net_layout.hpp"

namespace pg::cpu {

class ChannelScale {
 public:
  // factor: of one image, or of as many as x has; its plane is 1.
  ChannelScale(const NetLayout& x, const NetLayout& factor);
  void run(const float* x, const float* factor, float* y) const;

 private:
  template <int64_t kBlock>
  void run_blocks(const float* x, const float* factor, float* y) const;
  void run_pixels(const float* x, const float* factor, float* y) const;

  NetLayout x_;
  int64_t step_;  // from an image's factors to the next one's
};

}  // namespace pg::cpu
