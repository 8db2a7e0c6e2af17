// SPDX-License-Identifier: Apache-2.0
// perigee/capture.hpp: how kernels are written that plans can hold (capture.h): as pg::Kernel, with two methods more.
//
//   struct Scale : pg::CapturedKernel {
//     ...
//     uint64_t runtime(const pg_launch& launch, void* block) override {   // what its work reads: here the number
//     itself
//       float k = static_cast<float>(factor(launch));
//       if (block != nullptr) std::memcpy(block, &k, sizeof k);
//       return sizeof k;
//     }
//     void launch_captured(const pg_launch& launch, pg_address block) override { ... }
//   };
//
// The plugin answers iface(PG_IFACE_CAPTURE) with &pg::capture_table. Kernels of other classes are launched one by one.
#pragma once

#include "perigee/capture.h"
#include "perigee/kernel.hpp"

namespace pg {

class CapturedKernel : public Kernel {
 public:
  // Bytes that a captured launch reads; written to `block` unless that is NULL, when it may refuse (fail_support).
  virtual uint64_t runtime(const pg_launch& launch, void* block) = 0;
  virtual void launch_captured(const pg_launch& launch, pg_address block) = 0;
};

namespace detail {

inline CapturedKernel& captured_kernel(void* kernel) {
  auto* found = dynamic_cast<CapturedKernel*>(static_cast<Kernel*>(kernel));
  if (found == nullptr) fail_support("it cannot be captured");
  return *found;
}

inline int32_t capture_measure(void*, uint32_t index, void* kernel, const pg_launch* launch, uint64_t* bytes,
                               pg_error* error) noexcept {
  return guard(error, kernel_entries()[index].info.op,
               [&] { *bytes = captured_kernel(kernel).runtime(*launch, nullptr); });
}
inline int32_t capture_launch(void*, uint32_t index, void* kernel, const pg_launch* launch, pg_address block,
                              pg_error* error) noexcept {
  return guard(error, kernel_entries()[index].info.op,
               [&] { captured_kernel(kernel).launch_captured(*launch, block); });
}
inline int32_t capture_write(void*, uint32_t index, void* kernel, const pg_launch* launch, void* block,
                             pg_error* error) noexcept {
  return guard(error, kernel_entries()[index].info.op, [&] { captured_kernel(kernel).runtime(*launch, block); });
}

}  // namespace detail

inline constexpr pg_capture capture_table = {PG_SIZE(pg_capture, write), 0, detail::capture_measure,
                                             detail::capture_launch, detail::capture_write};

}  // namespace pg
