// SPDX-License-Identifier: Apache-2.0
// What is said where there is no device: both versions, and what to do.
#include "probe.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "perigee/plugin.hpp"
#include "standin.hpp"

using Catch::Matchers::Contains;

namespace {

void quiet_log(void*, int32_t, const char*) {}

std::vector<int> usable(std::string& reason) {
  static pg_host host{};
  host.log = quiet_log;
  pg::host = &host;
  reason.clear();
  return cuda::usable_devices(reason);
}

}  // namespace

TEST_CASE("no driver, an old one, and no device each have their reason") {
  standin::reset();
  std::string reason;
  standin::set_driver(standin::Driver::kAbsent);
  CHECK(usable(reason).empty());
  CHECK_THAT(reason, Contains("no NVIDIA driver") && Contains("cudaErrorInsufficientDriver") &&
                         Contains("install an NVIDIA driver of version"));
  standin::set_driver(standin::Driver::kOld);
  CHECK(usable(reason).empty());
  CHECK_THAT(reason, Contains("too old") && Contains("offers CUDA 12.2") && Contains("needs CUDA 13.0"));
  standin::set_driver(standin::Driver::kNoDevice);
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  CHECK(usable(reason).empty());
  CHECK_THAT(reason, Contains("cudaErrorNoDevice") && Contains("CUDA_VISIBLE_DEVICES is \"7\""));
  unsetenv("CUDA_VISIBLE_DEVICES");
  standin::reset();
}

TEST_CASE("devices that the kernels do not run on are left out, and are the reason when no other is there") {
  standin::reset();
  standin::set_devices(3);
  standin::set_capability(0, 8, 6);
  standin::set_capability(1, 12, 0);
  standin::set_capability(2, 7, 5);
  std::string reason;
  CHECK(usable(reason) == std::vector<int>{1});
  CHECK(reason.empty());
  standin::set_devices(1);
  CHECK(usable(reason).empty());
  CHECK_THAT(reason, Contains("has compute capability 8.6, this plugin was built for 9.0 and newer"));
  standin::reset();
}

TEST_CASE("versions read as people write them") {
  CHECK(cuda::cuda_version(13000) == "13.0");
  CHECK(cuda::cuda_version(12080) == "12.8");
  CHECK(cuda::cudnn_version(91900) == "9.19.0");
}

TEST_CASE("another cuDNN than the plugin was built with runs when it offers no less") {
  CHECK(cuda::cudnn_defect(91900, 91900, 13000, 13000).empty());
  CHECK(cuda::cudnn_defect(91900, 92001, 13000, 13010).empty());
  CHECK(cuda::cudnn_defect(91901, 91900, 13000, 13000).empty());  // patch levels do not count
  CHECK_THAT(cuda::cudnn_defect(91900, 91000, 13000, 13000), Contains("cuDNN 9.10.0 is installed") &&
                                                                 Contains("built with cuDNN 9.19.0") &&
                                                                 Contains("install cuDNN 9.19"));
  CHECK_THAT(cuda::cudnn_defect(91900, 100000, 13000, 13000), Contains("cuDNN 10.0.0 is installed"));
  CHECK_THAT(cuda::cudnn_defect(91900, 91900, 13000, 12090),
             Contains("is one for CUDA 12.9") && Contains("built with CUDA 13.0"));
}
