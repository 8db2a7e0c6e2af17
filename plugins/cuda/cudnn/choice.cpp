// SPDX-License-Identifier: Apache-2.0
#include "cudnn/choice.hpp"

#include <cstdlib>

#include "perigee/plugin.hpp"

namespace cuda::dnn {
namespace {

bool by_cudnn(const char* variable) {
  const char* value = std::getenv(variable);
  std::string wanted = value == nullptr ? "" : value;
  if (wanted.empty() || wanted == "cudnn") return true;
  if (wanted != "own") {
    pg::fail_argument(pg::format("%s is '%s'; expected cudnn or own", variable, wanted.c_str()));
  }
  return false;
}

}  // namespace

bool norms_by_cudnn() { return by_cudnn("PERIGEE_CUDA_NORMS"); }
bool pools_by_cudnn() { return by_cudnn("PERIGEE_CUDA_POOLS"); }

}  // namespace cuda::dnn
