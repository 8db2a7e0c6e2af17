// SPDX-License-Identifier: Apache-2.0
#include "index_values.hpp"

#include <algorithm>

#include "block_loop.hpp"

namespace cpu {

IndexValues::IndexValues(const pg_tensor& index) : storage_(storage_of(index)), rank_(index.rank) {
  int64_t stride[1][PG_MAX_RANK];
  for (uint32_t i = 0; i < rank_; i++) stride[0][i] = index.stride[i], shape_[i] = index.shape[i];
  nest_ = pg::make_nest<1>(rank_, shape_, stride, false);
  direct_ = storage_ == sI64 && nest_.linear(0);
}

const int64_t* IndexValues::read(const void* data, void* scratch) const {
  if (direct_) return static_cast<const int64_t*>(data);
  alignas(64) char raw[kBlock * 8];
  auto* values = static_cast<int64_t*>(scratch);
  for (int64_t p = 0; p < nest_.count; p += kBlock) {
    int64_t n = std::min(kBlock, nest_.count - p);
    gather(data, kStorageBytes[storage_], nest_.rank, nest_.shape, nest_.stride[0], p, n, raw);
    convert(storage_, sI64, raw, values + p, n);
  }
  return values;
}

void IndexValues::check(const int64_t* values, int64_t size, const char* op, pg::IndexName name,
                        std::optional<int64_t> skip) const {
  auto limit = static_cast<uint64_t>(size);
  int64_t skipped = skip.value_or(0);
  bool skips = skip.has_value();
  // Without branches: the loop is to be vectorised.
  auto is_bad = [&](int64_t v) { return (static_cast<uint64_t>(v) >= limit) & (!skips | (v != skipped)); };
  int64_t bad = 0;
  for (int64_t i = 0; i < nest_.count; i++) bad |= is_bad(values[i]);
  if (bad == 0) return;
  int64_t at = 0;
  while (!is_bad(values[at])) at++;
  pg::fail_argument(op + (": " + pg::out_of_range(name, values[at], pg::place_text(shape_, rank_, at), size)));
}

}  // namespace cpu
