// SPDX-License-Identifier: Apache-2.0
#include "onednn/blocked.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "linalg/dense.hpp"
#include "linalg/isa.hpp"
#include "linalg/lanes.hpp"
#include "storage.hpp"

namespace pg::cpu::onednn {
namespace {

constexpr int64_t kStretch = 256;  // positions that are converted at a time
constexpr int64_t kShare = 8192;   // elements that are worth a thread
constexpr int64_t kAhead = 32;     // positions between the one that is read and those that are asked for

// 0 for what these copies do not take.
uint32_t dtype_of(DataType type) {
  switch (type) {
    case DataType::f32: return PG_F32;
    case DataType::bf16: return PG_BF16;
    case DataType::f16: return PG_F16;
    default: return 0;
  }
}

// What has been read from bfloat16, as it was.
template <class Floats>
PG_INLINE void bits_as_read(const Floats& from, typename BitsOf<Floats>::words& to) {
  std::memcpy(&to, &from, sizeof to);
  to = to >> 16;
}
// What goes into blocks of B or comes out of them, there with relu where it is asked for.
template <bool activated, class B, class Floats>
PG_INLINE void store_as(const Floats& from, float* to) {
  store_lanes(activated && from < Floats{} ? Floats{} : from, to);
}
template <bool activated, class B, class Floats>
PG_INLINE void store_as(const Floats& from, BFloat16* to) {
  typename BitsOf<Floats>::words bits;
  if constexpr (std::is_same_v<B, BFloat16>) {
    bits_as_read(from, bits);
  } else {
    round_to_bf16(from, bits);
  }
  if constexpr (activated)
    bits = bits - kBelowZero <= minus_infinity(BFloat16{}) - kBelowZero ? decltype(bits){} : bits;
  store_bf16<Floats>(bits, to);
}

template <bool masked, class Floats, class T>
PG_INLINE void load_where(const T* from, const T* where, Floats& to) {
  load_lanes(from, to);
  if constexpr (!masked) return;
  Floats above;
  load_lanes(where, above);
  to = above > Floats{} ? to : Floats{};
}

// to[p * kBlock + i] = rows[i * step + p] for kBlock rows, 8 or 16, and `count` positions; 0 where `masked` and
// `where`, which lies like rows, is not above 0. What goes into one line of the caches is written at once. `wide`, for
// blocks of 16: by tiles of 16x16 as far as there are such.
template <int64_t kBlock, bool wide, bool masked, class T, class B>
PG_INLINE void gather_block(const T* rows, const T* where, int64_t step, B* to, int64_t count) {
  constexpr int64_t kParts = kBlock / kLanes;
  int64_t p = 0;
  if constexpr (wide) {
    for (; p + kWideLanes <= count; p += kWideLanes) {
      WideLanes r[kWideLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWideLanes; i++) load_where<masked>(rows + i * step + p, where + i * step + p, r[i]);
      turn(r);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWideLanes; i++) store_as<false, B>(r[i], to + (p + i) * kBlock);
    }
  }
  for (; p + kLanes <= count; p += kLanes) {
    Lanes r[kParts][kLanes];
#pragma GCC unroll 2
    for (int64_t part = 0; part < kParts; part++) {
#pragma GCC unroll 8
      for (int64_t i = 0; i < kLanes; i++) {
        const int64_t at = (part * kLanes + i) * step + p;
        load_where<masked>(rows + at, where + at, r[part][i]);
      }
      turn(r[part]);
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < kLanes; i++) {
#pragma GCC unroll 2
      for (int64_t part = 0; part < kParts; part++) {
        store_as<false, B>(r[part][i], to + (p + i) * kBlock + part * kLanes);
      }
    }
  }
  for (; p < count; p++) {
    for (int64_t i = 0; i < kBlock; i++) {
      const int64_t at = i * step + p;
      if constexpr (std::is_same_v<T, B>) {
        to[p * kBlock + i] = masked && !(load<T>(where[at]) > 0) ? B{} : rows[at];
      } else {
        to[p * kBlock + i] = masked && !(load<T>(where[at]) > 0) ? 0 : load<T>(rows[at]);
      }
    }
  }
}
// The inverse: rows[i * step + p] = from[p * kBlock + i], or relu of it.
template <int64_t kBlock, bool wide, bool activated, class T, class B>
PG_INLINE void spread_block(const B* from, T* rows, int64_t step, int64_t count) {
  int64_t p = 0;
  if constexpr (wide) {
    for (; p + kWideLanes <= count; p += kWideLanes) {
      WideLanes r[kWideLanes];
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWideLanes; i++) {
        __builtin_prefetch(from + (p + kAhead + i) * kBlock);
        load_lanes(from + (p + i) * kBlock, r[i]);
      }
      turn(r);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kWideLanes; i++) {
        store_as<activated, B>(r[i], rows + i * step + p);
      }
    }
  }
  for (; p + kLanes <= count; p += kLanes) {
    for (int64_t i = 0; i < kLanes; i++) __builtin_prefetch(from + (p + kAhead + i) * kBlock);
    for (int64_t first = 0; first < kBlock; first += kLanes) {
      Lanes r[kLanes];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kLanes; i++) load_lanes(from + (p + i) * kBlock + first, r[i]);
      turn(r);
#pragma GCC unroll 8
      for (int64_t i = 0; i < kLanes; i++) {
        store_as<activated, B>(r[i], rows + (first + i) * step + p);
      }
    }
  }
  for (; p < count; p++) {
    for (int64_t i = 0; i < kBlock; i++) {
      T x;
      if constexpr (std::is_same_v<T, B>) {
        x = from[p * kBlock + i];
      } else {
        x = store<T>(from[p * kBlock + i]);
      }
      rows[i * step + p] = activated ? relu(x) : x;
    }
  }
}

// Both past the caches, by way of a stretch that stays in the nearest one.
template <int64_t kBlock, bool wide, bool masked, class T, class B>
PG_INLINE void gather_past(const T* rows, const T* where, int64_t step, B* to, int64_t count) {
  alignas(64) B blocked[kBlock * kStretch];
  for (int64_t p = 0; p < count; p += kStretch) {
    const int64_t some = std::min(kStretch, count - p);
    gather_block<kBlock, wide, masked>(rows + p, where + p, step, blocked, some);
    ::cpu::simd->stream_copy(to + p * kBlock, blocked, some * kBlock * static_cast<int64_t>(sizeof(B)));
  }
}
template <int64_t kBlock, bool wide, bool activated, class T, class B>
PG_INLINE void spread_past(const B* from, T* rows, int64_t step, int64_t count) {
  alignas(64) T plain[kBlock * kStretch];
  for (int64_t p = 0; p < count; p += kStretch) {
    const int64_t some = std::min(kStretch, count - p);
    spread_block<kBlock, wide, activated>(from + p * kBlock, plain, kStretch, some);
    for (int64_t i = 0; i < kBlock; i++)
      ::cpu::simd->stream_copy(rows + i * step + p, plain + i * kStretch, some * static_cast<int64_t>(sizeof(T)));
  }
}

// One stretch of a block's rows of float16: converted in the cache on the way.
template <int64_t kBlock, bool activated>
PG_INLINE void copy_converted(::cpu::Storage type, char* rows, int64_t step, float* blocked, int64_t count,
                              bool gathers) {
  alignas(64) float wide[kBlock * kStretch];
  const int64_t bytes = ::cpu::kStorageBytes[type];
  auto each = [&](::cpu::Storage from, ::cpu::Storage to) {
    for (int64_t i = 0; i < kBlock; i++) {
      char* row = rows + i * step * bytes;
      const void* source = gathers ? static_cast<const void*>(row) : wide + i * kStretch;
      ::cpu::convert(from, to, source, gathers ? static_cast<void*>(wide + i * kStretch) : row, count);
    }
  };
  if (gathers) {
    each(type, ::cpu::sF32);
    gather_block<kBlock, false, false>(wide, wide, kStretch, blocked, count);
  } else {
    spread_block<kBlock, false, false>(blocked, wide, kStretch, count);
    each(::cpu::sF32, type);
    for (int64_t i = 0; activated && i < kBlock; i++) {
      auto* row = reinterpret_cast<Half*>(rows) + i * step;
      for (int64_t p = 0; p < count; p++) row[p] = relu(row[p]);
    }
  }
}

bool is_row_major(const Desc& d) { return d == dense(d.dims(), d.data_type()); }

// The number of channels that lie side by side in a layout [n, c / b, ..., b]; 0: another layout.
int64_t channel_block(const Desc& d) {
  Dims dims = d.dims();
  const DataType type = d.data_type();
  if ((type != DataType::f32 && type != DataType::bf16) || dims.size() < 4 || dims.size() > 5) return 0;
  bool images = dims.size() == 4;
  for (int64_t block : {8, 16}) {
    if (dims[1] % block != 0) continue;
    Tag tag = block == 8 ? (images ? Tag::nChw8c : Tag::nCdhw8c) : (images ? Tag::nChw16c : Tag::nCdhw16c);
    if (d == Desc(dims, type, tag)) return block;
  }
  return 0;
}

}  // namespace

std::optional<BlockedCopy> BlockedCopy::make(const Desc& from, const Desc& to, bool relu, bool past) {
  BlockedCopy copy;
  copy.relu_ = relu, copy.past_ = past;
  int64_t in = channel_block(from), out = channel_block(to);
  if ((in == 0) == (out == 0) || from.dims() != to.dims()) return std::nullopt;
  copy.gathers_ = out != 0;
  const Desc& rows = copy.gathers_ ? from : to;
  copy.rows_dtype_ = dtype_of(rows.data_type());
  if (copy.rows_dtype_ == 0 || !is_row_major(rows)) return std::nullopt;
  copy.narrow_ = (copy.gathers_ ? to : from).data_type() == DataType::bf16;
  if (copy.narrow_ && copy.rows_dtype_ != PG_BF16) return std::nullopt;
  Dims dims = from.dims();
  copy.block_ = in + out, copy.blocks_ = dims[0] * dims[1] / copy.block_, copy.plane_ = 1;
  for (size_t i = 2; i < dims.size(); i++) copy.plane_ *= dims[i];
  return copy;
}

void BlockedCopy::run(const void* from, void* to, const void* where) const {
  const auto* above = static_cast<const char*>(where);
  auto* rows = static_cast<char*>(gathers_ ? const_cast<void*>(from) : to);
  void* blocked = gathers_ ? to : const_cast<void*>(from);
  const int64_t bytes = static_cast<int64_t>(narrow_ ? sizeof(BFloat16) : sizeof(float));
  const bool past = past_ || blocks_ * block_ * plane_ * bytes >= ::cpu::kStreamBytes;
  auto run_as = [&](auto block, auto wide, auto* to_blocks) {
    constexpr int64_t kBlock = decltype(block)::value;
    constexpr bool kWide = decltype(wide)::value;
    relu_ || where != nullptr ? run_blocks<kBlock, kWide, true>(rows, above, to_blocks, past)
                              : run_blocks<kBlock, kWide, false>(rows, rows, to_blocks, past);
  };
  auto run = [&](auto block, auto wide) {
    narrow_ ? run_as(block, wide, static_cast<BFloat16*>(blocked)) : run_as(block, wide, static_cast<float*>(blocked));
  };
  using Eight = std::integral_constant<int64_t, 8>;
  using Sixteen = std::integral_constant<int64_t, 16>;
  if (block_ == 8) return run(Eight{}, std::false_type{});
  isa() == Isa::kAvx512 ? run(Sixteen{}, std::true_type{}) : run(Sixteen{}, std::false_type{});
}

// `past`: what is as large is written past the caches. `activated`: with relu out of blocks, masked by `where` into
// them.
template <int64_t kBlock, bool wide, bool activated, class B>
void BlockedCopy::run_blocks(char* rows, const char* where, B* blocked, bool past) const {
  const int64_t plane = plane_;
  const bool gathers = gathers_;
  const ::cpu::Storage type = ::cpu::storage_of(rows_dtype_);
  const int64_t bytes = ::cpu::kStorageBytes[type];
  const auto some_blocks = [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
    for (int64_t i = begin; i < end; i++) {
      char* row = rows + i * kBlock * plane * bytes;
      B* at = blocked + i * kBlock * plane;
      auto in_registers = [&](auto* plain) __attribute__((always_inline)) {
        const auto* above = reinterpret_cast<decltype(plain)>(const_cast<char*>(where + i * kBlock * plane * bytes));
        if (past) {
          gathers ? gather_past<kBlock, wide, activated>(plain, above, plane, at, plane)
                  : spread_past<kBlock, wide, activated>(at, plain, plane, plane);
        } else {
          gathers ? gather_block<kBlock, wide, activated>(plain, above, plane, at, plane)
                  : spread_block<kBlock, wide, activated>(at, plain, plane, plane);
        }
      };
      if constexpr (std::is_same_v<B, BFloat16>) {
        in_registers(reinterpret_cast<BFloat16*>(row));
      } else if (type == ::cpu::sF32) {
        in_registers(reinterpret_cast<float*>(row));
      } else if (type == ::cpu::sBF16) {
        in_registers(reinterpret_cast<BFloat16*>(row));
      } else {
        for (int64_t p = 0; p < plane; p += kStretch) {
          copy_converted<kBlock, activated>(type, row + p * bytes, plane, at + p * kBlock,
                                            std::min(kStretch, plane - p), gathers);
        }
      }
    }
    if (past) ::cpu::simd->stream_fence();
  };
  const int64_t grain = std::max<int64_t>(1, kShare / (plane * kBlock));
  if constexpr (wide) {
    parallel_for(blocks_, grain, [&](int64_t begin, int64_t end) { call_avx512(some_blocks, begin, end); });
  } else {
    vector_for(blocks_, grain, some_blocks);
  }
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

Copy::Copy(const Desc& from, const Desc& to, bool relu, bool past)
    : blocked_(BlockedCopy::make(from, to, relu, past)), relu_(relu) {
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

void Copy::run(const void* from, void* to, void* scratch, const void* where) {
  if (blocked_) return blocked_->run(from, to, where);
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
