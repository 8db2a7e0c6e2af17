// SPDX-License-Identifier: Apache-2.0
// How elementwise kernels walk over their operands, decided on the host and without CUDA: the order and the merged
// dimensions at prepare (Loop), the alignment of the addresses at launch (Loop::walk). elementwise.cuh runs it.
//
// A thread's piece of work is a packet: `width` neighbours in the innermost dimension, read and written with one access
// of up to 16 bytes an operand. One dense dimension begins with a head, up to the output's first aligned element, and
// ends with a tail; of several dimensions the innermost is a multiple of the width. Where neither is so the width is 1.
#pragma once

#include <cstdint>

#include "perigee/kernels/strided.hpp"
#include "perigee/plugin.hpp"
#include "walk.hpp"

namespace cuda::elementwise {

// What lies in memory. sRaw: moved, not looked at.
enum Storage : uint8_t { sF32, sF16, sBF16, sF64, sI64, sI32, sI16, sI8, sU8, sBool, sC64, sC128, sRaw };

inline Storage storage_of(const pg_tensor& t) {
  switch (pg::dtype_of(t)) {
    case PG_F32: return sF32;
    case PG_F16: return sF16;
    case PG_BF16: return sBF16;
    case PG_F64: return sF64;
    case PG_I64: return sI64;
    case PG_I32: return sI32;
    case PG_I16: return sI16;
    case PG_I8: return sI8;
    case PG_U8: return sU8;
    case PG_B8: return sBool;
    case PG_C64: return sC64;
    case PG_C128: return sC128;
    default: pg::fail_support(pg::format("CUDA kernels do not read %s", pg::dtype_name(pg::dtype_of(t))));
  }
}

// How the elements of a packet are reached.
enum Access : uint8_t {
  kNumber,    // there is no tensor: a number stands in
  kSplat,     // all are the same one
  kElements,  // one by one
  kVector     // in one access
};

// A kernel's parameter.
template <int N>
struct Walk {
  char* data[N];
  int64_t stride[N][PG_MAX_RANK];  // in elements; of several dimensions the innermost one's is a packet's
  int64_t shape[PG_MAX_RANK];      // the innermost in packets
  Divider divide[PG_MAX_RANK];     // by shape
  int64_t head, packets, tail;     // elements, packets, elements; a head or tail makes two more items of both
  int64_t items;
  int32_t rank;
  bool wide;  // positions or offsets need 64 bits
  uint8_t bytes[N], storage[N];
  Access access[N];
};

struct LoopOperand {
  const pg_tensor* tensor;  // NULL: a number
  Storage storage;
  uint8_t bytes;
};
inline LoopOperand typed(const pg_tensor& t) {
  return {&t, storage_of(t), static_cast<uint8_t>(pg::dtype_bytes(pg::dtype_of(t)))};
}
inline LoopOperand raw(const pg_tensor& t) {
  return {&t, sRaw, static_cast<uint8_t>(pg::dtype_bytes(pg::dtype_of(t)))};
}
inline LoopOperand number() { return {nullptr, sRaw, 1}; }

// Outputs come first; the others broadcast to the shape of operand 0.
template <int N>
class Loop {
 public:
  Loop() = default;
  // widths: a bit for each width > 1 that the kernel has. in_order: packets begin at multiples of the width in
  // row-major order.
  Loop(const LoopOperand (&operands)[N], uint32_t widths, int outputs = 1, bool in_order = false)
      : in_order_(in_order) {
    const pg_tensor& out = *operands[0].tensor;
    int64_t stride[N][PG_MAX_RANK] = {};
    for (int k = 0; k < N; k++) {
      present_[k] = operands[k].tensor != nullptr;
      if (present_[k]) pg::broadcast_strides(*operands[k].tensor, out.rank, stride[k]);
      walk_.bytes[k] = operands[k].bytes;
      walk_.storage[k] = operands[k].storage;
    }
    nest_ = pg::make_nest<N>(out.rank, out.shape, stride, !in_order);
    for (int width = 8; width > 1 && width_ == 1; width /= 2) {
      if ((widths & static_cast<uint32_t>(width)) != 0 && fits(width, outputs)) width_ = width;
    }
    describe();
  }

  int width() const { return width_; }
  int64_t count() const { return nest_.count; }
  const pg::Nest<N>& nest() const { return nest_; }

  Walk<N> walk(void* const (&data)[N]) const {
    Walk<N> walk = walk_;
    for (int k = 0; k < N; k++) walk.data[k] = static_cast<char*>(data[k]);
    if (nest_.rank <= 1) {
      walk.head = width_ == 1 || in_order_ ? 0 : head(walk);
      walk.packets = (nest_.count - walk.head) / width_;
      walk.tail = nest_.count - walk.head - walk.packets * width_;
      walk.items = walk.packets + (walk.head + walk.tail > 0 ? 2 : 0);
    }
    for (int k = 0; k < N; k++) walk.access[k] = access(walk, k);
    return walk;
  }

 private:
  bool fits(int width, int outputs) const {
    if (nest_.rank == 0 || nest_.count < 2 * width) return false;
    if (nest_.rank > 1 && nest_.inner() % width != 0) return false;
    for (int k = 0; k < N; k++) {
      int64_t step = nest_.inner_stride(k);
      if (!present_[k]) continue;
      if (walk_.bytes[k] * width > 16 || step > 1 || (k < outputs && step != 1)) return false;
    }
    return true;
  }

  void describe() {
    walk_.rank = nest_.rank;
    int last = nest_.rank - 1;
    for (int i = 0; i <= last; i++) {
      int pace = i == last && last > 0 ? width_ : 1;
      walk_.shape[i] = nest_.shape[i] / pace;
      for (int k = 0; k < N; k++) {
        walk_.stride[k][i] = nest_.stride[k][i] * pace;
        if (i < last && nest_.stride[k][i] % width_ != 0) ragged_[k] = true;
      }
    }
    walk_.head = walk_.tail = 0;
    walk_.packets = walk_.items = nest_.count / width_;
    walk_.wide = needs_wide();
    if (walk_.wide || nest_.count == 0) return;
    for (int i = 0; i <= last; i++) walk_.divide[i] = Divider(walk_.shape[i]);
  }

  bool needs_wide() const {
    constexpr int64_t kLimit = INT32_MAX;
    if (nest_.count > kLimit) return true;
    for (int k = 0; k < N; k++) {
      int64_t furthest = 0;
      for (int i = 0; i < nest_.rank; i++) {
        if (nest_.shape[i] == 0) return false;
        if (nest_.stride[k][i] > kLimit) return true;
        furthest += (nest_.shape[i] - 1) * nest_.stride[k][i];
      }
      if (furthest > kLimit) return true;
    }
    return false;
  }

  // Elements before the output's first aligned packet. Sizes of elements and packets are powers of two.
  int64_t head(const Walk<N>& walk) const {
    uint64_t bytes = walk.bytes[0], beyond = address(walk, 0) & (bytes * static_cast<uint64_t>(width_) - 1);
    if (beyond == 0 || (beyond & (bytes - 1)) != 0) return 0;
    auto head = static_cast<int64_t>(static_cast<uint64_t>(width_) - beyond / bytes);
    return head < nest_.count ? head : nest_.count;
  }

  Access access(const Walk<N>& walk, int k) const {
    if (!present_[k]) return kNumber;
    if (width_ == 1) return kVector;
    if (nest_.inner_stride(k) == 0) return kSplat;
    uint64_t bytes = walk.bytes[k], start = address(walk, k) + static_cast<uint64_t>(walk.head) * bytes;
    return ragged_[k] || (start & (bytes * static_cast<uint64_t>(width_) - 1)) != 0 ? kElements : kVector;
  }

  static uint64_t address(const Walk<N>& walk, int k) { return reinterpret_cast<uint64_t>(walk.data[k]); }

  pg::Nest<N> nest_;
  Walk<N> walk_ = {};
  int width_ = 1;
  bool in_order_ = false;
  bool present_[N] = {};
  bool ragged_[N] = {};  // rows do not begin at multiples of the width
};

}  // namespace cuda::elementwise
