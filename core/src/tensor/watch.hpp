// SPDX-License-Identifier: Apache-2.0
// Who listens while a compiled function runs (core/src/compile): to the operators that are called, and to what
// computing them asks of devices. NULL in `ambient()` on every other path.
#pragma once

#include "tensor/tensor.hpp"

namespace perigee {

struct Signature;

class ItemLog {
 public:
  // An operator is called from outside of any other one. False: call it as if nobody listened.
  virtual bool call(const Op& op, Tensor* const* inputs, uint32_t input_count, const uint32_t* groups,
                    const void* attrs, uint32_t flags, TensorRef* outputs, uint32_t output_count) = 0;

 protected:
  ~ItemLog() = default;
};

class LaunchLog {
 public:
  virtual void allocated(Storage& storage) = 0;
  // Work that has been launched: by a signature, or as a copy of elements.
  virtual void launched(Signature& s, Tensor* const* inputs, uint32_t input_count, Tensor* const* outputs,
                        uint32_t output_count, const void* attrs) = 0;
  virtual void copied(Tensor& target, Tensor& source) = 0;
  virtual void kept(Tensor& x, Tensor& cast) = 0;   // a cast of x is read that was made some time before
  virtual void raised(Tensor& tensor) = 0;          // its storage's version, for what was launched last
  virtual void refuse(const std::string& why) = 0;  // something happened that cannot be launched again

 protected:
  ~LaunchLog() = default;
};

}  // namespace perigee
