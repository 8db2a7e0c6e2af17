// SPDX-License-Identifier: Apache-2.0
// Strided tensors into dense, row-major scratch memory and back, converting between 16-bit floats and float32 on the
// way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "linalg/numbers.hpp"
#include "perigee/plugin.hpp"

namespace pg::cpu {

// The bytes of a dense copy, rounded so that the next one in the workspace is aligned.
inline uint64_t scratch_bytes(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Hands out aligned pieces of the host's workspace. Counts bytes at prepare (no base), gives addresses at launch.
class Scratch {
 public:
  explicit Scratch(void* base = nullptr) : base_(reinterpret_cast<uintptr_t>(base)) {
    next_ = base == nullptr ? 0 : (64 - base_ % 64) % 64;
  }
  void* take(uint64_t bytes) {
    void* piece = base_ == 0 ? nullptr : reinterpret_cast<void*>(base_ + next_);
    next_ += scratch_bytes(bytes);
    return piece;
  }
  uint64_t bytes() const { return next_ == 0 ? 0 : next_ + 64; }

 private:
  uintptr_t base_;
  uint64_t next_;
};

template <class From, class To>
inline To convert(From x) {
  if constexpr (std::is_same_v<From, To>) {
    return x;
  } else if constexpr (std::is_same_v<To, BFloat16> || std::is_same_v<To, Half>) {
    return store<To>(static_cast<float>(load<From>(x)));
  } else {
    return static_cast<To>(load<From>(x));
  }
}

// out[i], row-major, from a tensor of `shape` and `stride`.
template <class From, class To>
void gather(uint32_t rank, const int64_t* shape, const int64_t* stride, const From* data, To* out) {
  int64_t inner = rank == 0 ? 1 : shape[rank - 1], step = rank == 0 ? 1 : stride[rank - 1], rows = 1;
  for (uint32_t i = 0; i + 1 < rank; i++) rows *= shape[i];
  if (rows * inner == 0) return;
  parallel_for(rows, std::max<int64_t>(1, 16384 / inner), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      const From* source = data;
      int64_t rest = row;
      for (uint32_t i = rank; i-- > 1; rest /= shape[i - 1]) source += rest % shape[i - 1] * stride[i - 1];
      To* target = out + row * inner;
      if (step == 1) {
        for (int64_t j = 0; j < inner; j++) target[j] = convert<From, To>(source[j]);
      } else {
        for (int64_t j = 0; j < inner; j++) target[j] = convert<From, To>(source[j * step]);
      }
    }
  });
}

// The inverse: a dense array into a strided tensor.
template <class From, class To>
void scatter(uint32_t rank, const int64_t* shape, const int64_t* stride, const From* data, To* out) {
  int64_t inner = rank == 0 ? 1 : shape[rank - 1], step = rank == 0 ? 1 : stride[rank - 1], rows = 1;
  for (uint32_t i = 0; i + 1 < rank; i++) rows *= shape[i];
  if (rows * inner == 0) return;
  parallel_for(rows, std::max<int64_t>(1, 16384 / inner), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) {
      To* target = out;
      int64_t rest = row;
      for (uint32_t i = rank; i-- > 1; rest /= shape[i - 1]) target += rest % shape[i - 1] * stride[i - 1];
      for (int64_t j = 0; j < inner; j++) target[j * step] = convert<From, To>(data[row * inner + j]);
    }
  });
}

// An input that a kernel wants dense: taken as it lies, or copied into the workspace at launch.
class DenseInput {
 public:
  DenseInput() = default;
  explicit DenseInput(const pg_tensor& t)
      : copies_(!is_dense(t)), rank_(t.rank), element_(dtype_bytes(dtype_of(t))), count_(element_count(t)) {
    std::copy_n(t.shape, t.rank, shape_), std::copy_n(t.stride, t.rank, stride_);
  }
  // With data: its dense address. Without: reserves the room.
  const void* get(const void* data, Scratch& scratch) const {
    if (!copies_) return data;
    void* copy = scratch.take(static_cast<uint64_t>(count_ * element_));
    if (data == nullptr) return copy;
    switch (element_) {
      case 1: move<uint8_t>(data, copy); break;
      case 2: move<uint16_t>(data, copy); break;
      case 4: move<uint32_t>(data, copy); break;
      default: move<uint64_t>(data, copy);
    }
    return copy;
  }

 private:
  template <class T>
  void move(const void* data, void* copy) const {
    gather(rank_, shape_, stride_, static_cast<const T*>(data), static_cast<T*>(copy));
  }
  bool copies_ = false;
  uint32_t rank_ = 0;
  int64_t element_ = 0, count_ = 0;
  int64_t shape_[PG_MAX_RANK], stride_[PG_MAX_RANK];
};

}  // namespace pg::cpu
