// SPDX-License-Identifier: Apache-2.0
// A convolution, or one of its gradients, of a batch as a whole or of a part of one, in a layout of its own.
#pragma once

#include "conv/conv.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {

class WholeConvolution : public Convolution {
 public:
  // Of gradients: dy in the layout that run() wants, made once for several (ConvData::packed_dy). 0 bytes: as it lies.
  virtual uint64_t dy_bytes() const = 0;
  virtual const onednn::Desc& wanted_dy() const = 0;
  // `y`, of what masks_dy(): dy counts where it is above 0.
  virtual void pack_dy(const void* dy, const void* y, void* target) = 0;
  virtual bool masks_dy() const = 0;
};

// The fastest way; NULL where there is none but columns.
std::unique_ptr<WholeConvolution> make_whole_convolution(const ConvShape& shape);
// By own loops, NULL where that does not pay.
std::unique_ptr<WholeConvolution> make_winograd_convolution(const ConvShape& shape);

}  // namespace pg::cpu
