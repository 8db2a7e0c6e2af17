// SPDX-License-Identifier: Apache-2.0
// Packets of V neighbouring elements: from memory into registers as raw bits, from there into the type they are
// computed in (float, double, int32_t, int64_t, or unsigned bits that are only moved), and back.
#pragma once

#include <cstring>
#include <type_traits>

#include "dtypes.hpp"
#include "elementwise_plan.hpp"

namespace cuda::elementwise {

template <int kBytes>
using Bits = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t,
                       std::conditional_t<kBytes == 4, uint32_t, std::conditional_t<kBytes == 8, uint2, uint4>>>>;

// The result of a comparison. Not bool: the compiler would keep those in predicate registers, of which there are few.
struct Truth {
  uint32_t value;
  Truth() = default;
  PG_HD Truth(bool x) : value(x ? 1 : 0) {}  // NOLINT: comparisons are assigned
};

// Converted only.
struct Complex {
  double real, imaginary;
};

// At most 16 bytes, element by element from the lowest bits on.
struct Raw {
  uint32_t word[4];
};

// One access. Off the GPU a misaligned address must fail too: no processor would notice.
template <class W>
__device__ __forceinline__ W load_as(const char* at) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const W*>(at);
#else
  if (reinterpret_cast<uint64_t>(at) % sizeof(W) != 0) __builtin_trap();
  W value;
  std::memcpy(&value, at, sizeof value);
  return value;
#endif
}
template <class W>
__device__ __forceinline__ void store_as(char* at, const W& value) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<W*>(at) = value;
#else
  if (reinterpret_cast<uint64_t>(at) % sizeof(W) != 0) __builtin_trap();
  std::memcpy(at, &value, sizeof value);
#endif
}

template <int kBytes>
__device__ __forceinline__ void insert(Raw& raw, int i, Bits<kBytes> value) {
  if constexpr (kBytes == 16) {
    raw = {{value.x, value.y, value.z, value.w}};
  } else if constexpr (kBytes == 8) {
    raw.word[2 * i] = value.x;
    raw.word[2 * i + 1] = value.y;
  } else if constexpr (kBytes == 4) {
    raw.word[i] = value;
  } else {
    constexpr int kPerWord = 4 / kBytes;
    raw.word[i / kPerWord] |= static_cast<uint32_t>(value) << (8 * kBytes * (i % kPerWord));
  }
}
template <int kBytes>
__device__ __forceinline__ Bits<kBytes> extract(const Raw& raw, int i) {
  if constexpr (kBytes == 16) {
    return {raw.word[0], raw.word[1], raw.word[2], raw.word[3]};
  } else if constexpr (kBytes == 8) {
    return {raw.word[2 * i], raw.word[2 * i + 1]};
  } else if constexpr (kBytes == 4) {
    return raw.word[i];
  } else {
    constexpr int kPerWord = 4 / kBytes;
    return static_cast<Bits<kBytes>>(raw.word[i / kPerWord] >> (8 * kBytes * (i % kPerWord)));
  }
}

// The first n of V elements of kBytes each; the others are zero.
template <int V, int kBytes>
__device__ __forceinline__ void load_elements(Raw& raw, const char* at, Access access, int n) {
  constexpr int kAll = V * kBytes;
  if constexpr (kAll <= 16) {
    if (V == 1 || (access == kVector && n == V)) {
      insert<kAll>(raw, 0, load_as<Bits<kAll>>(at));
    } else {
      Bits<kBytes> one{};
#pragma unroll
      for (int i = 0; i < V; i++) {
        if (i < n && (i == 0 || access != kSplat)) one = load_as<Bits<kBytes>>(at + i * kBytes);
        if (i < n) insert<kBytes>(raw, i, one);
      }
    }
  }
}
template <int V, int kBytes>
__device__ __forceinline__ void store_elements(const Raw& raw, char* at, Access access, int n) {
  constexpr int kAll = V * kBytes;
  if constexpr (kAll <= 16) {
    if (V == 1 || (access == kVector && n == V)) {
      store_as(at, extract<kAll>(raw, 0));
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) {
        if (i < n) store_as(at + i * kBytes, extract<kBytes>(raw, i));
      }
    }
  }
}

// The sizes of elements that may be stored of what is computed in T, as the sum of these sizes.
template <class T>
constexpr int sizes_of = std::is_same_v<T, Complex>   ? 16 | 8 | 4 | 2 | 1
                         : std::is_same_v<T, Truth>   ? 1
                         : std::is_same_v<T, float>   ? 4 | 2
                         : std::is_same_v<T, int32_t> ? 4 | 2 | 1
                         : std::is_unsigned_v<T>      ? static_cast<int>(sizeof(T)) | 1
                                                      : static_cast<int>(sizeof(T));

template <int V, int kSizes>
__device__ __forceinline__ Raw load_raw(const char* at, int bytes, Access access, int n) {
  Raw raw = {};
  if ((kSizes & 1) != 0 && (kSizes == 1 || bytes == 1))
    load_elements<V, 1>(raw, at, access, n);
  else if ((kSizes & 2) != 0 && (kSizes < 4 || bytes == 2))
    load_elements<V, 2>(raw, at, access, n);
  else if ((kSizes & 4) != 0 && (kSizes < 8 || bytes == 4))
    load_elements<V, 4>(raw, at, access, n);
  else if ((kSizes & 8) != 0 && (kSizes < 16 || bytes == 8))
    load_elements<V, 8>(raw, at, access, n);
  else if ((kSizes & 16) != 0)
    load_elements<V, 16>(raw, at, access, n);
  return raw;
}
template <int V, int kSizes>
__device__ __forceinline__ void store_raw(const Raw& raw, char* at, int bytes, Access access, int n) {
  if ((kSizes & 1) != 0 && (kSizes == 1 || bytes == 1))
    store_elements<V, 1>(raw, at, access, n);
  else if ((kSizes & 2) != 0 && (kSizes < 4 || bytes == 2))
    store_elements<V, 2>(raw, at, access, n);
  else if ((kSizes & 4) != 0 && (kSizes < 8 || bytes == 4))
    store_elements<V, 4>(raw, at, access, n);
  else if ((kSizes & 8) != 0 && (kSizes < 16 || bytes == 8))
    store_elements<V, 8>(raw, at, access, n);
  else if ((kSizes & 16) != 0)
    store_elements<V, 16>(raw, at, access, n);
}

// ---- one element, bits and number ----

template <class To, class From>
__device__ __forceinline__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

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

template <class S>
__device__ __forceinline__ Compute<S> number_of(Bits<sizeof(S)> bits) {
  S x = bits_as<S>(bits);
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<S, f16>) {
    float to;
    asm("cvt.f32.f16 %0, %1;" : "=f"(to) : "h"(x.bits));
    return to;
  }
#endif
  return unpack(x);
}

// ---- packets, raw and in the type they are computed in ----

template <class S, class T, int V>
__device__ __forceinline__ void decode_as(const Raw& raw, T (&x)[V]) {
  if constexpr (V * sizeof(S) <= 16) {
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = static_cast<T>(number_of<S>(extract<sizeof(S)>(raw, i)));
  }
}
template <class S, class T, int V>
__device__ __forceinline__ void encode_as(const T (&x)[V], Raw& raw) {
  if constexpr (V * sizeof(S) <= 16) {
#pragma unroll
    for (int i = 0; i < V; i++) insert<sizeof(S)>(raw, i, bits_as<Bits<sizeof(S)>>(convert<S>(x[i])));
  }
}

__device__ __forceinline__ Complex decode_complex(const Raw& raw, int storage) {
  double real[1] = {};
  switch (storage) {
    case sC128: return bits_as<Complex>(raw);
    case sC64:
      return {static_cast<double>(bits_as<float>(raw.word[0])), static_cast<double>(bits_as<float>(raw.word[1]))};
    case sF32: decode_as<float>(raw, real); break;
    case sF16: decode_as<f16>(raw, real); break;
    case sBF16: decode_as<bf16>(raw, real); break;
    case sF64: decode_as<double>(raw, real); break;
    case sI64: decode_as<int64_t>(raw, real); break;
    case sI32: decode_as<int32_t>(raw, real); break;
    case sI16: decode_as<int16_t>(raw, real); break;
    case sI8: decode_as<int8_t>(raw, real); break;
    case sU8: decode_as<uint8_t>(raw, real); break;
    default: decode_as<Bool>(raw, real);
  }
  return {real[0], 0};
}

// T is the compute type of the storage, or unsigned: then booleans are 0 or 1 and all else is the bits themselves.
template <class T, int V>
__device__ __forceinline__ void decode(const Raw& raw, int storage, T (&x)[V]) {
  if constexpr (std::is_same_v<T, float>) {
    if (storage == sF32) return decode_as<float>(raw, x);
    if (storage == sF16) return decode_as<f16>(raw, x);
    return decode_as<bf16>(raw, x);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    switch (storage) {
      case sI32: return decode_as<int32_t>(raw, x);
      case sI16: return decode_as<int16_t>(raw, x);
      case sI8: return decode_as<int8_t>(raw, x);
      case sU8: return decode_as<uint8_t>(raw, x);
      default: return decode_as<Bool>(raw, x);
    }
  } else if constexpr (std::is_same_v<T, Complex>) {
    static_assert(V == 1);
    x[0] = decode_complex(raw, storage);
  } else if constexpr (std::is_unsigned_v<T>) {
    if (storage == sBool) return decode_as<Bool>(raw, x);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = bits_as<T>(extract<sizeof(T)>(raw, i));
  } else {
    decode_as<T>(raw, x);
  }
}

// Into any storage.
template <class T, int V>
__device__ __forceinline__ Raw encode_any(const T (&x)[V], int storage) {
  Raw raw = {};
  switch (storage) {
    case sF32: encode_as<float>(x, raw); break;
    case sF16: encode_as<f16>(x, raw); break;
    case sBF16: encode_as<bf16>(x, raw); break;
    case sF64: encode_as<double>(x, raw); break;
    case sI64: encode_as<int64_t>(x, raw); break;
    case sI32: encode_as<int32_t>(x, raw); break;
    case sI16: encode_as<int16_t>(x, raw); break;
    case sI8: encode_as<int8_t>(x, raw); break;
    case sU8: encode_as<uint8_t>(x, raw); break;
    default: encode_as<Bool>(x, raw);
  }
  return raw;
}
// Into those storages whose compute type is T; complex numbers into any, of which real ones take the real part.
template <class T, int V>
__device__ __forceinline__ Raw encode(const T (&x)[V], int storage) {
  Raw raw = {};
  if constexpr (std::is_same_v<T, float>) {
    if (storage == sF32)
      encode_as<float>(x, raw);
    else if (storage == sF16)
      encode_as<f16>(x, raw);
    else
      encode_as<bf16>(x, raw);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    switch (storage) {
      case sI32: encode_as<int32_t>(x, raw); break;
      case sI16: encode_as<int16_t>(x, raw); break;
      case sI8:
      case sU8: encode_as<uint8_t>(x, raw); break;
      default: encode_as<Bool>(x, raw);
    }
  } else if constexpr (std::is_same_v<T, Truth>) {
#pragma unroll
    for (int i = 0; i < V; i++) insert<1>(raw, i, static_cast<uint8_t>(x[i].value));
  } else if constexpr (std::is_same_v<T, Complex>) {
    static_assert(V == 1);
    double part[1] = {x[0].real};
    if (storage == sC128) return bits_as<Raw>(x[0]);
    if (storage == sC64) {
      raw.word[0] = bits_as<uint32_t>(static_cast<float>(x[0].real));
      raw.word[1] = bits_as<uint32_t>(static_cast<float>(x[0].imaginary));
      return raw;
    }
    if (storage == sBool) part[0] = x[0].real != 0 || x[0].imaginary != 0 ? 1 : 0;
    return encode_any<double, 1>(part, storage);
  } else if constexpr (std::is_unsigned_v<T>) {
#pragma unroll
    for (int i = 0; i < V; i++) insert<sizeof(T)>(raw, i, bits_as<Bits<sizeof(T)>>(x[i]));
  } else {
    encode_as<T>(x, raw);
  }
  return raw;
}

}  // namespace cuda::elementwise
