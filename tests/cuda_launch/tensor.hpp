// SPDX-License-Identifier: Apache-2.0
// A tensor that is only described.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "perigee/plugin.hpp"

using List = std::vector<int64_t>;

struct Tensor {
  List shape, stride;
  pg_tensor raw = {};

  Tensor(List shape_, List stride_, uint32_t dtype = PG_F32) : shape(std::move(shape_)), stride(std::move(stride_)) {
    raw.size = sizeof raw;
    raw.dtype_code = static_cast<uint16_t>(dtype >> 16);
    raw.dtype_bits = static_cast<uint16_t>(dtype);
    raw.rank = static_cast<uint32_t>(shape.size());
    point();
  }
  Tensor(const Tensor& other) : shape(other.shape), stride(other.stride), raw(other.raw) { point(); }
  Tensor& operator=(const Tensor&) = delete;
  const pg_tensor& operator*() const { return raw; }

 private:
  void point() { raw.shape = shape.data(), raw.stride = stride.data(); }
};

inline List dense(const List& shape) {
  List stride(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    stride[i] = step;
    step *= shape[i];
  }
  return stride;
}
