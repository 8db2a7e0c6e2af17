// SPDX-License-Identifier: Apache-2.0
// Maximum pooling of what lies channels-last: a pixel's channels side by side.
#pragma once

#include <atomic>

#include "kernels/channels_last.hpp"
#include "kernels/max_pool_windows.hpp"

namespace pg::cpu::max_pool {

constexpr int64_t kChannels = 64;  // at a time

class MaxPoolLast final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    with_number(dtype_of(call.in(0)), [](auto) {});
    if (call.has_output(1) && !lies_channels_last(call.out(1))) fail_support("the indices must lie as the result does");
    if (read_max_pool(call).in_count() >= INT32_MAX) fail_support("planes of less than 2^31 elements are wanted");
  }
  MaxPoolLast(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        channels_(call.in(0).shape[1]),
        x_(dense_input(call.in(0), true)),
        p_(read_max_pool(call)),
        adaptive_(is_adaptive(call)),
        indexed_(call.has_output(1)),
        places_(p_, [this](int axis, int64_t o) { return places(axis, o); }) {
    Scratch scratch;
    x_.get(nullptr, scratch);
    plan.workspace = scratch.bytes();
  }

  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (p_.planes * p_.out_count() == 0) return;
    places_.at_launch(p_, [this](int axis, int64_t o) { return places(axis, o); });
    const void* x = x_.get(input(launch, 0), scratch);
    with_number(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* y = output<T>(launch, 0);
      indexed_ ? run<true>(static_cast<const T*>(x), y, output<int64_t>(launch, 1))
               : run<false>(static_cast<const T*>(x), y, nullptr);
    });
  }

 private:
  Places places(int axis, int64_t o) const { return adaptive_ ? share_of(p_, axis, o) : window_of(p_, axis, o); }

  template <bool indexed, class T>
  void run(const T* x, T* y, int64_t* indices) const {
    const int64_t c = channels_, in = p_.in_count(), out = p_.out_count(), images = p_.planes / c;
    vector_for(
        images * out, std::max<int64_t>(1, 4096 / c),
        [ =, this ](int64_t begin, int64_t end) __attribute__((always_inline)) {
          for (int64_t at = begin; at < end; at++) {
            const int64_t o = at % out, row = o / p_.out[2];
            const Places& block = places_[0][static_cast<size_t>(row / p_.out[1])];
            const Places& rows = places_[1][static_cast<size_t>(row % p_.out[1])];
            const Places& columns = places_[2][static_cast<size_t>(o % p_.out[2])];
            for (int64_t first = 0; first < c; first += kChannels)
              pixel<indexed>(x + at / out * in * c + first, y + at * c + first,
                             indexed ? indices + at * c + first : nullptr, std::min(kChannels, c - first), block, rows,
                             columns);
          }
        });
  }

  // As best_of() does for one channel.
  template <bool indexed, class T>
  PG_INLINE void pixel(const T* x, T* y, int64_t* indices, int64_t count, const Places& block, const Places& rows,
                       const Places& columns) const {
    using A = decltype(signed_value<T>(load<T>(T{})));
    A best[kChannels];
    int32_t places[kChannels];
    bool none = true;
    for (int64_t d = 0; d < block.count; d++) {
      for (int64_t i = 0; i < rows.count; i++) {
        const int64_t line =
            ((block.first + d * block.step) * p_.in[1] + rows.first + i * rows.step) * p_.in[2] + columns.first;
        for (int64_t j = 0; j < columns.count; j++) {
          const auto place = static_cast<int32_t>(line + j * columns.step);
          const T* from = x + place * channels_;
          if (none) {
            for (int64_t k = 0; k < count; k++) best[k] = signed_value<T>(load<T>(from[k])), places[k] = place;
            none = false;
            continue;
          }
          for (int64_t k = 0; k < count; k++) {
            const A value = signed_value<T>(load<T>(from[k]));
            const bool wins = beats(value, best[k]);
            best[k] = wins ? value : best[k];
            if constexpr (indexed) places[k] = wins ? place : places[k];
          }
        }
      }
    }
    for (int64_t k = 0; k < count; k++) {
      y[k] = none ? lowest<T>() : store_signed<T>(best[k]);
      if constexpr (indexed) indices[k] = none ? -1 : places[k];
    }
  }

  uint32_t dtype_;
  int64_t channels_;
  DenseInput x_;
  Pool p_;
  bool adaptive_, indexed_;
  AxisTables<Places> places_;
};

class MaxPoolGradLast final : public Kernel {
 public:
  static void supports(const KernelCall& call) {
    require_float(call, dtype_of(call.in(0)));
    if (dtype_of(call.in(1)) != PG_I64) fail_support(format("%s: indices must be int64", call.op()));
    read_planes(call, call.out(0), call.in(0));
  }
  MaxPoolGradLast(const KernelCall& call, Plan& plan)
      : dtype_(dtype_of(call.in(0))),
        channels_(call.out(0).shape[1]),
        dy_(dense_input(call.in(0), true)),
        indices_(dense_input(call.in(1), true)) {
    const Pool p = read_planes(call, call.out(0), call.in(0));
    images_ = p.planes / channels_, size_ = p.in_count(), pooled_ = p.out_count();
    Scratch scratch;
    dy_.get(nullptr, scratch), indices_.get(nullptr, scratch);
    with_float(dtype_, [&](auto type) { scratch.take(sums(type).bytes()); });
    plan.workspace = scratch.bytes();
  }

  void launch(const pg_launch& launch) override {
    Scratch scratch(host_pointer(launch.workspace));
    if (images_ * size_ == 0) return;
    with_float(dtype_, [&](auto type) {
      using T = typename decltype(type)::type;
      auto* dy = static_cast<const T*>(dy_.get(input(launch, 0), scratch));
      auto* indices = static_cast<const int64_t*>(indices_.get(input(launch, 1), scratch));
      std::atomic<int64_t> wrong{-1};
      sums(type).run(output<T>(launch, 0), scratch.take(sums(type).bytes()), [&](int64_t image, Accumulator<T>* dx) {
        for (int64_t i = image * pooled_; i < (image + 1) * pooled_; i++) {
          for (int64_t k = 0; k < channels_; k++) {
            const int64_t index = indices[i * channels_ + k];
            if (static_cast<uint64_t>(index) < static_cast<uint64_t>(size_)) {
              dx[index * channels_ + k] += load<T>(dy[i * channels_ + k]);
            } else if (index != -1) {
              wrong = index;
            }
          }
        }
      });
      if (wrong != -1) fail_argument(out_of_plane(wrong, size_));
    });
  }

 private:
  template <class T>
  PlaneSums<T> sums(Type<T>) const {
    return PlaneSums<T>(images_, size_ * channels_);
  }
  uint32_t dtype_;
  int64_t channels_, images_ = 0, size_ = 0, pooled_ = 0;
  DenseInput dy_, indices_;
};

}  // namespace pg::cpu::max_pool
