// SPDX-License-Identifier: Apache-2.0
#include "cudnn/conv.hpp"

#include "vendor.hpp"

namespace cuda::dnn {

std::unique_ptr<Convolution> make_convolution(const ConvShape& shape, uint32_t device, const std::string& what) {
  // Sums over nothing are zeros, or the bias.
  if (count_of(shape.x) * count_of(shape.weight) * count_of(shape.y) == 0) return make_direct_convolution(shape);
  return asked_for(what, [&] {
    if (auto convolution = make_cudnn_convolution(shape, device)) return convolution;
    std::string reason = take_cudnn_reason();
    if (!reason.empty()) reason = " (" + reason + ")";
    pg::log(PG_LOG_DEBUG, "cuDNN has no engine for " + what + reason + ": own kernels compute it");
    return make_direct_convolution(shape);
  });
}

}  // namespace cuda::dnn
