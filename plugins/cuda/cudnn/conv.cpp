// SPDX-License-Identifier: Apache-2.0
#include "cudnn/conv.hpp"

#include "cudnn/plan.hpp"

namespace cuda::dnn {

std::unique_ptr<Convolution> make_convolution(const ConvShape& shape, uint32_t device, const std::string& what) {
  // Sums over nothing are zeros, or the bias.
  if (count_of(shape.x) * count_of(shape.weight) * count_of(shape.y) == 0) return make_direct_convolution(shape);
  return asked_for(what, [&] {
    if (auto convolution = make_cudnn_convolution(shape, device, what)) return convolution;
    log_no_engine(what);
    return make_direct_convolution(shape);
  });
}

}  // namespace cuda::dnn
