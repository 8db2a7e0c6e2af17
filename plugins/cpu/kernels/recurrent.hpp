// SPDX-License-Identifier: Apache-2.0
// Steps of recurrent layers behind their products, of a stretch of a row at a time: what lies between the formulas
// stays in the first cache. The loops are those of the operators that a step is made of: its bits are theirs.
#pragma once

#include <algorithm>

#include "storage.hpp"

namespace cpu {

constexpr int64_t kPiece = 256;

// Loops over dense elements of the type that is computed in.
struct Loops {
  Compute compute;
  void binary(Primitive op, const void* a, const void* b, void* out, int64_t n) const {
    simd->binary[op][compute](a, b, out, n);
  }
  void unary(Primitive op, const void* x, void* out, int64_t n) const { simd->unary[op][compute](x, out, n, nullptr); }
  void slope(Primitive op, const void* y, const void* d, void* out, int64_t n) const {
    simd->slope[op][compute](y, d, out, n, nullptr);
  }
};

// A stretch of each of several columns, in the type that is computed in: where it lies, or a copy of 16-bit floats.
class Stretch {
 public:
  Stretch(Storage stored, Compute compute)
      : stored_(stored), type_(kStorageOf[compute]), copies_(stored != type_), bytes_(kStorageBytes[stored]) {}

  const char* in(const char* data, int64_t at, int64_t n, char* room) const {
    if (data == nullptr) return nullptr;
    const char* from = data + at * bytes_;
    if (!copies_) return from;
    convert(stored_, type_, from, room, n);
    return room;
  }
  char* out(char* data, int64_t at, char* room) const { return copies_ ? room : data + at * bytes_; }
  void done(char* data, int64_t at, int64_t n, const char* room) const {
    if (copies_) convert(type_, stored_, room, data + at * bytes_, n);
  }

 private:
  Storage stored_, type_;
  bool copies_;
  int64_t bytes_;
};

using Room = char[kPiece * sizeof(double)];

// Both ways: rows are shared out to threads, each walked in pieces.
class RecurrentStep : public pg::Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    call.need_dense();
    Storage s = storage_of(call.out(0));
    if (!is_float(s)) refuse(call);
    for (uint32_t i = 0; i < call.input_count(); i++) {
      if (call.has(i) && storage_of(call.in(i)) != s) refuse(call);
    }
  }

 protected:
  // `state`: a tensor of [n, size]; of a row `wide` times that is computed.
  RecurrentStep(const pg_tensor& state, int64_t wide)
      : rows_(state.shape[0]),
        size_(state.shape[1]),
        wide_(wide),
        stored_(storage_of(state)),
        loops_{kComputeOf[stored_]},
        stretch_(stored_, loops_.compute) {}

  template <class Body>
  void each_piece(const Body& body) const {
    if (rows_ == 0 || size_ == 0) return;
    pg::parallel_for(rows_, std::max<int64_t>(1, kGrainCostly / (wide_ * size_)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        for (int64_t j = 0; j < size_; j += kPiece) body(row, j, std::min(kPiece, size_ - j));
      }
    });
  }

  int64_t rows_, size_, wide_;
  Storage stored_;
  Loops loops_;
  Stretch stretch_;
};

}  // namespace cpu
