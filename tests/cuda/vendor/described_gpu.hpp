// SPDX-License-Identifier: Apache-2.0
// A GPU of compute capability 9.0 as cuDNN is told of one that is not there (a "device property descriptor", since
// 9.8): its heuristics answer for it, and plans of engines that are not compiled can be made.
#pragma once

#include "cudnn/descriptor.hpp"

#if CUDNN_VERSION >= 90800

namespace vendor_test {

inline cuda::dnn::Descriptor described_gpu() {
  constexpr char kGpu[] =
      R"({"deviceName": "sm_90", "deviceVer": 900, "driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0,
          "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
          "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
          "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
          "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32,
          "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
          "totalGlobalMem": 85017493504})";
  cuda::dnn::Descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, sizeof kGpu - 1, kGpu);
  return std::move(d.finalize());
}

}  // namespace vendor_test

#endif
