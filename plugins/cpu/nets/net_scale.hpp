// SPDX-License-Identifier: Apache-2.0
// Products with a number a channel, in the layouts that convolutions leave their results in.
#pragma once

#include "nets/net_layout.hpp"

namespace pg::cpu {

class ChannelScale {
 public:
  // factor: of one image, or of as many as x has; its plane is 1.
  // narrow: of bfloat16, else of float32.
  ChannelScale(const NetLayout& x, const NetLayout& factor, bool narrow);
  void run(const void* x, const void* factor, void* y) const;

 private:
  template <class T>
  void run_type(const T* x, const T* factor, T* y) const;
  template <int64_t kBlock, class T>
  void run_blocks(const T* x, const T* factor, T* y) const;
  template <class T>
  void run_pixels(const T* x, const T* factor, T* y) const;

  NetLayout x_;
  bool narrow_;
  int64_t step_;  // from an image's factors to the next one's
};

}  // namespace pg::cpu
