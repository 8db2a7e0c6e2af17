// SPDX-License-Identifier: Apache-2.0
// Descriptions of tensors: dtype, shape and strides, interned, so that equal descriptions are the same object.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/ref.hpp"
#include "perigee/plugin.hpp"

namespace perigee {

struct Meta {
  std::atomic<uint32_t> refs{0};
  uint32_t dtype = 0;
  uint32_t rank = 0;
  bool contiguous = false;  // dense and row-major
  bool dense = false;       // each element has a place of its own, and there are no others: in any order of axes
  bool symbolic = false;    // some dimension is a symbol; strides are unknown
  int64_t numel = 0;        // elements; -1 where symbolic
  int64_t bytes = 0;        // numel * size of an element
  int64_t span = 0;         // bytes from element 0 to behind the last one
  uint64_t hash = 0;
  pg_tensor view{};  // what plugins see; points into this object
  int64_t shape[PG_MAX_RANK] = {};
  int64_t stride[PG_MAX_RANK] = {};

  static constexpr bool interned = true;  // the table owns all of them and drops unused ones when it grows
  static void destroy(Meta*) {}
};

using MetaRef = Ref<Meta>;

// stride NULL: dense, row-major. Throws PG_E_INVALID_ARGUMENT for a rank over PG_MAX_RANK, a dtype that has no name,
// negative sizes, and sizes that overflow int64 in bytes.
MetaRef intern_meta(uint32_t dtype, uint32_t rank, const int64_t* shape, const int64_t* stride = nullptr);
MetaRef dense_meta(const Meta& meta, uint32_t dtype);  // same shape, dense
uint64_t meta_count();                                 // for tests

bool is_dtype(uint32_t dtype);             // that tensors can have
std::string dtype_text(uint32_t dtype);    // "float32", "none", "kind 77 of 7 bits"
std::string dim_text(int64_t dimension);   // "3", or the symbol's expression
std::string shape_text(const Meta& meta);  // "[2, 3]"
bool same_shape(const Meta& a, const Meta& b);

}  // namespace perigee
