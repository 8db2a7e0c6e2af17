// SPDX-License-Identifier: Apache-2.0
// An index tensor of any integer dtype and any strides as a row of int64, and its bounds check.
#pragma once

#include <optional>

#include "perigee/kernels/out_of_range.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {

class IndexValues {
 public:
  IndexValues() = default;
  explicit IndexValues(const pg_tensor& index);
  // Bytes of workspace it needs: none where the tensor already is a row of int64.
  uint64_t workspace() const { return direct_ ? 0 : static_cast<uint64_t>(nest_.count) * 8; }
  int64_t count() const { return nest_.count; }
  // The values in row-major order; `scratch` has workspace() bytes.
  const int64_t* read(const void* data, void* scratch) const;
  // Fails where a value is not in [0, size): "gather: index 12 at position [4] is out of range for axis 2; expected 0
  // to 9", and is not `skip`. Any number can be a value, so none of them stands for "nothing is skipped".
  void check(const int64_t* values, int64_t size, const char* op, pg::IndexName name,
             std::optional<int64_t> skip = {}) const;

 private:
  pg::Nest<1> nest_;
  Storage storage_ = sI64;
  bool direct_ = false;
  uint32_t rank_ = 0;
  int64_t shape_[PG_MAX_RANK] = {};
};

inline bool is_index(const pg_tensor& t) {
  Storage s = storage_of(t);
  return s >= sI64 && s <= sU8;
}

}  // namespace cpu
