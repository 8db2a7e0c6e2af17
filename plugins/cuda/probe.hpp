// SPDX-License-Identifier: Apache-2.0
// Which devices there are for this plugin, or why there are none.
#pragma once

#include <string>
#include <vector>

namespace cuda {

// The CUDA runtime's numbers of the devices that the kernels run on. Empty: `reason` says why, in the driver's words
// where it has some, and what to do about it.
std::vector<int> usable_devices(std::string& reason);

// "13.0" of 13000; "9.19.0" of 91900. Apart for tests.
std::string cuda_version(int number);
std::string cudnn_version(long number);
// "" where a plugin built with one cuDNN runs with the other, whose CUDA runtime is `cudart`.
std::string cudnn_defect(long built, long found, long built_cudart, long cudart);

}  // namespace cuda
