// SPDX-License-Identifier: Apache-2.0
// The own blocked matrix product, of all element types that have one. Operands are packed into panels of the type that
// sums are kept in (float32 of 16-bit floats), so any strides cost about the same and widening costs nothing; what is
// written has been rounded once.
#pragma once

#include <cstdint>

#include "linalg/numbers.hpp"

namespace pg::cpu {

// A matrix in memory: element (i, j) lies at data[i * row + j * column].
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
};

// What else becomes of a b before it is written.
template <class T>
struct Finish {
  const T* bias = nullptr;  // of a column
  int64_t bias_stride = 1;  // in elements
  bool add = false;         // c += a b
  // On the sums, in their type; not with `add`.
  void (*activation)(const void* x, void* out, int64_t n, const void* params) = nullptr;
  bool backwards = false;  // a packed b is walked from its end, which is no other sum
};

// b's columns from elsewhere than a matrix in memory: fill() writes `depth` numbers, from p on, of `columns` columns
// from `column` on, zeros behind b's last: number q of column j at panel[q * columns + j]. For sums in float.
struct PanelSource {
  void (*fill)(const void* state, int64_t column, int64_t columns, int64_t p, int64_t depth, float* panel);
  const void* state;
};

// c[m, n] = a[m, k] b[k, n], finished. m, n and k are positive. Every element is summed in the same order whatever the
// number of threads.
template <class T>
class Gemm {
 public:
  using Sum = Accumulator<T>;

  Gemm(int64_t m, int64_t n, int64_t k, int64_t threads);
  uint64_t workspace() const;

  // All of b in panels, for products by the same b.
  uint64_t packed_bytes() const;
  void pack(Matrix<const T> b, void* target) const;

  // `packed`: b as pack() wrote it, or NULL.
  void run(Matrix<const T> a, Matrix<const T> b, const void* packed, Matrix<T> c, const Finish<T>& finish,
           void* workspace) const;
  // By a b whose panels are made as they are needed.
  void run(Matrix<const T> a, const PanelSource& b, Matrix<T> c, const Finish<T>& finish, void* workspace) const;

 private:
  struct Operands;
  struct Room;

  void choose_grid(int64_t threads);
  void choose_blocks();
  uint64_t room_bytes() const;
  int64_t panel_elements() const;  // of one panel of b
  void pack_rows(Matrix<const T> a, int64_t top, int64_t rows, int64_t p, int64_t depth, Sum* target) const;
  void pack_columns(const Operands& o, int64_t begin, int64_t end, int64_t p, int64_t depth, Sum* target,
                    int64_t step) const;
  void pack_panels(const Operands& o, int64_t begin, int64_t end, Sum* target) const;
  void run(Operands& o, void* workspace) const;
  struct Part {
    int64_t top, bottom, begin, end;  // rows; panels of b
  };
  Part part_of(int64_t index, int64_t first, int64_t last) const;  // a thread's of the panels `first` to `last`
  void run_slabs(const Operands& o, Sum* room) const;
  void slice(const Operands& o, int64_t index) const;
  void block(const Operands& o, const Room& room, int64_t top, int64_t rows, int64_t begin, int64_t end) const;
  void multiply_panel(const Operands& o, const Sum* a, const Sum* b, Sum* sums, int64_t top, int64_t rows,
                      int64_t panel, int64_t p) const;
  void finish_panel(const Operands& o, Sum* sums, int64_t top, int64_t rows, int64_t panel) const;
  bool writes_through(const Operands& o, int64_t panel) const;

  int64_t m_, n_, k_;
  int64_t rows_, columns_;              // of a microtile
  int64_t row_panels_, column_panels_;  // of a, of b
  int64_t down_ = 1, across_ = 1;       // c is cut into this many parts, one for a thread
  int64_t depth_, block_rows_;          // of a block of a: it stays in the L2 cache
  int64_t chunk_;                       // panels of b whose sums are kept between blocks of depth
  int64_t pass_;                        // panels of b that are packed before they are used
  bool slabs_;                          // b is packed depth by depth
  bool lazy_;                           // instead every thread packs its panels of b one by one, as it comes to them
};

}  // namespace pg::cpu
