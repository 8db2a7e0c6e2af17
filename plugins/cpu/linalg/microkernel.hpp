// SPDX-License-Identifier: Apache-2.0
// The innermost loop of the blocked product: a panel of a times a panel of b, with all sums in registers.
#pragma once

#include <cstdint>

namespace pg::cpu {

template <class A>
struct Tile {
  int64_t depth;
  const A *a, *b;  // panels
  A* c;            // rows of c, `step` elements apart, whose columns lie side by side
  int64_t step;
  const A* first;  // a row that is added to every row, or NULL
  bool add;        // c += instead of c =
};

// A microtile of `rows` x `columns`, the widths of the panels. multiply[i] computes its first (i + 1) * rows / 3 rows.
template <class A>
struct Microkernel {
  int64_t rows, columns;
  void (*multiply[3])(const Tile<A>&);
};

// The best one that this processor has. A: float, double, uint32_t, uint64_t.
template <class A>
const Microkernel<A>& microkernel();

// How a block's rows are cut into tiles. Of the smallest of three heights the sums are too few to keep AVX2's
// multipliers busy: a rest of that height gets some of the rows of the tile in front of it.
class RowTiles {
 public:
  RowTiles(int64_t rows, int64_t height)
      : rows_(rows),
        height_(height),
        third_(height / 3),
        count_((rows + height - 1) / height),
        last_((count_ - 1) * height) {
    if (2 * third_ < kBusy && count_ > 1 && rows - last_ <= third_) last_ -= third_;
  }
  int64_t count() const { return count_; }
  int64_t begin(int64_t tile) const { return tile + 1 == count_ ? last_ : tile * height_; }
  int64_t rows(int64_t tile) const { return (tile + 1 == count_ ? rows_ : begin(tile + 1)) - begin(tile); }
  // Whether the microkernel computes just so many rows.
  bool fits(int64_t rows) const { return rows % third_ == 0; }
  // Rows of the tiles that fit.
  int64_t fitting() const { return fits(rows_ - last_) ? rows_ : last_; }

 private:
  static constexpr int64_t kBusy = 8;  // vectors of sums
  int64_t rows_, height_, third_, count_, last_;
};

}  // namespace pg::cpu
