// SPDX-License-Identifier: Apache-2.0
// pad_axes and its gradient. A row (the last axis) is what is added in front, a run of x, and what is added behind;
// which row of x it shows, if any, is told by the other axes.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "block_loop.hpp"
#include "copy_block.hpp"

namespace cpu {
namespace {

enum PadMode { kPadConstant, kPadReflect, kPadReplicate, kPadCircular };

// Positions first to first + length of the padded axis are positions from to from + length of x.
struct PaddedAxis {
  int64_t size = 1, whole = 1, before = 0, first = 0, length = 1, from = 0;  // size: padded; whole: of x
  int64_t stride = 0;                                                        // of x

  bool padded() const { return size != whole || before != 0; }
  // The position of x that the padded position i shows; -1: none.
  int64_t source(int mode, int64_t i) const {
    int64_t p = i - first;
    if (p >= 0 && p < length) return from + p;
    switch (mode) {
      case kPadReflect: return whole - 1 - std::abs(whole - 1 - std::abs(i - before));
      case kPadReplicate: return std::clamp<int64_t>(i - before, 0, whole - 1);
      case kPadCircular: return from + (p % length + length) % length;
      default: return -1;
    }
  }
};

// The axes of x, neighbours that nothing is added to as one; at least one axis.
struct Padding {
  Padding(const pg::KernelCall& call, const pg_tensor& x) : mode(call.attr<int32_t>("mode")) {
    auto before = call.attr<pg_ints>("before"), behind = call.attr<pg_ints>("behind");
    for (uint32_t i = 0; i < x.rank; i++) {
      int64_t a = i < before.count ? before.value[i] : 0, b = i < behind.count ? behind.value[i] : 0;
      PaddedAxis axis{x.shape[i] + a + b,       x.shape[i], a, std::max<int64_t>(a, 0), 0,
                      std::max<int64_t>(-a, 0), x.stride[i]};
      axis.length = axis.whole + std::min<int64_t>(a, 0) + std::min<int64_t>(b, 0);
      if (rank > 0 && !axis.padded() && !last().padded() && last().stride == axis.stride * axis.whole) {
        axis.size = axis.whole = axis.length = last().whole * axis.whole;
        rank--;
      }
      axes[rank++] = axis;
    }
    if (rank == 0) axes[rank++] = PaddedAxis();
  }
  const PaddedAxis& last() const { return axes[rank - 1]; }

  int mode, rank = 0;
  PaddedAxis axes[PG_MAX_RANK];
};

// Rows of the padded tensor one after another, over axes begin to the last but one.
class PaddedRows {
 public:
  PaddedRows(const Padding& padding, int begin, int64_t row) : p_(padding), begin_(begin), inner_(p_.rank - 2) {
    for (int a = inner_; a >= begin_; a--) {
      at_[a] = row % p_.axes[a].size;
      row /= p_.axes[a].size;
    }
    find_outer();
  }
  // Elements from the start of x to the row that is shown; -1: none is.
  int64_t start() const {
    if (inner_ < begin_) return 0;
    const int64_t source = outer_ < 0 ? -1 : p_.axes[inner_].source(p_.mode, at_[inner_]);
    return source < 0 ? -1 : outer_ + source * p_.axes[inner_].stride;
  }
  void next() {
    if (inner_ < begin_ || ++at_[inner_] < p_.axes[inner_].size) return;
    at_[inner_] = 0;
    for (int a = inner_ - 1; a >= begin_ && ++at_[a] == p_.axes[a].size; a--) at_[a] = 0;
    find_outer();
  }

 private:
  // What the axes in front of the innermost come to: it changes once in many rows.
  void find_outer() {
    outer_ = 0;
    for (int a = begin_; a < inner_; a++) {
      const int64_t source = p_.axes[a].source(p_.mode, at_[a]);
      if (source < 0) {
        outer_ = -1;
        return;
      }
      outer_ += source * p_.axes[a].stride;
    }
  }

  const Padding& p_;
  int begin_, inner_;
  int64_t at_[PG_MAX_RANK], outer_ = 0;
};

struct Pad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0)) || !pg::is_contiguous(call.out(0))) refuse(call);
  }
  Pad(const pg::KernelCall& call, pg::Plan&)
      : padding_(call, call.in(0)), storage_(storage_of(call.in(0))), value_(call.runtime<double>("value")) {
    count_ = pg::element_count(call.out(0));
    const PaddedAxis& last = padding_.last();
    edges_ = padding_.mode != kPadConstant && last.size - last.length <= kMostEdges;
    for (int64_t i = 0; edges_ && count_ > 0 && i < last.size; i++) {
      if (i == last.first) i += last.length;
      if (i < last.size) edge_.push_back(last.source(padding_.mode, i) * last.stride);
    }
  }
  void launch(const pg_launch& launch) override {
    if (count_ == 0) return;
    alignas(8) char element[8] = {};
    put_number(storage_, value_(launch), element);
    visit_bytes(kStorageBytes[storage_], [&](auto added) {
      using E = decltype(added);
      std::memcpy(&added, element, sizeof added);
      E* out = pg::output<E>(launch, 0);
      const E* x = pg::input<const E>(launch, 0);
      int64_t width = padding_.last().size, rows = count_ / width;
      auto piece = [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
        PaddedRows row(padding_, 0, begin);
        const RowEnds ends = ends_of();
        for (int64_t i = begin; i < end; i++, row.next()) {
          int64_t start = row.start();
          if (start < 0 || x == nullptr)
            std::fill_n(out + i * width, width, added);
          else if (ends.source != nullptr)
            write(out + i * width, x + start, ends);
          else
            write(out + i * width, x + start, added);
        }
      };
      if (count_ <= kGrain) return pg::cpu::call_vector(piece, 0, rows);
      pg::cpu::vector_for(rows, std::max<int64_t>(1, kGrain / width), piece);
    });
  }

 private:
  // A dense row that shows more of itself at its ends: how many in front, in the middle and behind, and the edges'
  // places. In variables of the loop: what it writes might be members.
  struct RowEnds {
    const int64_t* source;  // NULL: rows are of another kind
    int64_t front, length, behind, from;
  };
  RowEnds ends_of() const {
    const PaddedAxis& axis = padding_.last();
    return {edges_ && axis.stride == 1 ? edge_.data() : nullptr, axis.first, axis.length,
            axis.size - axis.first - axis.length, axis.from};
  }
  template <class E>
  PG_INLINE static void write(E* out, const E* x, const RowEnds& row) {
    for (int64_t i = 0; i < row.front; i++) out[i] = x[row.source[i]];
    copy_block(out + row.front, x + row.from, row.length * static_cast<int64_t>(sizeof(E)));
    out += row.front + row.length;
    for (int64_t i = 0; i < row.behind; i++) out[i] = x[row.source[row.front + i]];
  }
  template <class E>
  PG_INLINE void write(E* out, const E* x, E added) const {
    const PaddedAxis& axis = padding_.last();
    const int64_t* source = edge_.data();
    auto edge = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
      if (edges_)
        for (int64_t i = begin; i < end; i++) out[i] = x[*source++];
      else if (padding_.mode == kPadConstant)
        std::fill(out + begin, out + end, added);
      else
        for (int64_t i = begin; i < end; i++) out[i] = x[axis.source(padding_.mode, i) * axis.stride];
    };
    edge(0, axis.first);
    if (axis.stride == 1)
      copy_block(out + axis.first, x + axis.from, axis.length * static_cast<int64_t>(sizeof(E)));
    else
      for (int64_t i = 0; i < axis.length; i++) out[axis.first + i] = x[(axis.from + i) * axis.stride];
    edge(axis.first + axis.length, axis.size);
  }

  static constexpr int64_t kMostEdges = 1024;
  Padding padding_;
  Storage storage_;
  pg::Runtime<double> value_;
  int64_t count_;
  bool edges_ = false;         // whether edge_ has, of the last axis, where each added element comes from
  std::vector<int64_t> edge_;  // elements from the start of a row of x
};
PG_KERNEL("pad_axes", Pad);

// Rows of dy added to rows of dx, in order. Pieces of work share nothing: they are items of the axes in front
// that nothing was added to. Sums of 16-bit floats and narrow integers are made in wider ones.
struct PadGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (!pg::is_contiguous(call.in(0)) || !pg::is_contiguous(call.out(0))) refuse(call);
  }
  PadGrad(const pg::KernelCall& call, pg::Plan&) : padding_(call, call.out(0)), storage_(storage_of(call.in(0))) {
    first_ = padding_.rank > 1 && !padding_.axes[0].padded() ? 1 : 0;
    items_ = first_ == 1 ? padding_.axes[0].size : 1;
    for (int a = first_; a < padding_.rank; a++) {
      flow_ *= padding_.axes[a].size;
      result_ *= padding_.axes[a].whole;
    }
  }
  void launch(const pg_launch& launch) override {
    if (items_ * result_ == 0) return;
    switch (kComputeOf[storage_]) {
      case kF64: return run<double>(launch);
      case kF32: return run<float>(launch);
      case kI64: return run<uint64_t>(launch);
      default: return run<uint32_t>(launch);
    }
  }

 private:
  template <class W>
  void run(const pg_launch& launch) {
    char* dx = pg::output<char>(launch, 0);
    const char* dy = pg::input<const char>(launch, 0);
    int64_t bytes = kStorageBytes[storage_];
    Storage type = kStorageOf[kComputeOf[storage_]];
    auto piece = [=, this](int64_t begin, int64_t end) {
      std::vector<W> wide(type == storage_ ? 0 : static_cast<size_t>(result_));
      for (int64_t i = begin; i < end; i++) {
        char* result = dx + i * result_ * bytes;
        W* sums = type == storage_ ? reinterpret_cast<W*>(result) : wide.data();
        std::fill_n(sums, result_, W(0));
        add(dy + i * flow_ * bytes, type, sums);
        if (type != storage_) convert(type, storage_, sums, result, result_);
      }
    };
    if (items_ * flow_ <= kGrain) return piece(0, items_);
    pg::parallel_for(items_, std::max<int64_t>(1, kGrain / std::max<int64_t>(flow_, 1)), piece);
  }

  template <class W>
  void add(const char* dy, Storage type, W* sums) const {
    const PaddedAxis& axis = padding_.last();
    if (axis.size == 0) return;
    alignas(64) W buffer[kBlock];
    int64_t bytes = kStorageBytes[storage_], rows = flow_ / axis.size;
    PaddedRows row(padding_, first_, 0);
    for (int64_t r = 0; r < rows; r++, row.next()) {
      int64_t start = row.start();
      if (start < 0) continue;
      for (int64_t begin = 0; begin < axis.size; begin += kBlock) {
        int64_t end = std::min(begin + kBlock, axis.size);
        const void* flow = dy + (r * axis.size + begin) * bytes;
        if (type != storage_) convert(storage_, type, flow, buffer, end - begin);
        add_row(type != storage_ ? buffer : static_cast<const W*>(flow), begin, end, sums + start);
      }
    }
  }

  // Elements begin to end of a row of dy.
  template <class W>
  void add_row(const W* flow, int64_t begin, int64_t end, W* sums) const {
    const PaddedAxis& axis = padding_.last();
    int64_t run = std::clamp(axis.first, begin, end), rest = std::clamp(axis.first + axis.length, begin, end);
    auto edge = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; i++) {
        int64_t source = axis.source(padding_.mode, i);
        if (source >= 0) sums[source] += flow[i - begin];
      }
    };
    edge(begin, run);
    for (int64_t i = run; i < rest; i++) sums[axis.from - axis.first + i] += flow[i - begin];
    edge(std::max(run, rest), end);
  }

  Padding padding_;
  Storage storage_;
  int first_;
  int64_t items_, flow_ = 1, result_ = 1;  // flow, result: elements of an item
};
PG_KERNEL("pad_axes_grad", PadGrad);

}  // namespace
}  // namespace cpu
