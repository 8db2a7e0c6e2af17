// SPDX-License-Identifier: Apache-2.0
// Runs a dense loop over strided operands of any dtype, in blocks: operands that are not dense in the loop's type are
// gathered and converted into a block buffer, results converted and scattered back. A dense operand costs nothing
// extra.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {

// Elements [p, p + n) of a nest's operand, to or from dense memory. `stride` is the operand's.
void gather(const void* base, int bytes, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n,
            void* target);
void scatter(void* base, int bytes, int rank, const int64_t* shape, const int64_t* stride, int64_t p, int64_t n,
             const void* source);

struct LoopOperand {
  const pg_tensor* tensor;  // NULL: one number of type `type`
  Storage type;             // what the loop wants
};

// Operand 0 is the output, whose shape the others broadcast to.
template <int N>
class BlockLoop {
 public:
  BlockLoop() = default;
  explicit BlockLoop(const LoopOperand (&operands)[N], bool reorder = true) {
    const pg_tensor& out = *operands[0].tensor;
    int64_t stride[N][PG_MAX_RANK] = {};
    for (int k = 0; k < N; k++) {
      if (operands[k].tensor != nullptr) pg::broadcast_strides(*operands[k].tensor, out.rank, stride[k]);
      type_[k] = operands[k].type;
      stored_[k] = operands[k].tensor != nullptr ? storage_of(*operands[k].tensor) : type_[k];
    }
    nest_ = pg::make_nest<N>(out.rank, out.shape, stride, reorder);
    rows_ = nest_.inner() >= 256;
    plain_ = true;
    for (int k = 0; k < N; k++) {
      linear_[k] = nest_.in_order(k) && (operands[k].tensor != nullptr || nest_.count <= 1);
      constant_[k] = k > 0 && nest_.constant(k);
      plain_ = plain_ && linear_[k] && stored_[k] == type_[k];
    }
    large_ = linear_[0] && stored_[0] == type_[0] && nest_.count * kStorageBytes[stored_[0]] >= kStreamBytes;
  }

  // Elements that a thread gets at least, where the body is not arithmetic of float32.
  void set_grain(int64_t grain) { grain_ = grain; }

  int64_t count() const { return nest_.count; }
  const pg::Nest<N>& nest() const { return nest_; }

  // body(pointers, n): pointers[0] is where the block's results go, the others point to dense inputs.
  template <class Body>
  void run(void* const (&base)[N], const Body& body) const {
    run(base, body, nullptr);
  }
  // `past` does the same but writes past the caches: taken for large dense outputs.
  template <class Body, class Past>
  void run(void* const (&base)[N], const Body& body, const Past& past) const {
    if (nest_.count == 0) return;
    if (plain_ && nest_.count <= kBlock) return body(base, nest_.count);
    if (nest_.count <= grain_) return run_range(base, 0, nest_.count, body);
    bool stream = large_;
    for (int k = 1; k < N; k++) stream = stream && base[k] != base[0];  // in place: the lines are in the cache anyway
    auto piece = [&, this](int64_t begin, int64_t end) {
      if (!stream) return run_range(base, begin, end, body);
      if constexpr (std::is_same_v<Past, std::nullptr_t>)
        run_buffered(base, begin, end, body);
      else
        run_range(base, begin, end, past);
      simd->stream_fence();
    };
    pg::parallel_for(nest_.count, grain_, piece);
  }

  // Only looks at elements [begin, end) of operands 1 and up, on this thread: body(pointers, n); pointers[0] is unset.
  template <class Body>
  void visit(void* const (&base)[N], int64_t begin, int64_t end, const Body& body) const {
    alignas(64) char buffer[N][kBlock * 8];
    bool filled[N] = {};
    void* pointer[N] = {};
    for (int64_t p = begin, n = 0; p < end; p += n) {
      n = length(p, end, plain_ ? kBlock * 16 : kBlock);
      for (int k = 1; k < N; k++) pointer[k] = load(k, base[k], p, n, buffer[k], &filled[k]);
      body(pointer, n);
    }
  }

  // Only looks at operand 1: body(dense block, n).
  template <class Body>
  void read(void* base, const Body& body) const {
    auto piece = [this, base, &body](int64_t begin, int64_t end) {
      alignas(64) char buffer[kBlock * 8];
      bool filled = false;
      for (int64_t p = begin, n = 0; p < end; p += n) {
        n = end - p < kBlock ? end - p : kBlock;
        if (rows_ && nest_.rank > 1) n = std::min(n, nest_.inner() - p % nest_.inner());
        body(load(1, base, p, n, buffer, &filled), n);
      }
    };
    if (nest_.count <= kGrain) return piece(0, nest_.count);
    pg::parallel_for(nest_.count, kGrain, piece);
  }

 private:
  template <class Body>
  __attribute__((noinline)) void run_range(void* const (&base)[N], int64_t begin, int64_t end, const Body& body) const {
    alignas(64) char buffer[N][kBlock * 8];
    bool filled[N] = {};
    int64_t step = plain_ ? kBlock * 16 : kBlock;
    void* pointer[N];
    for (int64_t p = begin, n = 0; p < end; p += n) {
      n = length(p, end, step);
      for (int k = 1; k < N; k++) pointer[k] = load(k, base[k], p, n, buffer[k], &filled[k]);
      void* direct = direct_address(0, base[0], p);
      pointer[0] = direct != nullptr ? direct : buffer[0];
      body(pointer, n);
      if (direct == nullptr) store(base[0], p, n, buffer[0]);
    }
  }

  // A body that writes through the caches, into a buffer that is then copied past them.
  template <class Body>
  __attribute__((noinline)) void run_buffered(void* const (&base)[N], int64_t begin, int64_t end,
                                              const Body& body) const {
    alignas(64) char buffer[N][kBlock * 8];
    bool filled[N] = {};
    void* pointer[N];
    int64_t bytes = kStorageBytes[stored_[0]];
    for (int64_t p = begin, n = 0; p < end; p += n) {
      n = length(p, end, kBlock / 4);  // short, so that reading and writing memory overlap
      for (int k = 1; k < N; k++) pointer[k] = load(k, base[k], p, n, buffer[k], &filled[k]);
      pointer[0] = buffer[0];
      body(pointer, n);
      simd->stream_copy(static_cast<char*>(base[0]) + p * bytes, buffer[0], n * bytes);
    }
  }

  // Of the block that begins at p.
  int64_t length(int64_t p, int64_t end, int64_t step) const {
    int64_t n = end - p < step ? end - p : step;
    return rows_ && nest_.rank > 1 ? std::min(n, nest_.inner() - p % nest_.inner()) : n;
  }

  // Where block p lies, if it can be used as it is.
  void* direct_address(int k, void* base, int64_t p) const {
    if (stored_[k] != type_[k]) return nullptr;
    char* start = static_cast<char*>(base);
    if (linear_[k]) return start + p * kStorageBytes[stored_[k]];
    if (rows_ && nest_.inner_stride(k) == 1) return start + nest_.offset(k, p) * kStorageBytes[stored_[k]];
    return nullptr;
  }

  void* load(int k, void* base, int64_t p, int64_t n, char* buffer, bool* filled) const {
    if (constant_[k]) {
      if (!*filled) {
        alignas(8) char value[8];
        convert(stored_[k], type_[k], base, value, 1);
        fill_elements(buffer, value, kStorageBytes[type_[k]], kBlock < nest_.count ? kBlock : nest_.count);
        *filled = true;
      }
      return buffer;
    }
    if (void* direct = direct_address(k, base, p)) return direct;
    int bytes = kStorageBytes[stored_[k]];
    if (linear_[k]) {
      convert(stored_[k], type_[k], static_cast<char*>(base) + p * bytes, buffer, n);
    } else if (stored_[k] == type_[k]) {
      gather(base, bytes, nest_.rank, nest_.shape, nest_.stride[k], p, n, buffer);
    } else {
      alignas(64) char raw[kBlock * 8];
      gather(base, bytes, nest_.rank, nest_.shape, nest_.stride[k], p, n, raw);
      convert(stored_[k], type_[k], raw, buffer, n);
    }
    return buffer;
  }

  void store(void* base, int64_t p, int64_t n, const char* buffer) const {
    int bytes = kStorageBytes[stored_[0]];
    char* start = static_cast<char*>(base);
    if (linear_[0]) {
      convert(type_[0], stored_[0], buffer, start + p * bytes, n);
    } else if (stored_[0] == type_[0]) {
      scatter(base, bytes, nest_.rank, nest_.shape, nest_.stride[0], p, n, buffer);
    } else {
      alignas(64) char raw[kBlock * 8];
      convert(type_[0], stored_[0], buffer, raw, n);
      scatter(base, bytes, nest_.rank, nest_.shape, nest_.stride[0], p, n, raw);
    }
  }

  pg::Nest<N> nest_;
  Storage type_[N] = {}, stored_[N] = {};
  bool linear_[N] = {}, constant_[N] = {};
  bool rows_ = false;   // the innermost rows are long: blocks do not cross them
  bool plain_ = false;  // all operands are dense and of the loop's types
  bool large_ = false;
  int64_t grain_ = kGrain;
};

}  // namespace cpu
