// SPDX-License-Identifier: Apache-2.0
// Walks over the lines of tensors along one axis, for operators that work on whole lines.
#pragma once

#include <algorithm>
#include <vector>

#include "block_loop.hpp"

namespace cpu {

// Operand 0 decides the lines (all its dimensions but `axis`); the others have the same ones. An operand whose rank is
// one less has no such axis (targets, losses); NULL: not there.
template <int N>
class AxisRows {
 public:
  AxisRows() = default;
  AxisRows(const pg_tensor* const (&tensors)[N], int64_t axis) {
    const pg_tensor& first = *tensors[0];
    length_ = first.rank == 0 ? 1 : first.shape[axis];
    int64_t shape[PG_MAX_RANK], stride[N][PG_MAX_RANK] = {};
    uint32_t rank = 0;
    for (uint32_t i = 0; i < first.rank; i++) {
      if (i == axis) continue;
      shape[rank] = first.shape[i];
      for (int k = 0; k < N; k++) {
        if (tensors[k] == nullptr) continue;
        bool without = tensors[k]->rank < first.rank;
        stride[k][rank] = tensors[k]->stride[without ? rank : i];
      }
      rank++;
    }
    for (int k = 0; k < N; k++) {
      if (tensors[k] == nullptr) continue;
      storage_[k] = storage_of(*tensors[k]);
      if (tensors[k]->rank == first.rank && first.rank > 0) step_[k] = tensors[k]->stride[axis];
    }
    lines_ = pg::make_nest<N>(rank, shape, stride, false);
  }

  int64_t count() const { return lines_.count; }  // lines
  int64_t length() const { return length_; }      // elements of a line
  int64_t step(int k) const { return step_[k]; }
  Storage storage(int k) const { return storage_[k]; }
  template <class T>
  T* line(int k, T* base, int64_t i) const {
    return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) +
                                static_cast<uintptr_t>(lines_.offset(k, i) * kStorageBytes[storage_[k]]));
  }
  // Whether lines of operand k can be used as they lie.
  bool direct(int k, Storage type) const { return storage_[k] == type && (step_[k] == 1 || length_ <= 1); }

  // Whether operand k is so large a result that its lines are better put together in a buffer, which `store` and
  // `store_turned` then write past the caches. Lines that leave the L2 cache before they are whole gain nothing.
  bool past_caches(int k, Storage type) const {
    constexpr int64_t kLineBytes = int64_t{256} << 10;
    const int64_t bytes = length_ * kStorageBytes[type];
    return !(near_ >> k & 1u) && storage_[k] == type && bytes <= kLineBytes && packed(k) &&
           lines_.count * bytes >= kStreamBytes;
  }
  // Operand k is read soon after it was written.
  void keep_near(int k) { near_ |= 1u << k; }

  // A line in the given type, in `buffer` (length elements) unless it is direct.
  const void* load(int k, const void* line, Storage type, void* buffer) const {
    if (direct(k, type)) return line;
    if (step_[k] == 1) {
      convert(storage_[k], type, line, buffer, length_);
      return buffer;
    }
    int bytes = kStorageBytes[storage_[k]];
    alignas(64) char raw[kBlock * 8];
    for (int64_t p = 0; p < length_; p += kBlock) {
      int64_t n = std::min(kBlock, length_ - p);
      const char* from = static_cast<const char*>(line) + p * step_[k] * bytes;
      gather(from, bytes, 1, &length_, &step_[k], 0, n, raw);
      convert(storage_[k], type, raw, static_cast<char*>(buffer) + p * kStorageBytes[type], n);
    }
    return buffer;
  }
  void store(int k, void* line, Storage type, const void* buffer) const {
    if (past_caches(k, type)) return simd->stream_copy(line, buffer, length_ * kStorageBytes[type]);
    if (step_[k] == 1) return convert(type, storage_[k], buffer, line, length_);
    int bytes = kStorageBytes[storage_[k]];
    alignas(64) char raw[kBlock * 8];
    for (int64_t p = 0; p < length_; p += kBlock) {
      int64_t n = std::min(kBlock, length_ - p);
      convert(type, storage_[k], static_cast<const char*>(buffer) + p * kStorageBytes[type], raw, n);
      scatter(static_cast<char*>(line) + p * step_[k] * bytes, bytes, 1, &length_, &step_[k], 0, n, raw);
    }
  }

  // How many lines from line i on, before `end` and at most `most`, lie side by side in the operands that `which` has
  // bits for: tiles of such lines are best worked on across them, which reads memory in its order. 1: none.
  int64_t beside(uint32_t which, int64_t i, int64_t end, int64_t most) const {
    if (!lie_beside(which)) return 1;
    int64_t inner = lines_.inner();
    return std::min({most, end - i, inner - i % inner});
  }
  // `width` lines side by side as rows of a matrix, one for each element of the axis, `step` elements apart: as they
  // lie, where they are of the type; else in `buffer`, which load_tile fills and store_tile writes back.
  void* tile(int k, void* line, Storage type, int64_t width, void* buffer, int64_t& step) const {
    bool lies = storage_[k] == type;
    step = lies ? step_[k] : width;
    return lies ? line : buffer;
  }
  const void* load_tile(int k, const void* line, Storage type, int64_t width, void* buffer, int64_t& step) const {
    const void* rows = tile(k, const_cast<void*>(line), type, width, buffer, step);
    for (int64_t p = 0; rows == buffer && p < length_; p++)
      convert(storage_[k], type, static_cast<const char*>(line) + p * step_[k] * kStorageBytes[storage_[k]],
              static_cast<char*>(buffer) + p * width * kStorageBytes[type], width);
    return rows;
  }
  void store_tile(int k, void* line, Storage type, int64_t width, const void* buffer) const {
    if (storage_[k] == type) return;
    for (int64_t p = 0; p < length_; p++)
      convert(type, storage_[k], static_cast<const char*>(buffer) + p * width * kStorageBytes[type],
              static_cast<char*>(line) + p * step_[k] * kStorageBytes[storage_[k]], width);
  }

  // Whether the lines are short and many, so that tiles of them, turned, are best worked on across them.
  bool are_short() const { return length_ >= 1 && length_ <= kShortLine && lines_.count >= 4; }
  // `count` lines from line i on, of base, as one dense block of T: as they lie, or copied to `buffer`.
  template <class T>
  const T* load_lines(int k, const void* base, int64_t i, int64_t count, T* buffer) const {
    constexpr Storage type = sizeof(T) == 8 ? sF64 : sF32;
    const void* first = line(k, base, i);
    if (packed(k)) {
      if (storage_[k] == type) return static_cast<const T*>(first);
      convert(storage_[k], type, first, buffer, count * length_);
      return buffer;
    }
    for (int64_t j = 0; j < count; j++) {
      T* to = buffer + j * length_;
      const void* lies = load(k, line(k, base, i + j), type, to);
      if (lies != to) std::copy_n(static_cast<const T*>(lies), length_, to);
    }
    return buffer;
  }
  // Where such a block is to be written, and what is left to do then.
  template <class T>
  T* target_lines(int k, void* base, int64_t i, T* buffer) const {
    constexpr Storage type = sizeof(T) == 8 ? sF64 : sF32;
    return packed(k) && storage_[k] == type ? static_cast<T*>(line(k, base, i)) : buffer;
  }
  template <class T>
  void store_lines(int k, void* base, int64_t i, int64_t count, const T* block) const {
    constexpr Storage type = sizeof(T) == 8 ? sF64 : sF32;
    if (!packed(k)) {
      for (int64_t j = 0; j < count; j++) store(k, line(k, base, i + j), type, block + j * length_);
    } else if (storage_[k] != type) {
      convert(type, storage_[k], block, line(k, base, i), count * length_);
    }
  }
  // The same into a tile of kLines<T> lines side by side, and back; `buffer` has room for one.
  template <class T>
  void load_turned(int k, const void* base, int64_t i, int64_t count, T* buffer, T* tile) const {
    simd->turn_in[sizeof(T) == 8](load_lines(k, base, i, count, buffer), count, length_, tile);
  }
  template <class T>
  void store_turned(int k, void* base, int64_t i, int64_t count, T* buffer, const T* tile) const {
    constexpr bool kWide = sizeof(T) == 8;
    const bool past = past_caches(k, kWide ? sF64 : sF32);
    T* block = past ? buffer : target_lines(k, base, i, buffer);
    simd->turn_out[kWide](tile, count, length_, block);
    if (past)
      simd->stream_copy(line(k, base, i), buffer, count * length_ * static_cast<int64_t>(sizeof(T)));
    else if (block == buffer)
      store_lines(k, base, i, count, block);
  }

  // body(first, last) over the lines, on several threads where there is enough to do.
  template <class Body>
  void each(const Body& body) const {
    if (lines_.count == 0) return;
    if (lines_.count * length_ <= kGrain / 4) return body(0, lines_.count);
    pg::parallel_for(lines_.count, std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(1, length_)),
                     [&](int64_t begin, int64_t end) {
                       body(begin, end);
                       simd->stream_fence();
                     });
  }
  // The same for bodies that ask beside(which, i, last, most): parts begin where tiles do. A line's sums depend on how
  // wide its tile is, which no number of threads may change.
  template <class Body>
  void each_tile(uint32_t which, int64_t most, const Body& body) const {
    if (!lie_beside(which)) return each(body);
    auto tile = [&](int64_t i) { return i == lines_.count ? i : i - i % lines_.inner() % most; };
    each([&](int64_t begin, int64_t end) {
      const int64_t first = tile(begin), last = tile(end);
      if (first < last) body(first, last);
    });
  }

 private:
  bool lie_beside(uint32_t which) const {
    for (int k = 0; k < N; k++) {
      if ((which >> k & 1u) == 0) continue;
      if (step_[k] == 1 || lines_.inner_stride(k) != 1) return false;
    }
    return true;
  }
  // The lines lie one behind the other without gaps.
  bool packed(int k) const {
    if (step_[k] != 1 && length_ > 1) return false;
    return lines_.count <= 1 || (lines_.rank == 1 && lines_.stride[k][0] == length_);
  }

  pg::Nest<N> lines_;
  int64_t length_ = 0, step_[N] = {};
  Storage storage_[N] = {};
  uint32_t near_ = 0;
};

}  // namespace cpu
