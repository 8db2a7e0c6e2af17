// SPDX-License-Identifier: Apache-2.0
// max_pool2d(x) -> y, indices (h * W + w within the plane); max_pool2d_grad(dy, indices, x) -> dx, where of x only the
// shape counts; max_pool2d_gather(x, indices). Padding is minus infinity, NaN wins, the first of equals is taken.
#include <atomic>

#include "kernels/planes.hpp"

namespace pg::cpu {
namespace {

template <class A>
bool beats(A value, A best) {
  if constexpr (std::is_floating_point_v<A>) {
    return static_cast<bool>(static_cast<int>(value > best) | static_cast<int>(value != value));
  } else {
    return value > best;
  }
}

class MaxPool2d final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    uint32_t dtype = dtype_of(call.in(0));
    with_number(dtype, [](auto) {});
    bool dense = is_dense(call.out(0)) && (call.output_count() < 2 || is_dense(call.out(1)));
    if (!dense) fail_support("the results must be dense");
    read_pool(call, call.in(0), call.out(0));
  }
  MaxPool2d(const KernelCall& call, Plan& plan) : dtype_(dtype_of(call.in(0))), x_(call.in(0)) {
    p_ = read_pool(call, call.in(0), call.out(0));
    read_pair(call, "dilation", p_.dilation);
    Scratch scratch;
    x_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
    indices_ = call.output_count() > 1;
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (p_.planes * p_.oh * p_.ow == 0) return;
    with_number(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
      run(x, output<T>(launch, 0), indices_ ? output<int64_t>(launch, 1) : nullptr);
    });
  }

 private:
  template <class T>
  void run(const T* x, T* y, int64_t* indices) const {
    const Pool& p = p_;
    parallel_for(p.planes, plane_grain(p.oh * p.ow * 4), [=, this](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; plane++) {
        int64_t at = plane * p_.oh * p_.ow;
        run_plane(x + plane * p_.h * p_.w, y + at, indices == nullptr ? nullptr : indices + at);
      }
    });
  }

  template <class T>
  void run_plane(const T* x, T* y, int64_t* indices) const {
    const Pool& p = p_;
    bool halves = p.kernel[0] == 2 && p.kernel[1] == 2 && p.dilation[0] == 1 && p.dilation[1] == 1;
    for (int64_t oy = 0; oy < p.oh; oy++) {
      int64_t top = oy * p.stride[0] - p.padding[0];
      Taps rows = taps_inside(top, p.kernel[0], p.dilation[0], p.h);
      for (int64_t ox = 0; ox < p.ow; ox++, y++) {
        int64_t left = ox * p.stride[1] - p.padding[1], index;
        if (halves && top >= 0 && left >= 0 && top + 1 < p.h && left + 1 < p.w) {
          *y = best_of_four(x, top * p.w + left, index);
        } else {
          *y = best_of(x, rows, taps_inside(left, p.kernel[1], p.dilation[1], p.w), top, left, index);
        }
        if (indices != nullptr) *indices++ = index;
      }
    }
  }

  // The common window, without branches.
  template <class T>
  T best_of_four(const T* x, int64_t at, int64_t& index) const {
    const int64_t places[4] = {at, at + 1, at + p_.w, at + p_.w + 1};
    index = at;
    for (int i = 1; i < 4; i++) {  // masks, since compilers turn a choice into a branch that data mispredicts
      auto mask =
          -static_cast<int64_t>(beats(signed_value<T>(load<T>(x[places[i]])), signed_value<T>(load<T>(x[index]))));
      index ^= (index ^ places[i]) & mask;
    }
    return x[index];
  }

  template <class T>
  T best_of(const T* x, Taps rows, Taps columns, int64_t top, int64_t left, int64_t& index) const {
    index = -1;  // a window that lies in the padding altogether
    for (int64_t i = rows.begin; i < rows.end; i++) {
      for (int64_t j = columns.begin; j < columns.end; j++) {
        int64_t place = (top + i * p_.dilation[0]) * p_.w + left + j * p_.dilation[1];
        bool better = index < 0 || beats(signed_value<T>(load<T>(x[place])), signed_value<T>(load<T>(x[index])));
        if (better) index = place;
      }
    }
    return index >= 0 ? x[index] : lowest<T>();
  }

  // Accumulators of integers are unsigned; order is that of the stored type.
  template <class T>
  static auto signed_value(Accumulator<T> x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(x);
    } else {
      return x;
    }
  }
  template <class T>
  static T lowest() {
    if constexpr (std::is_integral_v<T>) {
      return std::numeric_limits<T>::lowest();
    } else {
      return store<T>(-std::numeric_limits<Accumulator<T>>::infinity());
    }
  }

  uint32_t dtype_;
  DenseInput x_;
  Pool p_;
  bool indices_;
};

// What both kernels over saved indices need: planes of a source, indices of the pooled shape.
struct Indexed {
  int64_t planes = 1, size, pooled;
  Indexed() = default;
  Indexed(const pg_tensor& full, const pg_tensor& pooled_tensor) {
    if (full.rank < 3 || full.rank != pooled_tensor.rank) fail_argument("max_pool2d: x must have 3 or 4 axes");
    for (uint32_t i = 0; i + 2 < full.rank; i++) planes *= full.shape[i];
    size = full.shape[full.rank - 2] * full.shape[full.rank - 1];
    pooled = pooled_tensor.shape[full.rank - 2] * pooled_tensor.shape[full.rank - 1];
  }
};

void require_index_dtype(const KernelCall& call, uint32_t i) {
  if (dtype_of(call.in(i)) != PG_I64) fail_support(format("%s: indices must be int64", call.op()));
  if (!is_dense(call.out(0))) fail_support("the result must be dense");
}

[[noreturn]] void fail_index(int64_t index, int64_t size) {
  fail_argument(format("index %lld is out of range for a plane of %lld elements", static_cast<long long>(index),
                       static_cast<long long>(size)));
}

class MaxPool2dGrad final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    require_index_dtype(call, 1);
    Indexed(call.out(0), call.in(0));
  }
  MaxPool2dGrad(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), shape_(call.out(0), call.in(0)), dy_(call.in(0)), indices_(call.in(1)) {
    Scratch scratch;
    dy_.get(nullptr, scratch), indices_.get(nullptr, scratch);
    with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (shape_.planes * shape_.size == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      auto* indices = static_cast<const int64_t*>(indices_.get(input(launch, 1), scratch));
      std::atomic<int64_t> wrong{-1};
      int64_t size = shape_.size, pooled = shape_.pooled;
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t plane, Accumulator<T>* dx) {
        for (int64_t i = plane * pooled; i < (plane + 1) * pooled; i++) {
          int64_t index = indices[i];
          if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size)) {
            dx[index] += load<T>(dy[i]);
          } else if (index != -1) {
            wrong = index;
          }
        }
      });
      if (wrong != -1) fail_index(wrong, size);
    });
  }

 private:
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(shape_.planes, shape_.size);
  }
  uint32_t dtype_;
  Indexed shape_;
  DenseInput dy_, indices_;
};

class MaxPool2dGather final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    with_number(dtype_of(call.in(0)), [](auto) {});
    require_index_dtype(call, 1);
    Indexed(call.in(0), call.out(0));
  }
  MaxPool2dGather(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))), shape_(call.in(0), call.out(0)), x_(call.in(0)), indices_(call.in(1)) {
    Scratch scratch;
    x_.get(nullptr, scratch), indices_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }
  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (shape_.planes * shape_.pooled == 0) return;
    with_number(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* x = static_cast<const T*>(x_.get(input(launch, 0), scratch));
      auto* indices = static_cast<const int64_t*>(indices_.get(input(launch, 1), scratch));
      auto* y = output<T>(launch, 0);
      std::atomic<int64_t> wrong{-1};
      int64_t size = shape_.size, pooled = shape_.pooled;
      parallel_for(shape_.planes * pooled, 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
          int64_t index = indices[i];
          bool inside = static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
          if (!inside && index != -1) wrong = index;
          y[i] = inside ? x[i / pooled * size + index] : T{};
        }
      });
      if (wrong != -1) fail_index(wrong, size);
    });
  }

 private:
  uint32_t dtype_;
  Indexed shape_;
  DenseInput x_, indices_;
};

PG_KERNEL("max_pool2d", MaxPool2d);
PG_KERNEL("max_pool2d_grad", MaxPool2dGrad);
PG_KERNEL("max_pool2d_gather", MaxPool2dGather);

}  // namespace
}  // namespace pg::cpu
