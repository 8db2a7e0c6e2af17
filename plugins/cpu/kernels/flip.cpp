// SPDX-License-Identifier: Apache-2.0
// flip and roll_axes: copies of x read backwards, and of the parts that change places.
#include <algorithm>
#include <cstring>

#include "copy.hpp"
#include "perigee/kernels/strided.hpp"
#include "storage.hpp"

namespace cpu {
namespace {

// Items of kBytes in reverse order. Items of three are moved as four bytes: what is too much is the next item's place.
template <size_t kBytes>
void turn_items(const char* x, int64_t n, char* y) {
  constexpr size_t kMoved = kBytes == 3 ? 4 : kBytes;
  constexpr auto kStep = static_cast<int64_t>(kBytes);
  const char* from = x + (n - 1) * kStep;
  if constexpr (kMoved != kBytes) {
    if (n > 0) std::memcpy(y, from, kBytes);  // behind it may be the end of memory
    if (n < 2) return;
    from -= kStep, y += kStep, n--;
  }
  for (; n > 1; n--, from -= kStep, y += kStep) std::memcpy(y, from, kMoved);
  if (n == 1) std::memcpy(y, from, kBytes);
}

void check_moved(const pg::KernelCall& call) {
  require_all_dense(call);
  if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
}

struct Flip final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { check_moved(call); }
  Flip(const pg::KernelCall& call, pg::Plan&) {
    const pg_tensor& x = call.in(0);
    auto axes = call.attr<pg_ints>("axes");
    std::copy_n(x.stride, x.rank, stride_);
    find_items(call, axes);
    for (int64_t i = 0; i < axes.count && x.rank > 0; i++) {
      int64_t axis = axes.value[i] < 0 ? axes.value[i] + x.rank : axes.value[i];
      start_ += (x.shape[axis] - 1) * x.stride[axis] * kStorageBytes[storage_of(x)];
      stride_[axis] = -x.stride[axis];
    }
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    if (item_bytes_ > 0) return turn(pg::input<const char>(launch, 0), pg::output<char>(launch, 0));
    pg_tensor x = at_address(*launch.inputs[0], launch.input[0]);
    x.offset += static_cast<uint64_t>(start_);
    x.stride = stride_;
    copy_tensor(at_address(*launch.outputs[0], launch.output[0]), x);
  }

 private:
  // One axis of what is dense, with little behind it: pixels of a picture, samples of a line.
  void find_items(const pg::KernelCall& call, const pg_ints& axes) {
    const pg_tensor& x = call.in(0);
    if (axes.count != 1 || x.rank == 0 || !pg::is_contiguous(x) || !pg::is_contiguous(call.out(0))) return;
    const int64_t axis = axes.value[0] < 0 ? axes.value[0] + x.rank : axes.value[0];
    items_ = x.shape[axis];
    int64_t bytes = kStorageBytes[storage_of(x)];
    for (uint32_t i = 0; i < x.rank; i++) {
      if (i < axis) lines_ *= x.shape[i];
      if (i > axis) bytes *= x.shape[i];
    }
    static constexpr int64_t kKnown[] = {1, 2, 3, 4, 8, 12, 16};
    if (std::find(std::begin(kKnown), std::end(kKnown), bytes) != std::end(kKnown)) item_bytes_ = bytes;
  }
  void turn(const char* x, char* y) const {
    const int64_t line = items_ * item_bytes_;
    if (line == 0) return;
    auto piece = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) turn_line(x + i * line, y + i * line);
    };
    if (lines_ * items_ <= kGrain) return piece(0, lines_);
    pg::parallel_for(lines_, std::max<int64_t>(1, kGrain / items_), piece);
  }
  void turn_line(const char* x, char* y) const {
    switch (item_bytes_) {
      case 1: return turn_items<1>(x, items_, y);
      case 2: return turn_items<2>(x, items_, y);
      case 3: return turn_items<3>(x, items_, y);
      case 4: return turn_items<4>(x, items_, y);
      case 8: return turn_items<8>(x, items_, y);
      case 12: return turn_items<12>(x, items_, y);
      default: return turn_items<16>(x, items_, y);
    }
  }

  int64_t start_ = 0, stride_[PG_MAX_RANK] = {};
  int64_t item_bytes_ = 0, items_ = 0, lines_ = 1;  // 0: by strides
};
PG_KERNEL("flip", Flip);

struct Roll final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { check_moved(call); }
  Roll(const pg::KernelCall& call, pg::Plan&) {
    const pg_tensor& x = call.in(0);
    auto shifts = call.attr<pg_ints>("shifts");
    for (int64_t i = 0; i < shifts.count; i++) {
      int64_t n = x.shape[i];
      if (n > 0) by_[i] = (shifts.value[i] % n + n) % n;
    }
  }
  void launch(const pg_launch& launch) override {
    if (launch.output[0].buffer == 0) return;
    pg_tensor out = at_address(*launch.outputs[0], launch.output[0]),
              x = at_address(*launch.inputs[0], launch.input[0]);
    int64_t shape[PG_MAX_RANK];
    std::copy_n(out.shape, out.rank, shape);
    out.shape = x.shape = shape;
    move(out, x, shape, 0);
  }

 private:
  // Axes from `axis` on; those before it are parts already.
  void move(pg_tensor out, pg_tensor x, int64_t* shape, uint32_t axis) const {
    while (axis < out.rank && by_[axis] == 0) axis++;
    if (axis == out.rank) return copy_tensor(out, x);
    int64_t n = shape[axis], by = by_[axis], bytes = kStorageBytes[storage_of(out)];
    pg_tensor later = out, end = x;
    later.offset += static_cast<uint64_t>(by * out.stride[axis] * bytes);
    end.offset += static_cast<uint64_t>((n - by) * x.stride[axis] * bytes);
    shape[axis] = by;
    move(out, end, shape, axis + 1);
    shape[axis] = n - by;
    move(later, x, shape, axis + 1);
    shape[axis] = n;
  }

  int64_t by_[PG_MAX_RANK] = {};
};
PG_KERNEL("roll_axes", Roll);

}  // namespace
}  // namespace cpu
