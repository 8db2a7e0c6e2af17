// SPDX-License-Identifier: Apache-2.0
// sort, argsort, topk, kthvalue, median, nanmedian, mode: the elements' numbers are sorted by (line, key), where keys
// are whole numbers in the elements' order, and what the operator wants of each line is read off.
#include "../kernel.hpp"
#include "../scan.hpp"
#include "../scratch.hpp"
#include "../walk.hpp"
#include "kernels/order_key.cuh"
#include "kernels/sorted_sum.hpp"

namespace cuda {
namespace {

struct Lines {
  Walk<1> x;      // line by line
  Extent length;  // of a line
  bool narrow, descending;
};

template <class S>
__global__ void __launch_bounds__(kThreads)
    make_keys(const __grid_constant__ Lines lines, const S* x, uint64_t* keys, uint32_t* entries) {
  constexpr uint64_t kAll = sizeof(Compute<S>) == 8 ? ~uint64_t{0} : ~uint32_t{0};
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < lines.x.count; p += stride) {
    uint64_t key = order_key(unpack(x[lines.x.offset(p)]));
    if (lines.descending) key = ~key & kAll;
    if constexpr (sizeof(Compute<S>) == 4) {
      int64_t rest = p;
      key |= static_cast<uint64_t>(lines.length.split(rest, lines.narrow)) << 32;
    }
    keys[p] = key;
    entries[p] = static_cast<uint32_t>(p);
  }
}

// For keys that leave no room for the line: the second pass sorts by it alone, and keeps the order within.
__global__ void __launch_bounds__(kThreads)
    number_lines(const __grid_constant__ Lines lines, const uint32_t* entries, uint64_t* keys) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < lines.x.count; p += stride) {
    int64_t rest = entries[p];
    keys[p] = static_cast<uint64_t>(lines.length.split(rest, lines.narrow));
  }
}

// Lines as they are sorted.
template <class S>
struct SortedLines {
  Lines lines;
  const uint32_t* entries;
  const S* x;
  __device__ __forceinline__ Compute<S> operator()(int64_t line, int64_t rank) const {
    return unpack(x[lines.x.offset(entries[line * lines.length.size + rank])]);
  }
};

// ---- where in a sorted line the one element stands that is wanted: the lower half of a word counts down from the end,
// so that of equal upper halves the first one is the largest ----

PG_HD uint64_t wanted_word(uint64_t upper, int64_t rank) {
  return upper << 32 | (UINT32_MAX - static_cast<uint32_t>(rank));
}
PG_HD int64_t rank_of_word(uint64_t word) { return UINT32_MAX - static_cast<uint32_t>(word); }

// The lower one of the middle, among numbers; NaN comes behind them. `strict`: the first NaN if there is one.
template <class S>
__global__ void __launch_bounds__(kThreads) find_middles(const __grid_constant__ SortedLines<S> sorted, int64_t count,
                                                         bool strict, unsigned long long* wanted) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x, length = sorted.lines.length.size;
  for (int64_t line = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; line < count; line += stride) {
    int64_t numbers = length;
    if constexpr (std::is_floating_point_v<Compute<S>>) {
      for (int64_t first = 0; first < numbers;) {
        int64_t half = first + (numbers - first) / 2;
        Compute<S> value = sorted(line, half);
        if (value != value)
          numbers = half;
        else
          first = half + 1;
      }
    }
    bool none = strict ? numbers < length : numbers == 0;
    wanted[line] = wanted_word(0, none ? numbers : (numbers - 1) / 2);
  }
}

// The end of the longest run of equal elements, of the first such run. Words begin as 0.
template <class S>
__global__ void __launch_bounds__(kThreads)
    find_longest(const __grid_constant__ SortedLines<S> sorted, unsigned long long* wanted) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x, length = sorted.lines.length.size;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < sorted.lines.x.count; p += stride) {
    int64_t rank = p, line = sorted.lines.length.split(rank, sorted.lines.narrow);
    uint64_t key = order_key(sorted(line, rank));
    if (rank + 1 < length && order_key(sorted(line, rank + 1)) == key) continue;
    int64_t first = 0, last = rank;
    while (first < last) {
      int64_t half = first + (last - first) / 2;
      if (order_key(sorted(line, half)) < key)
        first = half + 1;
      else
        last = half;
    }
    uint64_t word = wanted_word(static_cast<uint64_t>(rank - first + 1), rank);
    if (*static_cast<volatile unsigned long long*>(wanted + line) < word) atomicMax(wanted + line, word);
  }
}

// Of each line the elements `first` to `first + each.size`, as they follow in order.
struct Picked {
  Walk<2> out;  // values, indices: line by line
  Extent each;
  int64_t first;
};

// `wanted`, if not NULL: which one of each line.
template <class S>
__global__ void __launch_bounds__(kThreads)
    pick(const __grid_constant__ Lines lines, const __grid_constant__ Picked picked, const uint32_t* entries,
         const unsigned long long* wanted, const S* x, S* values, int64_t* indices) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < picked.out.count; p += stride) {
    int64_t rank = p, line = picked.each.split(rank, picked.out.narrow), start = line * lines.length.size;
    rank = wanted != nullptr ? rank_of_word(wanted[line]) : picked.first + rank;
    int64_t entry = entries[start + rank], at[2];
    picked.out.locate(p, at);
    if (values != nullptr) values[at[0]] = x[lines.x.offset(entry)];
    indices[at[1]] = entry - start;
  }
}

// The axes with `axis` as the last one. An output that lacks it has it with size 1.
struct Turned {
  uint32_t rank = 0;
  int64_t shape[PG_MAX_RANK] = {}, stride[PG_MAX_RANK] = {};
  Turned(const pg_tensor& t, uint32_t full_rank, int64_t axis) {
    bool whole = t.rank == full_rank;
    for (uint32_t i = 0; i < t.rank; i++) {
      if (whole && static_cast<int64_t>(i) == axis) continue;
      shape[rank] = t.shape[i], stride[rank++] = t.stride[i];
    }
    if (full_rank == 0) return;
    shape[rank] = whole ? t.shape[axis] : 1, stride[rank++] = whole ? t.stride[axis] : 0;
  }
};

class Sort final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (pg::element_count(call.in(0)) > int64_t{UINT32_MAX}) {
      pg::fail_support("more than 4294967295 elements are not sorted at once");
    }
  }
  Sort(const pg::KernelCall& call, pg::Plan& plan) : dtype_(pg::dtype_of(call.in(0))) {
    const pg_tensor& x = call.in(0);
    int64_t axis = call.axis("axis", x.rank), length = x.rank == 0 ? 1 : x.shape[axis];
    Turned turned(x, x.rank, axis);
    lines_.x = walk_of(turned.rank, turned.shape, turned.stride);
    lines_.length = Extent(length);
    lines_.narrow = lines_.x.narrow;
    if (call.is("topk"))
      lines_.descending = call.attr<bool>("largest");
    else if (call.is("sort") || call.is("argsort"))
      lines_.descending = call.attr<bool>("descending");
    what_ = call.is("median") ? What::kMedian : call.is("nanmedian") ? What::kNanMedian : What::kPlaces;
    if (call.is("mode")) what_ = What::kMode;
    wide_ = x.dtype_bits == 64;
    has_values_ = !call.is("argsort");
    if (call.is("kthvalue")) picked_.first = call.attr<int64_t>("k") - 1;
    const pg_tensor &first = call.out(0), &indices = call.out(has_values_ ? 1 : 0);
    Turned by_value(first, x.rank, axis), by_index(indices, x.rank, axis);
    int64_t strides[2][PG_MAX_RANK] = {};
    std::copy(by_value.stride, by_value.stride + by_value.rank, strides[0]);
    std::copy(by_index.stride, by_index.stride + by_index.rank, strides[1]);
    picked_.out = Walk<2>(pg::make_nest<2>(by_index.rank, by_index.shape, strides, false));
    picked_.each = Extent(x.rank == 0 ? 1 : by_index.shape[by_index.rank - 1]);
    if (picked_.out.count == 0) return;
    auto count = static_cast<uint64_t>(lines_.x.count);
    use_device(call.raw->device);
    sort_bytes_ = sort_pairs_workspace(lines_.x.count);
    Scratch scratch;
    for (uint64_t& at : keys_at_) at = scratch.take(count * sizeof(uint64_t));
    for (uint64_t& at : entries_at_) at = scratch.take(count * sizeof(uint32_t));
    sort_at_ = scratch.take(sort_bytes_);
    if (what_ != What::kPlaces) wanted_at_ = scratch.take(count / static_cast<uint64_t>(length) * sizeof(uint64_t));
    plan.workspace = scratch.bytes();
  }

  void run(const Launch& launch) override {
    if (picked_.out.count == 0) return;
    SortPairs rooms;
    for (int i = 0; i < 2; i++) {
      rooms.keys[i] = static_cast<uint64_t*>(piece(launch.workspace(), keys_at_[i]));
      rooms.values[i] = static_cast<uint32_t*>(piece(launch.workspace(), entries_at_[i]));
    }
    void* scratch = piece(launch.workspace(), sort_at_);
    int64_t count = lines_.x.count, lines = count / lines_.length.size;
    with_any(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(count), make_keys<S>, lines_, launch.in<S>(0), rooms.keys[0], rooms.values[0]);
      int bits = wide_ ? 64 : 32 + (lines > 1 ? bits_of(lines - 1) : 0);
      int room = sort_pairs(launch.native(), rooms, count, bits, scratch, sort_bytes_);
      if (wide_ && lines > 1) {
        if (room == 1) std::swap(rooms.keys[0], rooms.keys[1]), std::swap(rooms.values[0], rooms.values[1]);
        launch(grid_for(count), number_lines, lines_, rooms.values[0], rooms.keys[0]);
        room = sort_pairs(launch.native(), rooms, count, bits_of(lines - 1), scratch, sort_bytes_);
      }
      const unsigned long long* wanted =
          find_wanted(launch, SortedLines<S>{lines_, rooms.values[room], launch.in<S>(0)});
      S* values = has_values_ ? launch.out<S>(0) : nullptr;
      launch(grid_for(picked_.out.count), pick<S>, lines_, picked_, rooms.values[room], wanted, launch.in<S>(0), values,
             launch.out<int64_t>(has_values_ ? 1 : 0));
    });
  }

 private:
  enum class What { kPlaces, kMedian, kNanMedian, kMode };

  template <class S>
  const unsigned long long* find_wanted(const Launch& launch, const SortedLines<S>& sorted) const {
    if (what_ == What::kPlaces) return nullptr;
    auto* wanted = static_cast<unsigned long long*>(piece(launch.workspace(), wanted_at_));
    int64_t count = lines_.x.count, lines = count / lines_.length.size;
    if (what_ == What::kMode) {
      auto bytes = static_cast<size_t>(lines) * sizeof *wanted;
      PG_CUDA(cudaMemsetAsync(wanted, 0, bytes, launch.native()));
      launch(grid_for(count), find_longest<S>, sorted, wanted);
    } else {
      launch(grid_for(lines), find_middles<S>, sorted, lines, what_ == What::kMedian, wanted);
    }
    return wanted;
  }

  uint32_t dtype_;
  What what_ = What::kPlaces;
  Lines lines_{};
  Picked picked_{};
  bool wide_ = false, has_values_ = true;
  uint64_t keys_at_[2] = {}, entries_at_[2] = {}, sort_at_ = 0, sort_bytes_ = 0, wanted_at_ = 0;
};
PG_KERNEL("sort", Sort);
PG_KERNEL("argsort", Sort);
PG_KERNEL("topk", Sort);
PG_KERNEL("kthvalue", Sort);
PG_KERNEL("median", Sort);
PG_KERNEL("nanmedian", Sort);
PG_KERNEL("mode", Sort);

}  // namespace
}  // namespace cuda
