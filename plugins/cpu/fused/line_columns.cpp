// SPDX-License-Identifier: Apache-2.0
// Columns: threads share them out in strips; as many rows of a strip as Reduction adds up at once go through all
// stages.
#include <algorithm>

#include "../block_loop.hpp"
#include "../reduction.hpp"
#include "line_run.hpp"

namespace cpu {

class LineRegion::Columns : public Folds {
 public:
  Columns(const LineRegion& region, const Shared& shared)
      : Folds(region, shared), cut_(r_.lines_, is_small() ? 1 : pg::thread_count()) {}

  void run() {
    const int64_t strips = (r_.lines_ + cut_.width - 1) / cut_.width;
    auto piece = [&](int64_t begin, int64_t end) { this->strips(begin, end); };
    is_small() ? piece(0, strips) : pg::parallel_for(strips, 1, piece);
    make_numbers();
    for (const Copy& copy : r_.late_)
      std::memcpy(pg::host_pointer<char>(shared_.launch.output[copy.output]), numbers(copy.value),
                  static_cast<size_t>(r_.lines_ * r_.values_[copy.value].bytes));
  }

 private:
  // Columns [first, first + width), of rows [top, top + rows).
  struct Part {
    int64_t first, width, top, rows;
  };

  bool is_small() const { return r_.lines_ * r_.length_ <= kGrain; }

  void strips(int64_t begin, int64_t end) {
    const auto folds = static_cast<int64_t>(folds_.size());
    RegionBytes room(cut_.rows * cut_.width * r_.full_bytes_ + folds * cut_.width * 16 + 64 + Programs::room(r_));
    char* near = room.take(cut_.rows * cut_.width * r_.full_bytes_);
    std::vector<Reduction::Columns> columns(folds_.size());
    for (Reduction::Columns& c : columns) {
      c.acc = room.take(cut_.width * 8);
      c.total = reinterpret_cast<double*>(room.take(cut_.width * 8));
    }
    Programs programs(r_, shared_, room);
    for (int64_t strip = begin; strip < end; strip++) {
      for (Reduction::Columns& c : columns) c.rows = 0;
      Part part{strip * cut_.width, std::min(cut_.width, r_.lines_ - strip * cut_.width), 0, 0};
      for (; part.top < r_.length_; part.top += cut_.rows) {
        part.rows = std::min(cut_.rows, r_.length_ - part.top);
        for (size_t i = 0, f = 0; i < r_.stages_.size(); i++) {
          if (r_.stages_[i].lines != nullptr)
            fold(r_.stages_[i], part, near, &columns[f++]);
          else if (!r_.stages_[i].of_numbers)
            run_stage(programs, i, part, near);
        }
      }
      for (size_t f = 0; f < folds_.size(); f++) finish(r_.stages_[folds_[f]], part, columns[f]);
    }
    simd->stream_fence();
  }

  // Where all of a value would begin, whose element `first` is the one behind `held` others in the room.
  char* base_of(uint32_t v, char* near, int64_t first, int64_t held) const {
    return base(v, near, cut_.rows * cut_.width, first - held);
  }

  void run_stage(Programs& programs, size_t index, const Part& part, char* near) {
    const Stage& stage = r_.stages_[index];
    const bool whole = part.width == r_.lines_;  // rows follow each other
    const int64_t runs = whole ? 1 : part.rows, n = whole ? part.rows * part.width : part.width;
    for (int64_t row = 0; row < runs; row++) {
      const int64_t first = (part.top + row) * r_.lines_ + part.first;
      programs.run(index, stage, first, first + n,
                   [&](uint32_t v) { return base_of(v, near, first, row * part.width); });
    }
  }

  void fold(const Stage& stage, const Part& part, char* near, Reduction::Columns* columns) const {
    const uint32_t v = stage.inputs[0];
    const int64_t first = part.top * r_.lines_ + part.first;
    const int64_t step = r_.values_[v].kind == Value::kBuffer ? part.width : r_.lines_;
    stage.lines->reduction()->fold_columns(base_of(v, near, first, 0) + first * element_bytes(v), step, part.rows,
                                           part.width, columns);
  }

  void finish(const Stage& stage, const Part& part, const Reduction::Columns& columns) const {
    const uint32_t v = stage.outputs[0];
    if (v == PG_VALUE_NONE) return;
    stage.lines->reduction()->put_columns(numbers(v) + part.first * r_.values_[v].bytes, 1, part.width, columns);
  }

  Reduction::ColumnCut cut_;
};

void LineRegion::run_columns(const Shared& shared) const { Columns(*this, shared).run(); }

}  // namespace cpu
