// SPDX-License-Identifier: Apache-2.0
// tril and triu: rows of which a part is copied, the rest zero.
#include <algorithm>

#include "block_loop.hpp"

namespace cpu {
namespace {

struct Triangle final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  Triangle(const pg::KernelCall& call, pg::Plan&)
      : lower_(call.is("tril")), diagonal_(call.runtime<int64_t>("diagonal")) {
    const pg_tensor &out = call.out(0), &x = call.in(0);
    bytes_ = kStorageBytes[storage_of(out)];
    height_ = out.shape[out.rank - 2];
    width_ = out.shape[out.rank - 1];
    step_[0] = out.stride[out.rank - 1];
    step_[1] = x.stride[out.rank - 1];
    int64_t stride[2][PG_MAX_RANK];
    std::copy_n(out.stride, out.rank, stride[0]);
    std::copy_n(x.stride, out.rank, stride[1]);
    rows_ = pg::make_nest<2>(out.rank - 1, out.shape, stride, false);
  }

  void launch(const pg_launch& launch) override {
    char* out = pg::output<char>(launch, 0);
    const char* x = pg::input<const char>(launch, 0);
    if (rows_.count == 0 || width_ == 0) return;
    int64_t far = std::max(height_, width_), off = std::clamp(diagonal_(launch), -far, far);
    auto piece = [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        int64_t edge = row % height_ + off;  // the column on the diagonal
        int64_t first = lower_ ? 0 : std::clamp<int64_t>(edge, 0, width_);
        int64_t last = lower_ ? std::clamp<int64_t>(edge + 1, 0, width_) : width_;
        write(out + rows_.offset(0, row) * bytes_, x + rows_.offset(1, row) * bytes_, first, last);
      }
    };
    if (rows_.count * width_ <= kGrain) return piece(0, rows_.count);
    pg::parallel_for(rows_.count, std::max<int64_t>(1, kGrain / width_), piece);
  }

 private:
  // One row: columns first to last of x, zeros around them.
  void write(char* out, const char* x, int64_t first, int64_t last) const {
    if (step_[0] == 1 && step_[1] == 1) {
      std::memset(out, 0, static_cast<size_t>(first * bytes_));
      if (out != x) std::memcpy(out + first * bytes_, x + first * bytes_, static_cast<size_t>((last - first) * bytes_));
      std::memset(out + last * bytes_, 0, static_cast<size_t>((width_ - last) * bytes_));
      return;
    }
    visit_bytes(bytes_, [&](auto zero) {
      using E = decltype(zero);
      auto* to = reinterpret_cast<E*>(out);
      const auto* from = reinterpret_cast<const E*>(x);
      for (int64_t j = 0; j < width_; j++) to[j * step_[0]] = j >= first && j < last ? from[j * step_[1]] : zero;
    });
  }

  bool lower_;
  pg::Runtime<int64_t> diagonal_;
  int64_t bytes_, height_, width_, step_[2];
  pg::Nest<2> rows_;
};
PG_KERNEL("tril", Triangle);
PG_KERNEL("triu", Triangle);

}  // namespace
}  // namespace cpu
