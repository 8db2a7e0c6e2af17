// SPDX-License-Identifier: Apache-2.0
// unique_rows: the rows' numbers are sorted by their columns, the last one first, each time stable; rows that follow
// each other are compared, and sums of where they differ number the kinds.
#include "../kernel.hpp"
#include "../scan.hpp"
#include "../scratch.hpp"
#include "kernels/order_key.cuh"
#include "kernels/sorted_sum.hpp"

namespace cuda {
namespace {

struct RowTable {
  int64_t count = 0, width = 1, row = 0, column = 0;  // and strides
};

__global__ void __launch_bounds__(kThreads) number_entries(int64_t count, uint32_t* entries) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride)
    entries[i] = static_cast<uint32_t>(i);
}

// Of columns begin to end - 1, as many as a key has room for.
template <class S>
__global__ void __launch_bounds__(kThreads)
    make_column_keys(RowTable rows, int64_t begin, int64_t end, const S* x, const uint32_t* entries, uint64_t* keys) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < rows.count; i += stride) {
    const S* row = x + entries[i] * rows.row;
    uint64_t key = order_key(unpack(row[begin * rows.column]));
    if constexpr (sizeof(Compute<S>) == 4)
      if (end > begin + 1) key = key << 32 | order_key(unpack(row[(begin + 1) * rows.column]));
    keys[i] = key;
  }
}

// sums[i]: whether row i is not what the one before it is. Behind them 0, where the sum of all will stand.
template <class S>
__global__ void __launch_bounds__(kThreads)
    mark_changes(RowTable rows, const S* x, const uint32_t* entries, int64_t* sums) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i <= rows.count; i += stride) {
    bool changes = i == 0 && rows.count > 0;
    if (i > 0 && i < rows.count) {
      const S *own = x + entries[i] * rows.row, *before = x + entries[i - 1] * rows.row;
      for (int64_t j = 0; j < rows.width && !changes; j++)  // NaN equals nothing
        changes = !(unpack(own[j * rows.column]) == unpack(before[j * rows.column]));
    }
    sums[i] = changes;
  }
}

__global__ void __launch_bounds__(kThreads) place_kinds(int64_t count, const int64_t* sums, const uint32_t* entries,
                                                        int64_t* first, int64_t* inverse, int64_t* starts) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    int64_t kind = sums[i + 1] - 1, entry = entries[i];
    inverse[entry] = kind;
    if (sums[i] <= kind) first[kind] = entry, starts[kind] = i;
  }
}

__global__ void __launch_bounds__(kThreads)
    count_kinds(int64_t count, const int64_t* sums, const int64_t* starts, int64_t* counts, int64_t* extents) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x, kinds = sums[count];
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i == 0) extents[0] = extents[2] = kinds, extents[1] = count;
  for (; i < kinds; i += stride) counts[i] = (i + 1 < kinds ? starts[i + 1] : count) - starts[i];
}

class UniqueRows final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    for (uint32_t i = 0; i < call.output_count(); i++)
      if (!pg::is_contiguous(call.out(i))) pg::fail_support("the results must be contiguous");
    if (call.in(0).shape[0] >= INT32_MAX) pg::fail_support("more than 2147483646 rows are not sorted at once");
  }
  UniqueRows(const pg::KernelCall& call, pg::Plan& plan) : dtype_(pg::dtype_of(call.in(0))) {
    const pg_tensor& x = call.in(0);
    rows_.count = x.shape[0], rows_.row = x.stride[0];
    if (x.rank == 2) rows_.width = x.shape[1], rows_.column = x.stride[1];
    sorted_ = rows_.count > 1 && !call.attr<bool>("consecutive");
    auto count = static_cast<uint64_t>(rows_.count);
    use_device(call.raw->device);
    Scratch scratch;
    space_ = SortSpace(sorted_ ? rows_.count : 0);
    if (sorted_)
      space_at_ = scratch.take(space_.bytes());
    else
      entries_at_ = scratch.take(count * sizeof(uint32_t));
    sums_at_ = scratch.take((count + 1) * sizeof(int64_t));
    starts_at_ = scratch.take(count * sizeof(int64_t));
    sum_bytes_ = exclusive_sum_workspace(rows_.count + 1);
    sum_at_ = scratch.take(sum_bytes_);
    plan.workspace = scratch.bytes();
  }

  void run(const Launch& launch) override {
    int64_t count = rows_.count;
    auto* sums = static_cast<int64_t*>(piece(launch.workspace(), sums_at_));
    auto* starts = static_cast<int64_t*>(piece(launch.workspace(), starts_at_));
    with_any(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      const auto* x = launch.in<S>(0);
      uint32_t* entries = order<S>(launch, x);
      launch(grid_for(count + 1), mark_changes<S>, rows_, x, entries, sums);
      exclusive_sum(launch.native(), sums, count + 1, piece(launch.workspace(), sum_at_), sum_bytes_);
      launch(grid_for(count), place_kinds, count, sums, entries, launch.out<int64_t>(0), launch.out<int64_t>(1),
             starts);
      launch(grid_for(std::max<int64_t>(count, 1)), count_kinds, count, sums, starts, launch.out<int64_t>(2),
             launch.raw.extents);
    });
  }

 private:
  // The numbers of the rows in the order in which equal ones follow each other.
  template <class S>
  uint32_t* order(const Launch& launch, const S* x) const {
    if (!sorted_) {
      auto* entries = static_cast<uint32_t*>(piece(launch.workspace(), entries_at_));
      launch(grid_for(rows_.count), number_entries, rows_.count, entries);
      return entries;
    }
    void* workspace = piece(launch.workspace(), space_at_);
    SortPairs rooms = space_.rooms(workspace);
    launch(grid_for(rows_.count), number_entries, rows_.count, rooms.values[0]);
    constexpr int64_t kTogether = sizeof(Compute<S>) == 4 ? 2 : 1;
    constexpr int kBits = sizeof(Compute<S>) * 8;
    for (int64_t end = rows_.width; end > 0; end -= kTogether) {
      int64_t begin = std::max<int64_t>(0, end - kTogether);
      launch(grid_for(rows_.count), make_column_keys<S>, rows_, begin, end, x, rooms.values[0], rooms.keys[0]);
      int bits = kBits * static_cast<int>(end - begin);
      if (space_.sort(launch.native(), workspace, rooms, bits) == 1)
        std::swap(rooms.keys[0], rooms.keys[1]), std::swap(rooms.values[0], rooms.values[1]);
    }
    return rooms.values[0];
  }

  uint32_t dtype_;
  RowTable rows_;
  bool sorted_;
  SortSpace space_;
  uint64_t space_at_ = 0, entries_at_ = 0, sums_at_ = 0, starts_at_ = 0, sum_at_ = 0, sum_bytes_ = 0;
};
PG_KERNEL("unique_rows", UniqueRows);

}  // namespace
}  // namespace cuda
