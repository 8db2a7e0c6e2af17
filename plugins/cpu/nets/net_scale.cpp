// SPDX-License-Identifier: Apache-2.0
#include "nets/net_scale.hpp"

#include <algorithm>

#include "linalg/dense.hpp"
#include "linalg/isa.hpp"

namespace pg::cpu {
namespace {

constexpr int64_t kGrain = int64_t{1} << 16;  // elements that are worth a thread

}  // namespace

ChannelScale::ChannelScale(const NetLayout& x, const NetLayout& factor, bool narrow)
    : x_(x), narrow_(narrow), step_(factor.images == 1 ? 0 : factor.blocks * factor.block) {}

template <int64_t kBlock, class T>
void ChannelScale::run_blocks(const T* x, const T* factor, T* y) const {
  const NetLayout l = x_;
  const int64_t step = step_, size = l.plane * kBlock;
  vector_for(
      l.images * l.blocks,
      std::max<int64_t>(1, kGrain / size), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
        for (int64_t i = begin; i < end; i++) {
          const int64_t first = i % l.blocks * kBlock;
          const T* given = factor + i / l.blocks * step + first;
          float by[kBlock];
          for (int64_t k = 0; k < kBlock; k++) by[k] = first + k < l.channels ? load<T>(given[k]) : 0;
          const T* from = x + i * size;
          T* to = y + i * size;
          for (int64_t s = 0; s < l.plane; s++) {
            for (int64_t k = 0; k < kBlock; k++) to[s * kBlock + k] = store<T>(load<T>(from[s * kBlock + k]) * by[k]);
          }
        }
      });
}

template <class T>
void ChannelScale::run_pixels(const T* x, const T* factor, T* y) const {
  const NetLayout l = x_;
  const int64_t step = step_;
  vector_for(
      l.images * l.plane,
      std::max<int64_t>(1, kGrain / l.channels), [=](int64_t begin, int64_t end) __attribute__((always_inline)) {
        for (int64_t i = begin; i < end; i++) {
          const T *by = factor + i / l.plane * step, *from = x + i * l.channels;
          T* to = y + i * l.channels;
          for (int64_t k = 0; k < l.channels; k++) to[k] = store<T>(load<T>(from[k]) * load<T>(by[k]));
        }
      });
}

template <class T>
void ChannelScale::run_type(const T* x, const T* factor, T* y) const {
  switch (x_.order) {
    case NetOrder::kRows: return run_blocks<1>(x, factor, y);
    case NetOrder::kPixels: return run_pixels(x, factor, y);
    case NetOrder::kEights: return run_blocks<8>(x, factor, y);
    case NetOrder::kSixteens: return run_blocks<16>(x, factor, y);
  }
}

void ChannelScale::run(const void* x, const void* factor, void* y) const {
  auto as = [&]<class T>(T) { run_type(static_cast<const T*>(x), static_cast<const T*>(factor), static_cast<T*>(y)); };
  narrow_ ? as(BFloat16{}) : as(float{});
}

}  // namespace pg::cpu
