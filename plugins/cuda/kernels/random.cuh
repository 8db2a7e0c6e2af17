// SPDX-License-Identifier: Apache-2.0
// Where random operators find their numbers (random.cu, randperm.cu).
#pragma once

#include "../kernel.hpp"
#include "perigee/kernels/philox.hpp"

namespace cuda {

struct Draw {
  uint64_t seed, offset;
};

// The runtime attributes that the host fills in.
class Seed {
 public:
  explicit Seed(const pg::KernelCall& call)
      : seed_(call.runtime<int64_t>("seed")), offset_(call.runtime<int64_t>("offset")) {}
  Draw operator()(const Launch& launch) const {
    return {static_cast<uint64_t>(seed_(launch.raw)), static_cast<uint64_t>(offset_(launch.raw))};
  }

 private:
  pg::Runtime<int64_t> seed_, offset_;
};

}  // namespace cuda
