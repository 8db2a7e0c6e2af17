// SPDX-License-Identifier: Apache-2.0
// Who captures what the thread launches (core/src/compile). NULL in `ambient()` on every other path.
#pragma once

#include "perigee/plugin.h"

namespace perigee {

struct Region;
struct RegionKernel;
struct Signature;

class CaptureLog {
 public:
  // The number, within what is captured, of a piece of work.
  virtual uint64_t sequence(const char* what, const char* origin) = 0;
  // Launches a kernel, which is all there but for where it finds its run-time attributes.
  virtual void launch(Signature& s, const pg_launch& launch) = 0;
  virtual void launch(Region& region, RegionKernel& kernel, const pg_launch& launch) = 0;
  // The workspace of a region's kernel, which the plan keeps.
  virtual pg_address workspace(uint64_t bytes) = 0;

 protected:
  ~CaptureLog() = default;
};

}  // namespace perigee
