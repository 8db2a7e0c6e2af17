// SPDX-License-Identifier: Apache-2.0
#include "cudnn/choice.hpp"

#include <cstdlib>

#include "perigee/plugin.hpp"

namespace cuda::dnn {
namespace {

bool by_cudnn(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  std::string wanted = value == nullptr || *value == '\0' ? otherwise : value;
  if (wanted != "cudnn" && wanted != "own") {
    pg::fail_argument(pg::format("%s is '%s'; expected cudnn or own", variable, wanted.c_str()));
  }
  return wanted == "cudnn";
}

}  // namespace

// cuDNN's norms convert dense tensors to channels-last and back, in two or three times their memory: on an H200 they
// take 1.2 to 1.7 times as long as the own kernels.
bool norms_by_cudnn() { return by_cudnn("PERIGEE_CUDA_NORMS", "own"); }
bool attention_by_cudnn() { return by_cudnn("PERIGEE_CUDA_ATTENTION", "cudnn"); }
bool averages_by_cudnn() { return by_cudnn("PERIGEE_CUDA_POOLS", "cudnn"); }
// cuDNN makes -inf the lowest finite number, and has other bits for zeros: seen on an H200.
bool largest_by_cudnn() { return by_cudnn("PERIGEE_CUDA_POOLS", "own"); }

}  // namespace cuda::dnn
