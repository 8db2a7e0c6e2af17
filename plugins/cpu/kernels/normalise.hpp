// SPDX-License-Identifier: Apache-2.0
// What batch_norm, layer_norm and rms_norm share: sums in lanes, parameters of either dtype.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/channels_last.hpp"
#include "linalg/dense.hpp"
#include "linalg/isa.hpp"
#include "perigee/kernel.hpp"

namespace pg::cpu {

// Statistics of T are kept in this.
template <class T>
using Statistic = Accumulator<T>;

inline uint32_t statistics_dtype(uint32_t dtype) { return dtype == PG_F64 ? PG_F64 : PG_F32; }

constexpr int64_t kLanes = 16;

// The sum of f(i) over 0 .. count - 1, in an order that depends on count only and that compilers can vectorise.
template <class A, class F>
PG_INLINE double sum_lanes(int64_t count, const F& f) {
  A lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; lane++) lanes[lane] += f(i + lane);
  }
  for (int64_t lane = 0; i < count; i++, lane++) lanes[lane] += f(i);
  double sum = 0;
  for (A lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// x as rows of its `dims` last axes.
struct Rows {
  int64_t count = 1, size = 1;

  Rows() = default;
  Rows(const KernelCall& call, const pg_tensor& x) {
    auto dims = call.attr<int64_t>("dims");
    if (dims < 1 || dims > x.rank) fail_argument(format("%s: dims is out of range", call.op()));
    for (uint32_t i = 0; i < x.rank; i++) (i + dims < x.rank ? count : size) *= x.shape[i];
  }
  int64_t grain() const { return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, size)); }
  uint64_t bytes() const { return static_cast<uint64_t>(size) * 8; }
};

// A small vector of parameters, of the dtype of x or of its statistics; possibly absent, possibly strided.
class Parameter {
 public:
  Parameter() = default;
  Parameter(const KernelCall& call, uint32_t i) : index_(i) {
    if (!call.has(i)) return;
    const pg_tensor& t = call.in(i);
    present_ = true, dtype_ = dtype_of(t), tensor_ = DenseInput(t);
    stride_ = t.rank > 0 ? t.stride[t.rank - 1] : 1, one_axis_ = t.rank <= 1;
  }
  bool present() const { return present_; }
  uint32_t dtype() const { return dtype_; }

  // out[i] = the parameter, or `otherwise`. More than one axis is made dense first.
  template <class A>
  void read(const pg_launch& launch, Scratch& scratch, int64_t count, A otherwise, A* out) const {
    if (!present_ || count == 0) return std::fill_n(out, count, otherwise), void();
    const void* data = input(launch, index_);
    int64_t step = one_axis_ ? stride_ : 1;
    if (!one_axis_) data = tensor_.get(data, scratch);
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      for (int64_t i = 0; i < count; i++) out[i] = static_cast<A>(load<T>(static_cast<const T*>(data)[i * step]));
    });
  }
  // Reserves what read may take.
  void reserve(Scratch& scratch) const {
    if (present_ && !one_axis_) tensor_.get(nullptr, scratch);
  }
  // Writes back (running statistics).
  template <class Update>
  void update(const pg_launch& launch, int64_t count, const Update& update) const {
    if (!present_ || count == 0) return;
    void* data = const_cast<void*>(input(launch, index_));
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      for (int64_t i = 0; i < count; i++) {
        T& element = static_cast<T*>(data)[i * stride_];
        element = store<T>(static_cast<Accumulator<T>>(update(i, static_cast<double>(load<T>(element)))));
      }
    });
  }

 private:
  uint32_t index_ = 0, dtype_ = 0;
  int64_t stride_ = 1;
  bool present_ = false, one_axis_ = true;
  DenseInput tensor_;
};

// Writes values in the dtype that the output has.
template <class A>
void write_parameter(uint32_t dtype, const A* values, int64_t count, void* out) {
  with_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t i = 0; i < count; i++) static_cast<T*>(out)[i] = store<T>(static_cast<Accumulator<T>>(values[i]));
  });
}

// The first result may lie channels-last where the kernel says so.
inline void require_norm_dtypes(const KernelCall& call, uint32_t x, uint32_t first, uint32_t last,
                                bool takes_channels_last = false) {
  uint32_t dtype = dtype_of(call.in(x));
  with_float(dtype, [](auto) {});
  for (uint32_t i = first; i <= last; i++) {
    if (!call.has(i)) continue;
    uint32_t own = dtype_of(call.in(i));
    if (own != dtype && own != statistics_dtype(dtype)) {
      fail_support(
          format("%s: input %u is %s; expected the dtype of x or of its statistics", call.op(), i, dtype_name(own)));
    }
  }
  for (uint32_t i = 0; i < call.output_count(); i++) {
    if (!call.has_output(i) || is_dense(call.out(i))) continue;
    if (i > 0 || !takes_channels_last || !lies_channels_last(call.out(i))) fail_support("the results must be dense");
  }
}

}  // namespace pg::cpu
