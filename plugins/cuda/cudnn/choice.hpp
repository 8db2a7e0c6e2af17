// SPDX-License-Identifier: Apache-2.0
// Which of two ways serves an operator that both cuDNN and own kernels can compute. Asked when a kernel is prepared.
#pragma once

namespace cuda::dnn {

// Environment variables: "cudnn" or "own"; others throw.
bool norms_by_cudnn();      // PERIGEE_CUDA_NORMS
bool averages_by_cudnn();   // PERIGEE_CUDA_POOLS
bool largest_by_cudnn();    // the same; by default own
bool attention_by_cudnn();  // PERIGEE_CUDA_ATTENTION

}  // namespace cuda::dnn
