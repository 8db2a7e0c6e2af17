// SPDX-License-Identifier: Apache-2.0
// Lines in pieces: a chunk of one is what one accumulator takes, as in Reduction.
#include <algorithm>

#include "../block_loop.hpp"
#include "../reduction.hpp"
#include "line_run.hpp"

namespace cpu {

namespace {

constexpr int64_t kFoldedAtOnce = 4 * kBlock;

}  // namespace

class LineRegion::Pieces : public Folds {
 public:
  Pieces(const LineRegion& region, const Shared& shared) : Folds(region, shared) {
    chunks_ = (r_.length_ + Reduction::kChunk - 1) / Reduction::kChunk;
    partial_.resize(static_cast<size_t>(r_.lines_ * chunks_) * folds_.size());
  }

  void run() {
    const int64_t work = r_.lines_ * chunks_;
    auto piece = [&](int64_t begin, int64_t end) { chunks(begin, end); };
    r_.lines_* r_.length_ <= kGrain ? piece(0, work) : pg::parallel_for(work, 1, piece);
    for (size_t f = 0; f < folds_.size(); f++) finish(f);
    make_numbers();
  }

 private:
  void chunks(int64_t begin, int64_t end) {
    RegionBytes room(kFoldedAtOnce * r_.full_bytes_ + 64 + Programs::room(r_));
    char* near = room.take(kFoldedAtOnce * r_.full_bytes_);
    Programs programs(r_, shared_, room);
    for (int64_t work = begin; work < end; work++) {
      const int64_t line = work / chunks_, start = work % chunks_ * Reduction::kChunk;
      const int64_t stop = std::min(start + Reduction::kChunk, r_.length_);
      for (int64_t p = start; p < stop; p += kFoldedAtOnce) {
        const int64_t n = std::min(kFoldedAtOnce, stop - p), first = line * r_.length_ + p;
        for (size_t i = 0, f = 0; i < r_.stages_.size(); i++) {
          const Stage& stage = r_.stages_[i];
          if (stage.lines != nullptr) {
            const int64_t bytes = element_bytes(stage.inputs[0]);
            const char* x = base(stage.inputs[0], near, kFoldedAtOnce, first) + first * bytes;
            for (int64_t q = 0; q < n; q += kBlock)
              stage.lines->reduction()->fold(x + q * bytes, std::min(kBlock, n - q), p + q, &accumulator(f, work));
            f++;
          } else if (!stage.of_numbers) {
            programs.run(i, stage, first, first + n, [&](uint32_t v) { return base(v, near, kFoldedAtOnce, first); });
          }
        }
      }
    }
    simd->stream_fence();
  }

  Acc& accumulator(size_t fold, int64_t work) { return partial_[static_cast<size_t>(work) * folds_.size() + fold]; }

  void finish(size_t fold) {
    const Stage& stage = r_.stages_[folds_[fold]];
    const uint32_t v = stage.outputs[0];
    if (v == PG_VALUE_NONE) return;
    const Reduction& reduction = *stage.lines->reduction();
    for (int64_t line = 0; line < r_.lines_; line++) {
      Acc total = accumulator(fold, line * chunks_);
      for (int64_t c = 1; c < chunks_; c++) reduction.merge(&total, accumulator(fold, line * chunks_ + c));
      reduction.put(numbers(v) + line * r_.values_[v].bytes, total);
    }
  }

  int64_t chunks_;
  std::vector<Acc> partial_;
};

void LineRegion::run_pieces(const Shared& shared) const { Pieces(*this, shared).run(); }

}  // namespace cpu
