// SPDX-License-Identifier: Apache-2.0
// searchsorted: how many elements of a sorted row come before each value, by halving.
#include "kernel.hpp"
#include "walk.hpp"

namespace cuda {
namespace {

struct Sought {
  Walk<2> rows;  // values, rows of `sorted`
  Walk<1> y;
  int64_t length, step;  // of a row of `sorted`
  bool right;
};

// NaN stands behind all numbers.
template <class T>
PG_HD bool comes_before(T x, T value, bool right) {
  bool nan = value != value;
  return right ? x <= value || nan : x < value || (nan && x == x);
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    search_rows(const __grid_constant__ Sought s, const S* sorted, const S* values, int64_t* y) {
  int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t p = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; p < s.rows.count; p += stride) {
    int64_t at[2];
    s.rows.locate(p, at);
    const Compute<S> value = unpack(values[at[0]]);
    const S* row = sorted + at[1];
    int64_t low = 0, high = s.length;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (comes_before(unpack(row[middle * s.step]), value, s.right))
        low = middle + 1;
      else
        high = middle;
    }
    y[s.y.offset(p)] = low;
  }
}

class SearchSorted final : public Kernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, kAny);
    if (pg::dtype_of(call.in(0)) != pg::dtype_of(call.in(1))) pg::fail_support("sorted and values differ in dtype");
  }
  SearchSorted(const pg::KernelCall& call, pg::Plan&) : dtype_(pg::dtype_of(call.in(1))) {
    const pg_tensor &sorted = call.in(0), &values = call.in(1);
    int64_t strides[2][PG_MAX_RANK] = {};
    for (uint32_t i = 0; i < values.rank; i++) {
      strides[0][i] = values.stride[i];
      strides[1][i] = sorted.rank > 1 && i + 1 < values.rank ? sorted.stride[i] : 0;
    }
    s_.rows = Walk<2>(pg::make_nest<2>(values.rank, values.shape, strides, false));
    s_.y = walk_of(call.out(0));
    s_.length = sorted.shape[sorted.rank - 1];
    s_.step = sorted.stride[sorted.rank - 1];
    s_.right = call.attr<bool>("right");
  }
  void run(const Launch& launch) override {
    if (s_.rows.count == 0) return;
    with_any(dtype_, [&](auto tag) {
      using S = typename decltype(tag)::type;
      launch(grid_for(s_.rows.count), search_rows<S>, s_, launch.in<S>(0), launch.in<S>(1), launch.out<int64_t>(0));
    });
  }

 private:
  uint32_t dtype_;
  Sought s_{};
};
PG_KERNEL("searchsorted", SearchSorted);

}  // namespace
}  // namespace cuda
