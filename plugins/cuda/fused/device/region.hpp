// SPDX-License-Identifier: Apache-2.0
// What generated kernels (source.cpp) are written with, on the device and without CUDA's headers: elements as they lie
// in memory, in packets of V, and the numbers that they are computed as. Conversions are those of packets.cuh, which
// eager kernels use.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "perigee/kernels/float16.hpp"
#include "perigee/kernels/math.hpp"

namespace cuda::fused {

using pg::bf16;
using pg::f16;
struct Bool {
  uint8_t value;
};

template <class To, class From>
PG_HD To bits_as(const From& from) {
  static_assert(sizeof(To) <= sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

template <class S>
struct ComputeOf {
  using type = std::conditional_t<std::is_integral_v<S> && sizeof(S) < 4, int32_t, S>;
};
template <>
struct ComputeOf<f16> {
  using type = float;
};
template <>
struct ComputeOf<bf16> {
  using type = float;
};
template <>
struct ComputeOf<Bool> {
  using type = int32_t;
};
template <class S>
using Compute = typename ComputeOf<S>::type;

// Towards zero; what does not fit is clamped, NaN is 0.
template <class T>
PG_HD int64_t truncate(T x) {
  if (!(x > T(-0x1p63))) return x != x ? 0 : INT64_MIN;
  return x < T(0x1p63) ? static_cast<int64_t>(x) : INT64_MAX;
}

// Any number as it lies in memory. To integers by way of int64_t, of which the low bits are kept.
template <class S, class T>
PG_HD S convert(T x) {
  if constexpr (std::is_same_v<S, f16>) {
#if defined(__CUDA_ARCH__)
    f16 to;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(static_cast<float>(x)));
    return to;
#else
    return pg::to_f16(static_cast<float>(x));
#endif
  } else if constexpr (std::is_same_v<S, bf16>) {
#if defined(__CUDA_ARCH__)
    bf16 to;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(static_cast<float>(x)));
    return to;
#else
    return pg::to_bf16(static_cast<float>(x));
#endif
  } else if constexpr (std::is_same_v<S, Bool>) {
    return Bool{static_cast<uint8_t>(x != T(0))};
  } else if constexpr (std::is_integral_v<S> && std::is_floating_point_v<T>) {
    return static_cast<S>(truncate(x));
  } else {
    return static_cast<S>(x);
  }
}

// An element as the number that it is computed as.
template <class S>
PG_HD Compute<S> widen(S x) {
  if constexpr (std::is_same_v<S, f16>) {
#if defined(__CUDA_ARCH__)
    float to;
    asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(x.bits));
    return to;
#else
    return pg::to_float(x);
#endif
  } else if constexpr (std::is_same_v<S, bf16>) {
    return pg::to_float(x);
  } else if constexpr (std::is_same_v<S, Bool>) {
    return x.value != 0;
  } else {
    return static_cast<Compute<S>>(x);
  }
}

// What a tensor of S would give back of it.
template <class S, class T>
PG_HD Compute<S> rounded(T x) {
  return widen<S>(convert<S>(x));
}

// ---- packets ----

template <int kBytes>
using Word = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t,
                       std::conditional_t<kBytes == 4, uint32_t, std::conditional_t<kBytes == 8, uint2, uint4>>>>;

template <class S, int V>
struct Packet {
  alignas(V * sizeof(S)) S element[V];
};

// The first n of V elements; `whole`: all of them, in one access.
template <class S, int V>
__device__ __forceinline__ Packet<S, V> load(const char* base, int64_t offset, bool whole, int n) {
  const char* at = base + offset * static_cast<int64_t>(sizeof(S));
  using All = Word<V * sizeof(S)>;
  if (whole) {
    const All all = *reinterpret_cast<const All*>(at);
    return bits_as<Packet<S, V>>(all);
  }
  Packet<S, V> packet = {};
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i < n) packet.element[i] = reinterpret_cast<const S*>(at)[i];
  return packet;
}
template <class S>
__device__ __forceinline__ S load_one(const char* base, int64_t offset) {
  return *reinterpret_cast<const S*>(base + offset * static_cast<int64_t>(sizeof(S)));
}
template <class S, int V>
__device__ __forceinline__ void store(char* base, int64_t offset, bool whole, int n, const Packet<S, V>& packet) {
  char* at = base + offset * static_cast<int64_t>(sizeof(S));
  using All = Word<V * sizeof(S)>;
  if (whole) {
    *reinterpret_cast<All*>(at) = bits_as<All>(packet);
    return;
  }
#pragma unroll
  for (int i = 0; i < V; i++)
    if (i < n) reinterpret_cast<S*>(at)[i] = packet.element[i];
}

// ---- places ----

// Divides numbers below 2^31 by one multiplication: as walk.hpp's Divider.
struct Axis {
  int64_t size;  // of the innermost in packets
  uint32_t multiplier, shift;
};

// Packet `item` to its offsets in elements, of tensors that lie in kLayouts ways.
template <bool kWide, int kRank, int kLayouts>
__device__ __forceinline__ void locate(int64_t item, const Axis (&axis)[kRank],
                                       const int64_t (&stride)[kLayouts][kRank], int64_t (&offset)[kLayouts]) {
#pragma unroll
  for (int k = 0; k < kLayouts; k++) offset[k] = 0;
  int64_t rest = item;
#pragma unroll
  for (int i = kRank - 1; i > 0; i--) {
    int64_t next;
    if constexpr (kWide) {
      next = rest / axis[i].size;
    } else {
      const auto n = static_cast<uint32_t>(rest);
      const auto high = static_cast<uint32_t>(static_cast<uint64_t>(n) * axis[i].multiplier >> 32);
      next = (n + high) >> axis[i].shift;
    }
    const int64_t index = rest - next * axis[i].size;
#pragma unroll
    for (int k = 0; k < kLayouts; k++) offset[k] += index * stride[k][i];
    rest = next;
  }
#pragma unroll
  for (int k = 0; k < kLayouts; k++) offset[k] += rest * stride[k][0];
}

// ---- numbers of the call ----

template <size_t kCount>
__device__ __forceinline__ void read_numbers(uint64_t address, uint64_t (&known)[kCount]) {
#pragma unroll
  for (size_t i = 0; i < kCount; i++) known[i] = reinterpret_cast<const uint64_t*>(address)[i];
}

// ---- arithmetic that the host decides about ----

// x to a power that is a number: what eager code computes it as.
template <class T>
PG_HD T power_of(T x, T exponent, uint64_t as) {
  switch (as) {
    case 1: return pg::math::Square()(x, &exponent);
    case 2: return pg::math::Sqrt()(x, &exponent);
    case 3: return pg::math::Rsqrt()(x, &exponent);
    default: return pg::math::Pow()(x, exponent);
  }
}

}  // namespace cuda::fused
