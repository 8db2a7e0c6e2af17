// SPDX-License-Identifier: Apache-2.0
// gather: y[..., i, ...] = x[..., index[..., i, ...], ...] along an axis; its gradient adds back.
#include <vector>

#include "axis_rows.hpp"
#include "copy.hpp"
#include "index_values.hpp"

namespace cpu {
namespace {

// An axis of a 0-dim tensor is taken as one of size 1.
int64_t size_along(const pg_tensor& t, int64_t axis) { return t.rank == 0 ? 1 : t.shape[axis]; }

struct Gather final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (call.in(0).rank != call.in(1).rank) refuse(call);
  }
  Gather(const pg::KernelCall& call, pg::Plan& plan) : index_(call.in(1)) {
    int64_t axis = axis_ = call.axis("axis", call.in(0).rank);
    size_ = size_along(call.in(0), axis);
    rows_ = AxisRows<2>({&call.out(0), &call.in(0)}, axis);  // lines of the index; x has at least as many
    plan.workspace = index_.workspace();
    // The values of the index lie row-major: its own lines along the axis.
    const pg_tensor& index = call.in(1);
    dense_ = index;
    int64_t next = 1;
    for (uint32_t i = index.rank; i-- > 0; next *= index.shape[i]) shape_[i] = index.shape[i], stride_[i] = next;
    dense_.shape = shape_;
    dense_.stride = stride_;
    dense_.dtype_code = PG_INT;
    dense_.dtype_bits = 64;
    lines_ = AxisRows<1>({&dense_}, axis);
  }

  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 1), pg::host_pointer(launch.workspace));
    index_.check(index, size_, "gather", "index", INT64_MIN, axis_ + 1);
    const void* x = pg::input(launch, 0);
    void* out = pg::output(launch, 0);
    visit_bytes(kStorageBytes[rows_.storage(0)], [&](auto zero) {
      using E = decltype(zero);
      rows_.each([&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          const E* from = static_cast<const E*>(rows_.line(1, x, i));
          E* to = static_cast<E*>(rows_.line(0, out, i));
          const int64_t* at = lines_.line(0, index, i);
          for (int64_t j = 0; j < rows_.length(); j++)
            to[j * rows_.step(0)] = from[at[j * lines_.step(0)] * rows_.step(1)];
        }
      });
    });
  }

 private:
  IndexValues index_;
  int64_t size_, axis_;
  AxisRows<2> rows_;
  pg_tensor dense_;
  int64_t shape_[PG_MAX_RANK], stride_[PG_MAX_RANK];
  AxisRows<1> lines_;
};
PG_KERNEL("gather", Gather);

// Lines along the axis are independent: each is summed by one thread, in order.
struct GatherGrad final : pg::Kernel {
  static void supports(const pg::KernelCall& call) {
    require_all_dense(call);
    if (!is_index(call.in(1)) || storage_of(call.in(0)) != storage_of(call.out(0))) refuse(call);
    if (!is_float(storage_of(call.out(0))) || call.in(1).rank != call.out(0).rank) refuse(call);
  }
  GatherGrad(const pg::KernelCall& call, pg::Plan& plan) : index_(call.in(1)) {
    int64_t axis = axis_ = call.axis("axis", call.out(0).rank);
    size_ = size_along(call.out(0), axis);
    const pg_tensor& index = call.in(1);
    dense_ = index;
    int64_t next = 1;
    for (uint32_t i = index.rank; i-- > 0; next *= index.shape[i]) shape_[i] = index.shape[i], stride_[i] = next;
    dense_.shape = shape_;
    dense_.stride = stride_;
    dense_.dtype_code = PG_INT;
    dense_.dtype_bits = 64;
    rows_ = AxisRows<3>({&dense_, &call.in(0), &call.out(0)}, axis);
    plan.workspace = index_.workspace();
  }

  void launch(const pg_launch& launch) override {
    const int64_t* index = index_.read(pg::input(launch, 1), pg::host_pointer(launch.workspace));
    index_.check(index, size_, "gather_grad", "index", INT64_MIN, axis_ + 1);
    if (launch.output[0].buffer == 0) return;
    fill_tensor(at_address(*launch.outputs[0], launch.output[0]), 0.0);
    const void* dy = pg::input(launch, 0);
    void* out = pg::output(launch, 0);
    Storage s = rows_.storage(2);
    int64_t n = rows_.length(), step = rows_.step(2);
    int bytes = kStorageBytes[s];
    rows_.each([&](int64_t begin, int64_t end) {
      std::vector<double> sums(static_cast<size_t>(size_)), flow(static_cast<size_t>(n));
      for (int64_t i = begin; i < end; i++) {
        std::fill(sums.begin(), sums.end(), 0.0);
        const auto* d = static_cast<const double*>(rows_.load(1, rows_.line(1, dy, i), sF64, flow.data()));
        const int64_t* at = rows_.line(0, index, i);
        for (int64_t j = 0; j < n; j++) sums[static_cast<size_t>(at[j * rows_.step(0)])] += d[j];
        char* to = static_cast<char*>(rows_.line(2, out, i));
        for (int64_t j = 0; j < size_; j++) {
          if (sums[static_cast<size_t>(j)] != 0) put_number(s, sums[static_cast<size_t>(j)], to + j * step * bytes);
        }
      }
    });
  }

 private:
  IndexValues index_;
  int64_t size_, axis_;
  pg_tensor dense_;
  int64_t shape_[PG_MAX_RANK], stride_[PG_MAX_RANK];
  AxisRows<3> rows_;  // index, dy, dx
};
PG_KERNEL("gather_grad", GatherGrad);

}  // namespace
}  // namespace cpu
