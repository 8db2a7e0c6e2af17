// SPDX-License-Identifier: Apache-2.0
#include "onednn/blocked.hpp"

#include <algorithm>
#include <cstring>

#include "linalg/dense.hpp"
#include "linalg/isa.hpp"
#include "linalg/lanes.hpp"
#include "storage.hpp"

namespace pg::cpu::onednn {
namespace {

constexpr int64_t kStretch = 256;  // positions that are converted at a time
constexpr int64_t kShare = 8192;   // elements that are worth a thread

// 0 for what these copies do not take.
uint32_t dtype_of(DataType type) {
  switch (type) {
    case DataType::f32: return PG_F32;
    case DataType::bf16: return PG_BF16;
    case DataType::f16: return PG_F16;
    default: return 0;
  }
}

// to[p * block + i] = rows[i * step + p] for 8 rows and `count` positions.
template <class T>
PG_INLINE void gather_block(const T* rows, int64_t step, float* to, int64_t block, int64_t count) {
  int64_t p = 0;
  for (; p + kLanes <= count; p += kLanes) {
    Lanes r[kLanes];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) load_lanes(rows + i * step + p, r[i]);
    turn(r);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) store_lanes(r[i], to + (p + i) * block);
  }
  for (; p < count; p++) {
    for (int64_t i = 0; i < kLanes; i++) to[p * block + i] = load<T>(rows[i * step + p]);
  }
}

// The inverse: rows[i * step + p] = from[p * block + i].
template <class T>
PG_INLINE void spread_block(const float* from, int64_t block, T* rows, int64_t step, int64_t count) {
  int64_t p = 0;
  for (; p + kLanes <= count; p += kLanes) {
    Lanes r[kLanes];
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) load_lanes(from + (p + i) * block, r[i]);
    turn(r);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) store_lanes(r[i], rows + i * step + p);
  }
  for (; p < count; p++) {
    for (int64_t i = 0; i < kLanes; i++) rows[i * step + p] = store<T>(from[p * block + i]);
  }
}

// One stretch of 8 rows of another dtype: converted in the cache on the way.
PG_INLINE void copy_converted(::cpu::Storage type, char* rows, int64_t step, float* blocked, int64_t block,
                              int64_t count, bool gathers) {
  alignas(64) float wide[kLanes * kStretch];
  const int64_t bytes = ::cpu::kStorageBytes[type];
  auto each = [&](::cpu::Storage from, ::cpu::Storage to) {
    for (int64_t i = 0; i < kLanes; i++) {
      char* row = rows + i * step * bytes;
      const void* source = gathers ? static_cast<const void*>(row) : wide + i * kStretch;
      ::cpu::convert(from, to, source, gathers ? static_cast<void*>(wide + i * kStretch) : row, count);
    }
  };
  if (gathers) {
    each(type, ::cpu::sF32);
    gather_block(wide, kStretch, blocked, block, count);
  } else {
    spread_block(blocked, block, wide, kStretch, count);
    each(::cpu::sF32, type);
  }
}

bool is_row_major(const Desc& d) { return d == dense(d.dims(), d.data_type()); }

// The number of channels that lie side by side in a layout [n, c / b, ..., b]; 0: another layout.
int64_t channel_block(const Desc& d) {
  Dims dims = d.dims();
  if (d.data_type() != DataType::f32 || dims.size() < 4 || dims.size() > 5) return 0;
  bool images = dims.size() == 4;
  for (int64_t block : {8, 16}) {
    if (dims[1] % block != 0) continue;
    Tag tag = block == 8 ? (images ? Tag::nChw8c : Tag::nCdhw8c) : (images ? Tag::nChw16c : Tag::nCdhw16c);
    if (d == Desc(dims, DataType::f32, tag)) return block;
  }
  return 0;
}

}  // namespace

std::optional<BlockedCopy> BlockedCopy::make(const Desc& from, const Desc& to) {
  BlockedCopy copy;
  int64_t in = channel_block(from), out = channel_block(to);
  if ((in == 0) == (out == 0) || from.dims() != to.dims()) return std::nullopt;
  copy.gathers_ = out != 0;
  const Desc& rows = copy.gathers_ ? from : to;
  copy.rows_dtype_ = dtype_of(rows.data_type());
  if (copy.rows_dtype_ == 0 || !is_row_major(rows)) return std::nullopt;
  Dims dims = from.dims();
  copy.block_ = in + out, copy.blocks_ = dims[0] * dims[1] / copy.block_, copy.plane_ = 1;
  for (size_t i = 2; i < dims.size(); i++) copy.plane_ *= dims[i];
  return copy;
}

void BlockedCopy::run(const void* from, void* to) const {
  const int64_t block = block_, plane = plane_, parts = block / kLanes;
  const bool gathers = gathers_;
  const ::cpu::Storage type = ::cpu::storage_of(rows_dtype_);
  const int64_t bytes = ::cpu::kStorageBytes[type];
  auto* rows = static_cast<char*>(gathers ? const_cast<void*>(from) : to);
  auto* blocked = static_cast<float*>(gathers ? to : const_cast<void*>(from));
  // A part is 8 channels of one image.
  vector_for(
      blocks_ * parts,
      std::max<int64_t>(1, kShare / (plane * kLanes)), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
        for (int64_t part = begin; part < end; part++) {
          char* row = rows + part * kLanes * plane * bytes;
          float* at = blocked + part / parts * block * plane + part % parts * kLanes;
          auto in_registers = [&](auto* plain) __attribute__((always_inline)) {
            gathers ? gather_block(plain, plane, at, block, plane) : spread_block(at, block, plain, plane, plane);
          };
          if (type == ::cpu::sF32) {
            in_registers(reinterpret_cast<float*>(row));
            continue;
          }
          if (type == ::cpu::sBF16) {
            in_registers(reinterpret_cast<BFloat16*>(row));
            continue;
          }
          for (int64_t p = 0; p < plane; p += kStretch) {
            copy_converted(type, row + p * bytes, plane, at + p * block, block, std::min(kStretch, plane - p), gathers);
          }
        }
      });
}

std::optional<DtypeCopy> DtypeCopy::make(const Desc& from, const Desc& to) {
  DtypeCopy copy;
  copy.from_ = dtype_of(from.data_type()), copy.to_ = dtype_of(to.data_type());
  if (copy.from_ == 0 || copy.to_ == 0 || copy.from_ == copy.to_) return std::nullopt;
  auto same = [&](auto&& layout) {
    return from == layout(from.dims(), from.data_type()) && to == layout(from.dims(), to.data_type());
  };
  bool images = from.dims().size() == 4 || from.dims().size() == 5;
  if (!same(dense) && !(images && same(channels_last))) return std::nullopt;
  copy.count_ = 1;
  for (int64_t size : from.dims()) copy.count_ *= size;
  return copy;
}

void DtypeCopy::run(const void* from, void* to) const {
  ::cpu::Storage source = ::cpu::storage_of(from_), target = ::cpu::storage_of(to_);
  parallel_for(count_, ::cpu::kGrain, [=](int64_t begin, int64_t end) {
    ::cpu::convert(source, target, static_cast<const char*>(from) + begin * ::cpu::kStorageBytes[source],
                   static_cast<char*>(to) + begin * ::cpu::kStorageBytes[target], end - begin);
  });
}

Copy::Copy(const Desc& from, const Desc& to) : blocked_(BlockedCopy::make(from, to)) {
  if (blocked_) return;
  if (from.data_type() == to.data_type()) {
    reorder_.emplace(from, to);
    return;
  }
  convert_ = DtypeCopy::make(from, to);
  if (convert_) return;
  // The 16-bit side's layout in float32 lies between.
  widens_ = from.data_type() != DataType::f32;
  const Desc& low = widens_ ? from : to;
  Desc middle = is_row_major(low) ? dense(low.dims(), DataType::f32) : channels_last(low.dims(), DataType::f32);
  convert_ = widens_ ? DtypeCopy::make(from, middle) : DtypeCopy::make(middle, to);
  if (!convert_) throw dnnl::error(dnnl_unimplemented, "no copy between these layouts");
  middle_ = scratch_bytes(middle.get_size());
  widens_ ? reorder_.emplace(middle, to) : reorder_.emplace(from, middle);
}

uint64_t Copy::workspace() const { return middle_ + (reorder_ ? reorder_->workspace() : 0); }

void Copy::run(const void* from, void* to, void* scratch) {
  if (blocked_) return blocked_->run(from, to);
  if (!reorder_) return convert_->run(from, to);
  if (!convert_) return reorder_->run(from, to, scratch);
  void* rest = static_cast<char*>(scratch) + middle_;
  if (widens_) {
    convert_->run(from, scratch);
    reorder_->run(scratch, to, rest);
  } else {
    reorder_->run(from, scratch, rest);
    convert_->run(scratch, to);
  }
}

}  // namespace pg::cpu::onednn
