// SPDX-License-Identifier: Apache-2.0
// Buffers of a net in one block: each where no other lies that lives at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pg::cpu {

class NetMemory {
 public:
  // A buffer that step `now` writes; each step that reads or writes it later says so.
  size_t add(uint64_t bytes, size_t now);
  void use(size_t buffer, size_t now) { buffers_[buffer].last = now; }
  // Large ones first, each at the lowest place that is free for as long as it lives.
  void lay_out();
  uint64_t offset(size_t buffer) const { return buffers_[buffer].offset; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Buffer {
    uint64_t bytes, offset;
    size_t first, last;
  };
  std::vector<Buffer> buffers_;
  uint64_t bytes_ = 0;
};

}  // namespace pg::cpu
