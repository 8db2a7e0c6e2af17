// SPDX-License-Identifier: Apache-2.0
// Rows whose elements lie together, read and written 16 bytes at a time wherever they begin: a head of single elements
// up to a line of the memory, packets, a tail of single elements. Several packets are on their way at a time.
#pragma once

#include "access.cuh"
#include "group.cuh"
#include "perigee/kernels/math.hpp"

namespace cuda {

// ---- packets, as they lie in memory ----

__device__ __forceinline__ uint4 read_packet(const char* at) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const uint4*>(at);
#else
  uint4 raw;
  memcpy(&raw, at, sizeof raw);
  return raw;
#endif
}
// again: whether somebody reads it soon; else it is the first that a cache gives up.
__device__ __forceinline__ void write_packet(char* at, const uint4& raw, bool again = false) {
#if defined(__CUDA_ARCH__)
  if (again)
    *reinterpret_cast<uint4*>(at) = raw;
  else
    __stcs(reinterpret_cast<uint4*>(at), raw);
#else
  (void)again;
  memcpy(at, &raw, sizeof raw);
#endif
}

template <class S, class C>
__device__ __forceinline__ void unpack_packet(const uint4& raw, C* values) {
  const uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
  if constexpr (sizeof(S) == 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      values[2 * i] = widen(S{static_cast<uint16_t>(word[i])});
      values[2 * i + 1] = widen(S{static_cast<uint16_t>(word[i] >> 16)});
    }
  } else {
    constexpr int kWords = static_cast<int>(sizeof(S)) / 4;
#pragma unroll
    for (int i = 0; i < 4 / kWords; i++) memcpy(&values[i], &word[i * kWords], sizeof(S));
  }
}

// Two 16-bit floats, by the one instruction that there is for both.
template <class S>
__device__ __forceinline__ uint32_t pack_two(float low, float high) {
#if defined(__CUDA_ARCH__)
  uint32_t both;
  if constexpr (std::is_same_v<S, f16>)
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return narrow<S>(low).bits | static_cast<uint32_t>(narrow<S>(high).bits) << 16;
#endif
}

template <class S, class C>
__device__ __forceinline__ uint4 pack_packet(const C* values) {
  uint32_t word[4];
  if constexpr (sizeof(S) == 2) {
#pragma unroll
    for (int i = 0; i < 4; i++) word[i] = pack_two<S>(values[2 * i], values[2 * i + 1]);
  } else {
    constexpr int kWords = static_cast<int>(sizeof(S)) / 4;
#pragma unroll
    for (int i = 0; i < 4 / kWords; i++) memcpy(&word[i * kWords], &values[i], sizeof(S));
  }
  return {word[0], word[1], word[2], word[3]};
}

// ---- arithmetic, as exact as elements of S show ----

// e^x. 16-bit floats have 8 or 11 bits, of which the approximation spoils none.
template <class S, class C>
__device__ __forceinline__ C power_of(C x) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(S) == 2) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
    return power;
  }
#endif
  return pg::math::exp_of(x);
}

// The larger one; NaN where either is.
template <class C>
__device__ __forceinline__ C larger_of(C a, C b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<C, float>) {
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
    return larger;
  }
#endif
  return pg::math::Maximum()(a, b);
}

template <int M, class C>
__device__ __forceinline__ C tree_max(const C (&values)[M]) {
  C most[M];
  for (int i = 0; i < M; i++) most[i] = values[i];
#pragma unroll
  for (int step = 1; step < M; step *= 2) {
#pragma unroll
    for (int i = 0; i + step < M; i += 2 * step) most[i] = larger_of(most[i], most[i + step]);
  }
  return most[0];
}

// ---- rows ----

// One thread's part of a row of `length` elements, cut by where the first of the addresses that are read begins alone.
template <class S>
struct Stretch {
  static constexpr int kWidth = Access<S>::kWidth;
  static constexpr uint32_t kLine = 128;  // bytes
  using C = typename Access<S>::C;

  int32_t lane, lanes, head, tail;
  int64_t packets;

  __device__ __forceinline__ Stretch(const char* base, int64_t length, int lane, int lanes)
      : Stretch(beyond_line(base), length, lane, lanes) {}
  // beyond: bytes from the line of the memory that it begins in.
  __device__ __forceinline__ Stretch(uint32_t beyond, int64_t length, int lane, int lanes) : lane(lane), lanes(lanes) {
    head = beyond == 0 ? 0 : static_cast<int32_t>((kLine - beyond) / sizeof(S));
    if (head > length) head = static_cast<int32_t>(length);
    packets = (length - head) / kWidth;
    tail = static_cast<int32_t>(length - head - packets * kWidth);
  }
  __device__ __forceinline__ static uint32_t beyond_line(const char* base) {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(base) % kLine);
  }
  __device__ __forceinline__ int64_t place(int64_t packet) const { return head + packet * kWidth; }

  // body(Count<M>(), places): at most U packets at a time, their first elements' places, which lie `lanes` packets
  // apart. backward: what was read last comes first, for that is what caches still have.
  template <int U, class Body>
  __device__ __forceinline__ void each(bool backward, const Body& body) const {
    const int64_t round = int64_t{U} * lanes, rounds = packets / round;
    auto rest = [&] {
      for (int64_t p = rounds * round + lane; p < packets; p += lanes) {
        keep_rolled(p);
        body(std::integral_constant<int, 1>(), place(p));
      }
    };
    if (backward) rest();
    for (int64_t r = 0; r < rounds; r++) {
      keep_rolled(r);
      body(std::integral_constant<int, U>(), place((backward ? rounds - 1 - r : r) * round + lane));
    }
    if (!backward) rest();
  }
  // body(place) of the single elements.
  template <class Body>
  __device__ __forceinline__ void each_single(const Body& body) const {
    for (int32_t i = lane; i < head + tail; i += lanes) {
      keep_rolled(i);
      body(i < head ? int64_t{i} : packets * kWidth + i);
    }
  }
  __device__ __forceinline__ int64_t apart() const { return int64_t{lanes} * kWidth; }
};

// M packets of a row that begins at `base`, the first at `place`.
template <class S, int M>
__device__ __forceinline__ void read_packets(const char* base, int64_t place, int64_t apart, bool aligned,
                                             uint4 (&raw)[M]) {
  constexpr int kWidth = Access<S>::kWidth;
#pragma unroll
  for (int m = 0; m < M; m++) {
    const char* at = base + (place + m * apart) * int64_t{sizeof(S)};
    if (aligned) {
      raw[m] = read_packet(at);
    } else {
      alignas(16) S one[kWidth];
#pragma unroll
      for (int w = 0; w < kWidth; w++) one[w] = *reinterpret_cast<const S*>(at + w * sizeof(S));
      memcpy(&raw[m], one, sizeof one);
    }
  }
}
template <class S, class C>
__device__ __forceinline__ void write_elements(char* base, int64_t place, bool aligned, const C* values) {
  char* at = base + place * int64_t{sizeof(S)};
  if (aligned) {
    write_packet(at, pack_packet<S>(values));
  } else {
#pragma unroll
    for (int w = 0; w < Access<S>::kWidth; w++) set_element<S>(at + w * sizeof(S), values[w]);
  }
}
// Whether packets of one are packets of the other.
__device__ __forceinline__ bool same_cut(const char* a, const char* b) {
  return ((reinterpret_cast<uintptr_t>(a) ^ reinterpret_cast<uintptr_t>(b)) & 15u) == 0;
}

}  // namespace cuda
