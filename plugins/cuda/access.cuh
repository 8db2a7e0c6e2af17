// SPDX-License-Identifier: Apache-2.0
// Reading and writing elements: 16 bytes at a time where the address allows it, and storages whose dtype is known at
// run time only, for kernels that are not worth an instantiation per dtype.
#pragma once

#include <cstring>

#include "dtypes.hpp"

namespace cuda {

// Storages of a dtype that is known at run time: float16 or bfloat16, computed with in float; any floating dtype, in
// double; any integer or bool, in int64_t.
struct AnyHalf {
  uint16_t bits;
};
struct AnyFloat {};
struct AnyInt {};

template <class S>
struct Access {
  using C = Compute<S>;
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(S));  // elements of a packet
  static constexpr int64_t bytes(uint32_t) { return sizeof(S); }
};
template <>
struct Access<AnyHalf> {
  using C = float;
  static constexpr int kWidth = 8;
  static constexpr int64_t bytes(uint32_t) { return 2; }
};
template <>
struct Access<AnyFloat> {
  using C = double;
  static constexpr int kWidth = 1;
  PG_HD static int64_t bytes(uint32_t dtype) { return (dtype & 0xffffu) / 8; }
};
template <>
struct Access<AnyInt> {
  using C = int64_t;
  static constexpr int kWidth = 1;
  PG_HD static int64_t bytes(uint32_t dtype) { return (dtype & 0xffffu) / 8; }
};

// As unpack and pack, by the instruction that there is for it.
template <class S>
__device__ __forceinline__ Compute<S> widen(S x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<S, f16>) {
    float to;
    asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(x.bits));
    return to;
  }
#endif
  return unpack<S>(x);
}
template <class S, class T>
__device__ __forceinline__ S narrow(T x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<S, f16>) {
    f16 to;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(static_cast<float>(x)));
    return to;
  } else if constexpr (std::is_same_v<S, bf16>) {
    bf16 to;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(static_cast<float>(x)));
    return to;
  }
#endif
  return pack<S>(x);
}

__device__ __forceinline__ float widen_half(uint32_t dtype, uint16_t bits) {
  float f = widen(f16{bits}), b = widen(bf16{bits});
  return dtype == PG_BF16 ? b : f;
}
__device__ __forceinline__ uint16_t narrow_half(uint32_t dtype, float x) {
  return dtype == PG_BF16 ? narrow<bf16>(x).bits : narrow<f16>(x).bits;
}

template <class S>
__device__ __forceinline__ Compute<S> element(const char* at) {
  return widen<S>(*reinterpret_cast<const S*>(at));
}

__device__ __forceinline__ double any_float(uint32_t dtype, const char* at) {
  switch (dtype) {
    case PG_F32: return static_cast<double>(element<float>(at));
    case PG_F16: return static_cast<double>(element<f16>(at));
    case PG_BF16: return static_cast<double>(element<bf16>(at));
    default: return element<double>(at);
  }
}
__device__ __forceinline__ int64_t any_int(uint32_t dtype, const char* at) {
  switch (dtype) {
    case PG_I64: return element<int64_t>(at);
    case PG_I32: return element<int32_t>(at);
    case PG_I16: return element<int16_t>(at);
    case PG_I8: return element<int8_t>(at);
    case PG_U8: return element<uint8_t>(at);
    default: return element<Bool>(at);
  }
}

template <class S, class T>
__device__ __forceinline__ void set_element(char* at, T value) {
  *reinterpret_cast<S*>(at) = narrow<S>(value);
}

template <class T>
__device__ __forceinline__ void set_any_float(uint32_t dtype, char* at, T value) {
  switch (dtype) {
    case PG_F32: return set_element<float>(at, value);
    case PG_F16: return set_element<f16>(at, value);
    case PG_BF16: return set_element<bf16>(at, value);
    default: return set_element<double>(at, value);
  }
}
__device__ __forceinline__ void set_any_int(uint32_t dtype, char* at, int64_t value) {
  switch (dtype) {
    case PG_I64: return set_element<int64_t>(at, value);
    case PG_I32: return set_element<int32_t>(at, value);
    case PG_I16: return set_element<int16_t>(at, value);
    case PG_I8: return set_element<int8_t>(at, value);
    case PG_U8: return set_element<uint8_t>(at, value);
    default: return set_element<Bool>(at, value);
  }
}

// An element between memory and the type it is computed in.
template <class S>
__device__ __forceinline__ typename Access<S>::C from_storage(uint32_t dtype, S x) {
  if constexpr (std::is_same_v<S, AnyHalf>)
    return widen_half(dtype, x.bits);
  else
    return widen<S>(x);
}
template <class S, class T>
__device__ __forceinline__ S to_storage(uint32_t dtype, T x) {
  if constexpr (std::is_same_v<S, AnyHalf>)
    return {narrow_half(dtype, static_cast<float>(x))};
  else
    return narrow<S>(x);
}

// W consecutive elements in the compute type; W of more than one is a packet, whose address is a multiple of 16.
template <class S, int W>
__device__ __forceinline__ void load(uint32_t dtype, const char* at, typename Access<S>::C* values) {
  if constexpr (std::is_same_v<S, AnyFloat>) {
    values[0] = any_float(dtype, at);
  } else if constexpr (std::is_same_v<S, AnyInt>) {
    values[0] = any_int(dtype, at);
  } else if constexpr (W == 1) {
    values[0] = from_storage<S>(dtype, *reinterpret_cast<const S*>(at));
  } else {
    static_assert(W == Access<S>::kWidth);
    alignas(16) S packet[W];
    memcpy(packet, __builtin_assume_aligned(at, 16), 16);
    for (int i = 0; i < W; i++) values[i] = from_storage<S>(dtype, packet[i]);
  }
}

template <class S, int W, class T>
__device__ __forceinline__ void store(uint32_t dtype, char* at, const T* values) {
  if constexpr (W == 1) {
    *reinterpret_cast<S*>(at) = to_storage<S>(dtype, values[0]);
  } else {
    alignas(16) S packet[W];
    for (int i = 0; i < W; i++) packet[i] = to_storage<S>(dtype, values[i]);
    memcpy(__builtin_assume_aligned(at, 16), packet, 16);
  }
}

// body(Tag<S>()) with the storage that a floating dtype is read by, of three.
template <class Body>
auto with_float_storage(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_F32: return body(Tag<float>());
    case PG_F16:
    case PG_BF16: return body(Tag<AnyHalf>());
    case PG_F64: return body(Tag<double>());
    default:
      pg::fail_support(pg::format("%s is not a floating dtype that CUDA kernels compute with", pg::dtype_name(dtype)));
  }
}

}  // namespace cuda
