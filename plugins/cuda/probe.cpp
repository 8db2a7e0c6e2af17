// SPDX-License-Identifier: Apache-2.0
#include "probe.hpp"

#include <cudnn_version.h>

#include <cstdlib>

#include "runtime.hpp"

// Of cuDNN only this is asked here, so that its headers are not: they are slow to compile.
extern "C" size_t cudnnGetVersion(void);
extern "C" size_t cudnnGetCudartVersion(void);

namespace cuda {
namespace {

#if !defined(PERIGEE_CUDA_OLDEST)
#define PERIGEE_CUDA_OLDEST 90  // compute capability, as in sm_90
#endif

// The branch of drivers that brought each major version of CUDA to Linux.
std::string driver_remedy() {
  int major = CUDART_VERSION / 1000;
  std::string branch = major == 13 ? "580" : major == 12 ? "525" : "";
  if (branch.empty()) return "install a newer NVIDIA driver";
  return "install an NVIDIA driver of version " + branch + " or newer";
}

// An empty string where the driver and the runtime go together.
std::string driver_defect(cudaError_t status) {
  (void)cudaGetLastError();
  int driver = 0;
  if (PG_CUDA_STATUS(cudaDriverGetVersion(&driver)) != cudaSuccess) driver = 0;
  std::string text = describe_runtime(status, "cudaGetDeviceCount");
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (status == cudaErrorInsufficientDriver && driver == 0) {
    return "there is no NVIDIA driver for CUDA " + cuda_version(CUDART_VERSION) + ": " + text + "; " + driver_remedy();
  }
  if (status == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is too old: it offers CUDA " + cuda_version(driver) + ", this plugin needs CUDA " +
           cuda_version(CUDART_VERSION / 1000 * 1000) + " (it was built with " + cuda_version(CUDART_VERSION) +
           "): " + text + "; " + driver_remedy();
  }
  if (status == cudaErrorNoDevice && visible != nullptr) {
    text += pg::format("; CUDA_VISIBLE_DEVICES is \"%s\"", visible);
  }
  return text;
}

std::string name_of(int device) {
  cudaDeviceProp properties;
  if (PG_CUDA_STATUS(cudaGetDeviceProperties(&properties, device)) != cudaSuccess) return "an unknown GPU";
  return properties.name;
}

}  // namespace

std::string cuda_version(int number) { return pg::format("%d.%d", number / 1000, number % 1000 / 10); }

std::string cudnn_version(long number) {
  return pg::format("%ld.%ld.%ld", number / 10000, number / 100 % 100, number % 100);
}

std::string cudnn_defect(long built, long found, long built_cudart, long cudart) {
  // Within a major version cuDNN keeps what older ones offered.
  if (found / 10000 != built / 10000 || found / 100 < built / 100) {
    return "cuDNN " + cudnn_version(found) + " is installed, this plugin was built with cuDNN " + cudnn_version(built) +
           ": install cuDNN " + pg::format("%ld.%ld", built / 10000, built / 100 % 100) +
           " or a newer one of the same major version for CUDA " + std::to_string(built_cudart / 1000);
  }
  if (cudart / 1000 != built_cudart / 1000) {
    return "cuDNN " + cudnn_version(found) + " is one for CUDA " + cuda_version(static_cast<int>(cudart)) +
           ", this plugin was built with CUDA " + cuda_version(static_cast<int>(built_cudart)) + ": install cuDNN " +
           cudnn_version(built) + " for CUDA " + std::to_string(built_cudart / 1000);
  }
  return "";
}

std::vector<int> usable_devices(std::string& reason) {
  int count = 0;
  cudaError_t status = PG_CUDA_STATUS(cudaGetDeviceCount(&count));
  if (status != cudaSuccess) {
    reason = driver_defect(status);
    return {};
  }
  reason = cudnn_defect(CUDNN_VERSION, static_cast<long>(cudnnGetVersion()), CUDART_VERSION,
                        static_cast<long>(cudnnGetCudartVersion()));
  if (!reason.empty()) return {};
  std::vector<int> usable;
  for (int device = 0; device < count && usable.size() < kMaxDevices; device++) {
    int major = 0, minor = 0;
    PG_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    PG_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    if (major * 10 + minor >= PERIGEE_CUDA_OLDEST) {
      usable.push_back(device);
      continue;
    }
    std::string text =
        pg::format("%s has compute capability %d.%d, this plugin was built for %d.%d and newer",
                   name_of(device).c_str(), major, minor, PERIGEE_CUDA_OLDEST / 10, PERIGEE_CUDA_OLDEST % 10);
    pg::log(PG_LOG_INFO, "cuda: not used: " + text);
    reason += (reason.empty() ? "" : "; ") + text;
  }
  if (!usable.empty()) reason.clear();
  if (usable.empty() && reason.empty()) reason = "CUDA counts 0 devices";
  return usable;
}

}  // namespace cuda
