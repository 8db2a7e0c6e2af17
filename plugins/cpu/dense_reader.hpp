// SPDX-License-Identifier: Apache-2.0
// Reads stretches of a tensor in row-major order as dense elements of a given type.
#pragma once

#include <algorithm>

#include "block_loop.hpp"

namespace cpu {

class DenseReader {
 public:
  DenseReader() = default;
  DenseReader(const pg_tensor& t, Storage type) : type_(type), stored_(storage_of(t)) {
    int64_t stride[1][PG_MAX_RANK];
    for (uint32_t i = 0; i < t.rank; i++) stride[0][i] = t.stride[i];
    nest_ = pg::make_nest<1>(t.rank, t.shape, stride, false);
    direct_ = type == stored_ && nest_.linear(0);
  }
  int64_t count() const { return nest_.count; }
  // Elements [p, p + n). The result is in `buffer` (room for n elements) or the tensor's own memory.
  const void* read(const void* base, int64_t p, int64_t n, void* buffer) const {
    int bytes = kStorageBytes[stored_];
    const char* start = static_cast<const char*>(base);
    if (nest_.linear(0)) {
      if (direct_) return start + p * bytes;
      convert(stored_, type_, start + p * bytes, buffer, n);
      return buffer;
    }
    if (type_ == stored_) {
      gather(base, bytes, nest_.rank, nest_.shape, nest_.stride[0], p, n, buffer);
      return buffer;
    }
    alignas(64) char raw[kBlock * 8];
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t m = std::min(kBlock, n - i);
      gather(base, bytes, nest_.rank, nest_.shape, nest_.stride[0], p + i, m, raw);
      convert(stored_, type_, raw, static_cast<char*>(buffer) + i * kStorageBytes[type_], m);
    }
    return buffer;
  }

 private:
  pg::Nest<1> nest_;
  Storage type_ = sF32, stored_ = sF32;
  bool direct_ = false;
};

}  // namespace cpu
