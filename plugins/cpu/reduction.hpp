// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes. The order of additions depends on shapes and strides only, never on threads.
#pragma once

#include "block_loop.hpp"

namespace cpu {

// What becomes of an accumulator at the end.
enum class Finish : uint8_t { value, mean, truth, position, variance, deviation, logsumexp, root };

class Reduction {
 public:
  // Bit i of `axes`: x's axis i is reduced. The output has x's remaining axes in order, with or without ones in
  // between.
  Reduction(ReduceOp op, Finish finish, const pg_tensor& x, const pg_tensor& out, uint32_t axes, double correction = 0);
  void run(const void* x, void* out) const;

  // ---- for who computes what is reduced, line by line (lines.hpp): x and out dense, the axes reduced x's last ones
  // ----

  static constexpr int64_t kChunk = 65536;  // elements of one output that are folded into one accumulator
  int64_t length() const { return reduced_.count; }
  // Outputs [begin, end); a line is one chunk at most.
  void run_lines(const char* x, char* out, int64_t begin, int64_t end) const;
  // Takes n elements of a line, from `position` on: a chunk's in order, kBlock of them at a time from its beginning.
  void fold(const char* block, int64_t n, int64_t position, Acc* acc) const;
  // Chunks are merged in their order.
  void merge(Acc* into, const Acc& other) const;
  void put(char* out, const Acc& acc) const;

  // ---- the same column by column: the axes reduced x's first ones ----

  static constexpr int64_t kTile = 64;        // threads part at multiples of so many columns
  static constexpr int64_t kRowsAtOnce = 64;  // rows that are added up in the compute type before going into double
  static constexpr int64_t kRowsOfStep = 4;   // of these, that are added to each other first
  // What has been folded of some columns.
  struct Columns {
    char* acc;      // in the compute type
    double* total;  // of sums
    int64_t rows = 0;
    bool broken = false;  // every fold goes into double by itself
  };
  // Strips of so many columns, of which so many rows are taken at a time: what stays in the caches.
  struct ColumnCut {
    ColumnCut(int64_t columns, int64_t threads);
    int64_t width, rows = kRowsOfStep;
  };
  bool in_columns() const { return in_columns_; }
  // Takes the next n rows of `width` columns, `step` elements from one to the next: not across a multiple of
  // kRowsAtOnce, and but for the last ones a multiple of kRowsOfStep.
  void fold_columns(const char* rows, int64_t step, int64_t n, int64_t width, Columns* columns) const;
  // All rows have been taken.
  void put_columns(char* out, int64_t step, int64_t width, const Columns& columns) const;

 private:
  bool columns_pay() const;
  bool are_short() const;
  void run_rows(const char* x, char* out) const;
  void run_columns(const char* x, char* out) const;
  template <class T>
  void run_short(const char* x, char* out) const;
  template <class T>
  void short_stretches(const char* x, char* out, int64_t begin, int64_t end) const;
  template <class T>
  void fold_as(const char* rows, int64_t step, int64_t n, int64_t width, Columns* columns) const;
  template <class T>
  void add_up(int64_t width, int64_t c, const Columns& columns) const;
  void column_strip(const char* x, char* out, int64_t first, int64_t width, int64_t rows, char* room) const;
  void reduce_range(const char* x, int64_t begin, int64_t end, Acc* acc) const;

  ReduceOp op_;
  Finish finish_;
  double correction_;
  Storage from_, to_;
  Compute compute_;
  ReduceFn block_;
  ColumnFn column_;
  bool widens_ = false;  // column_ takes elements as they lie
  pg::Nest<2> kept_;     // output, x
  pg::Nest<1> reduced_;  // x
  bool in_columns_ = false, short_ = false;
};

}  // namespace cpu
