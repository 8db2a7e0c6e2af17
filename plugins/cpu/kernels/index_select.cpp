// SPDX-License-Identifier: Apache-2.0
// Whole slices by index along one axis, and the sum of slices back: index_select, embedding (axis 0 of its weight, any
// shape of index), and their gradients.
#include <algorithm>
#include <vector>

#include "copy.hpp"
#include "dense_reader.hpp"
#include "index_values.hpp"

namespace cpu {
namespace {

int64_t product(const int64_t* shape, uint32_t begin, uint32_t end) {
  int64_t count = 1;
  for (uint32_t i = begin; i < end; i++) count *= shape[i];
  return count;
}

struct IndexSelect final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || !pg::is_contiguous(call.out(0))) refuse(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
  }
  IndexSelect(const pg::KernelCall& call, pg::Plan& plan) : index_(call.in(1)), op_(call.raw->op->name) {
    const pg_tensor& x = call.in(0);
    uint32_t axis = call.is("embedding") ? 0 : static_cast<uint32_t>(call.axis("axis", x.rank));
    name_ = pg::index_name(op_, axis, call.is("embedding") ? 0 : call.attr<int64_t>("shown"));
    bytes_ = kStorageBytes[storage_of(x)];
    size_ = x.rank == 0 ? 1 : x.shape[axis];
    step_ = x.rank == 0 ? 0 : x.stride[axis];
    int64_t stride[1][PG_MAX_RANK], inner_stride[1][PG_MAX_RANK];
    for (uint32_t i = 0; i < axis; i++) stride[0][i] = x.stride[i];
    for (uint32_t i = axis + 1; i < x.rank; i++) inner_stride[0][i - axis - 1] = x.stride[i];
    before_ = pg::make_nest<1>(axis, x.shape, stride, false);
    inner_ = pg::make_nest<1>(x.rank == 0 ? 0 : x.rank - axis - 1, x.shape + axis + 1, inner_stride, false);
    plan.workspace = index_.workspace();
  }

  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 1), pg::host_pointer(launch.workspace));
    index_.check(index, size_, op_, name_);
    const char* x = pg::input<const char>(launch, 0);
    char* out = pg::output<char>(launch, 0);
    int64_t n = index_.count(), inner = inner_.count, slices = before_.count * n;
    if (slices * inner == 0) return;
    auto piece = [&](int64_t begin, int64_t end) {
      if (inner == 1) return select_elements(x, index, out, begin, end);
      if (inner_.linear(0) && select_small(x, index, out, begin, end)) return;
      for (int64_t i = begin; i < end; i++) {
        const char* from = x + (before_.offset(0, i / n) + index[i % n] * step_) * bytes_;
        char* to = out + i * inner * bytes_;
        if (inner_.linear(0))
          std::memcpy(to, from, static_cast<size_t>(inner * bytes_));
        else
          gather(from, bytes_, inner_.rank, inner_.shape, inner_.stride[0], 0, inner, to);
      }
    };
    if (slices * inner <= kGrain) return piece(0, slices);
    pg::parallel_for(slices, std::max<int64_t>(1, kGrain / inner), piece);
  }

 private:
  void select_elements(const char* x, const int64_t* index, char* out, int64_t begin, int64_t end) const {
    visit_bytes(bytes_, [&](auto zero) { select_slices<sizeof(zero)>(x, index, out, begin, end); });
  }
  // Pixels and the like, moved by a load and a store of their size; false: they are of another.
  bool select_small(const char* x, const int64_t* index, char* out, int64_t begin, int64_t end) const {
    switch (inner_.count * bytes_) {
      case 2: return select_slices<2>(x, index, out, begin, end), true;
      case 3: return select_slices<3>(x, index, out, begin, end), true;
      case 4: return select_slices<4>(x, index, out, begin, end), true;
      case 8: return select_slices<8>(x, index, out, begin, end), true;
      case 12: return select_slices<12>(x, index, out, begin, end), true;
      case 16: return select_slices<16>(x, index, out, begin, end), true;
      default: return false;
    }
  }
  template <size_t kBytes>
  void select_slices(const char* x, const int64_t* index, char* out, int64_t begin, int64_t end) const {
    const int64_t n = index_.count(), step = step_ * bytes_;
    for (int64_t i = begin; i < end;) {
      const char* from = x + before_.offset(0, i / n) * bytes_;
      const int64_t stop = std::min(end, (i / n + 1) * n), first = i / n * n;
      for (; i < stop; i++) std::memcpy(out + i * static_cast<int64_t>(kBytes), from + index[i - first] * step, kBytes);
    }
  }

  IndexValues index_;
  const char* op_;
  pg::IndexName name_;
  int bytes_;
  int64_t size_, step_;
  pg::Nest<1> before_, inner_;
};
PG_KERNEL("index_select", IndexSelect);
PG_KERNEL("embedding", IndexSelect);

// dx[b, index[i], a] += dy[b, i, a]. Each slice of dx is summed by one thread, in the order of the index.
struct IndexSelectGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || !pg::is_contiguous(call.out(0))) refuse(call);
    if (storage_of(call.in(0)) != storage_of(call.out(0)) || storage_of(call.out(0)) == sBool) refuse(call);
  }
  IndexSelectGrad(const pg::KernelCall& call, pg::Plan& plan)
      : index_(call.in(1)), op_(call.raw->op->name), storage_(storage_of(call.out(0))) {
    const pg_tensor& out = call.out(0);
    bool embedding = call.is("embedding_grad");
    uint32_t axis = embedding ? 0 : static_cast<uint32_t>(call.axis("axis", out.rank));
    name_ = pg::index_name(op_, axis);
    if (embedding) skip_ = call.attr<int64_t>("padding_idx");
    compute_ = kComputeOf[storage_];
    size_ = out.rank == 0 ? 1 : out.shape[axis];
    before_ = product(out.shape, 0, axis);
    inner_ = out.rank == 0 ? 1 : product(out.shape, axis + 1, out.rank);
    dy_ = DenseReader(call.in(0), kStorageOf[compute_]);
    own_sums_ = storage_ != kStorageOf[compute_];
    index_bytes_ = (index_.workspace() + 63) / 64 * 64;
    plan.workspace = index_bytes_ + (own_sums_ ? static_cast<uint64_t>(before_ * size_ * inner_) * 8 : 0);
  }

  void launch(const pg_launch& launch) override {
    char* scratch = pg::host_pointer<char>(launch.workspace);
    const int64_t* index = index_.read(pg::input(launch, 1), scratch);
    index_.check(index, size_, op_, name_);
    int64_t count = before_ * size_ * inner_;
    if (count == 0) return;
    int width = kStorageBytes[kStorageOf[compute_]];
    char* out = pg::output<char>(launch, 0);
    char* sums = own_sums_ ? scratch + index_bytes_ : out;
    std::memset(sums, 0, static_cast<size_t>(count * width));
    const void* dy = pg::input(launch, 0);
    // The slices of dx are dealt out to the threads, each of which looks for its own in the index.
    auto piece = [&](int64_t begin, int64_t end) { add_slices(dy, index, sums, begin, end); };
    if (dy_.count() <= kGrain)
      piece(0, before_ * size_);
    else
      pg::parallel_for(before_ * size_, (before_ * size_ + pg::thread_count() - 1) / pg::thread_count(), piece);
    if (own_sums_) convert(kStorageOf[compute_], storage_, sums, out, count);
  }

 private:
  void add_slices(const void* dy, const int64_t* index, char* sums, int64_t begin, int64_t end) const {
    int64_t n = index_.count();
    int width = kStorageBytes[kStorageOf[compute_]];
    BinaryFn add = simd->binary[pAdd][compute_];
    std::vector<char> buffer(static_cast<size_t>(inner_) * 8);
    for (int64_t b = begin / size_; b * size_ < end; b++) {
      for (int64_t i = 0; i < n; i++) {
        int64_t slice = b * size_ + index[i];
        if (index[i] == skip_ || slice < begin || slice >= end) continue;
        char* to = sums + slice * inner_ * width;
        add(to, dy_.read(dy, (b * n + i) * inner_, inner_, buffer.data()), to, inner_);
      }
    }
  }

  IndexValues index_;
  const char* op_;
  pg::IndexName name_;
  Storage storage_;
  Compute compute_;
  int64_t size_, before_, inner_, skip_ = -1;
  uint64_t index_bytes_;
  bool own_sums_;
  DenseReader dy_;
};
PG_KERNEL("index_select_grad", IndexSelectGrad);
PG_KERNEL("embedding_grad", IndexSelectGrad);

}  // namespace
}  // namespace cpu
