// SPDX-License-Identifier: Apache-2.0
// The one engine of elementwise kernels. What is computed is a functor:
//
//   template <class T>
//   struct Scale : Function<T, T> {        // inputs are computed in T, so is the result (Truth: a boolean)
//     static constexpr int kInputs = 1;    // kOutputs = 2: a second, boolean result
//     static constexpr uint32_t kWidths = 4;  // packets it is compiled for, beside single elements
//     T factor;
//     template <int V>
//     __device__ void operator()(int64_t at, const T (&x)[1][V], T (&y)[V]) const { ... }
//   };
//   Loop<2> loop({typed(y), typed(x)}, widths_for(dtype));                   // at prepare
//   run(stream, loop, {y_address, x_address}, Scale<float>{{}, 2.0f});       // at launch
//
// `at` is the packet's first element in the loop's order. Every input is read before an output is written, so that an
// output may be one of the inputs. One kernel serves all dtypes of a compute type: which lies where is an argument.
#pragma once

#include "launch.hpp"
#include "packets.cuh"

namespace cuda::elementwise {

// Packets for functors that compute in T, where all operands are stored in T's dtypes or as booleans.
template <class T>
constexpr uint32_t widths_of = sizeof(T) == 8             ? 2
                               : std::is_same_v<T, float> ? 8 | 4
                               : sizeof(T) == 4           ? 4
                                                          : 8;

template <class Input, class Output>
struct Function {
  using In = Input;
  using Out = Output;
  static constexpr int kInputs = 1, kOutputs = 1;
  static constexpr uint32_t kWidths = widths_of<Input>;
  static constexpr bool kAnyOutput = false;  // the output's storage need not belong to Out
  static constexpr bool kRenewed = true;     // holds numbers that captured launches renew (runtime_block.hpp)
  Input number[2] = {};                      // in place of inputs
};

template <class F>
constexpr int operands_of = F::kOutputs + F::kInputs;
template <class F>
using LoopOf = Loop<operands_of<F>>;

template <int N>
struct Place {
  int64_t at, offset[N];  // offsets in elements
  int count;              // elements of the packet; 0: none
};

template <int V, int N>
__device__ __forceinline__ Place<N> locate(const Walk<N>& walk, int64_t item) {
  Place<N> place;
  place.count = V;
  place.at = item * V;
  if (walk.rank <= 1) {
    if constexpr (V > 1) {
      place.at += walk.head;
      if (item >= walk.packets) {
        bool first = item == walk.packets;
        place.at = first ? 0 : walk.head + walk.packets * V;
        place.count = static_cast<int>(first ? walk.head : walk.tail);
      }
    }
#pragma unroll
    for (int k = 0; k < N; k++) place.offset[k] = place.at * walk.stride[k][0];
    return place;
  }
#pragma unroll
  for (int k = 0; k < N; k++) place.offset[k] = 0;
  if (!walk.wide) {
    auto rest = static_cast<uint32_t>(item);
#pragma unroll 1
    for (int i = walk.rank - 1; i > 0; i--) {
      uint32_t next = walk.divide[i].divide(rest), index = rest - next * walk.divide[i].divisor;
      rest = next;
#pragma unroll
      for (int k = 0; k < N; k++) place.offset[k] += index * static_cast<uint32_t>(walk.stride[k][i]);
    }
#pragma unroll
    for (int k = 0; k < N; k++) place.offset[k] += rest * static_cast<uint32_t>(walk.stride[k][0]);
  } else {
    int64_t rest = item;
#pragma unroll 1
    for (int i = walk.rank - 1; i > 0; i--) {
      int64_t next = rest / walk.shape[i], index = rest - next * walk.shape[i];
      rest = next;
#pragma unroll
      for (int k = 0; k < N; k++) place.offset[k] += index * walk.stride[k][i];
    }
#pragma unroll
    for (int k = 0; k < N; k++) place.offset[k] += rest * walk.stride[k][0];
  }
  return place;
}

// Given: F, or of captured launches const F*.
template <class F, class Given, int V, int N>
__global__ void __launch_bounds__(kThreads)
    elementwise_kernel(const __grid_constant__ Walk<N> walk, const __grid_constant__ Given given) {
  const F& f = functor_of(given);
  constexpr int kInputs = F::kInputs > 0 ? F::kInputs : 1;
  using In = typename F::In;
  using Out = typename F::Out;
  int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (; item < walk.items; item += static_cast<int64_t>(gridDim.x) * kThreads) {
    Place<N> place = locate<V>(walk, item);
    auto address = [&](int operand) { return walk.data[operand] + place.offset[operand] * walk.bytes[operand]; };
    Raw raw[kInputs];
#pragma unroll
    for (int k = 0; k < F::kInputs; k++) {
      int o = F::kOutputs + k;
      if (walk.access[o] == kNumber) continue;
      raw[k] = load_raw<V, sizes_of<In>>(address(o), walk.bytes[o], walk.access[o], place.count);
    }
    In x[kInputs][V];
#pragma unroll
    for (int k = 0; k < F::kInputs; k++) {
      int o = F::kOutputs + k;
      if (walk.access[o] != kNumber) {
        decode<In, V>(raw[k], walk.storage[o], x[k]);
      } else {
#pragma unroll
        for (int i = 0; i < V; i++) x[k][i] = f.number[k < 2 ? k : 0];
      }
    }
    Out y[V];
    if constexpr (F::kOutputs == 2) {
      Truth second[V];
      f(place.at, x, y, second);
      if (walk.access[1] != kNumber) {
        store_raw<V, 1>(encode<Truth, V>(second, sBool), address(1), 1, walk.access[1], place.count);
      }
    } else {
      f(place.at, x, y);
    }
    if constexpr (F::kAnyOutput) {
      Raw result = encode_any<Out, V>(y, walk.storage[0]);
      store_raw<V, 8 | 4 | 2 | 1>(result, address(0), walk.bytes[0], walk.access[0], place.count);
    } else {
      Raw result = encode<Out, V>(y, walk.storage[0]);
      store_raw<V, sizes_of<Out>>(result, address(0), walk.bytes[0], walk.access[0], place.count);
    }
  }
}

// Outputs first. The address of a number is not looked at; a second output that is none (kNumber) is not written.
// For loops planned with packets of V.
template <int V, class F>
void run_packets(cudaStream_t stream, const LoopOf<F>& loop, void* const (&data)[operands_of<F>], const F& f) {
  if (loop.count() == 0) return;
  auto walk = loop.walk(data);
  if constexpr (!F::kRenewed)
    refuse_renewal();
  else if (const F* at = nullptr; is_renewed(f, at))
    return launch(stream, grid_for(walk.items), elementwise_kernel<F, const F*, V, operands_of<F>>, walk, at);
  launch(stream, grid_for(walk.items), elementwise_kernel<F, F, V, operands_of<F>>, walk, f);
}

// With whichever packets the loop was planned.
template <class F>
void run(cudaStream_t stream, const LoopOf<F>& loop, void* const (&data)[operands_of<F>], const F& f) {
  if constexpr ((F::kWidths & 8) != 0) {
    if (loop.width() == 8) return run_packets<8>(stream, loop, data, f);
  }
  if constexpr ((F::kWidths & 4) != 0) {
    if (loop.width() == 4) return run_packets<4>(stream, loop, data, f);
  }
  if constexpr ((F::kWidths & 2) != 0) {
    if (loop.width() == 2) return run_packets<2>(stream, loop, data, f);
  }
  if (loop.width() != 1) pg::fail(PG_E_INTERNAL, "an elementwise loop was planned with packets that its kernel lacks");
  run_packets<1>(stream, loop, data, f);
}

// The four types that are computed in, by dtype: body(Tag<T>()).
template <class Body>
auto with_compute(uint32_t dtype, Body&& body) {
  if (dtype == PG_F64) return body(Tag<double>());
  if (pg::dtype_class(dtype) == PG_M_FLOAT) return body(Tag<float>());
  if (dtype == PG_I64) return body(Tag<int64_t>());
  return body(Tag<int32_t>());
}

// Packets of functors with the default widths.
inline uint32_t widths_for(uint32_t dtype) {
  return with_compute(dtype, [](auto tag) { return widths_of<typename decltype(tag)::type>; });
}

// body(T()) with unsigned bits of a size, for elements that are only moved.
template <class Body>
auto with_bits(int64_t bytes, Body&& body) {
  switch (bytes) {
    case 1: return body(uint8_t());
    case 2: return body(uint16_t());
    case 4: return body(uint32_t());
    default: return body(uint64_t());
  }
}
inline uint32_t widths_for_bits(uint32_t dtype) {
  return with_bits(pg::dtype_bytes(dtype), [](auto zero) { return widths_of<decltype(zero)>; });
}
// A number as it lies in memory.
inline uint64_t bits_of(uint32_t dtype, const pg_number& value) {
  uint64_t bits = 0;
  auto put = [&](auto element) { std::memcpy(&bits, &element, sizeof element); };
  if (dtype == PG_C64) {
    const float parts[2] = {static_cast<float>(value.real), static_cast<float>(value.imaginary)};
    std::memcpy(&bits, parts, sizeof parts);
  } else if (dtype == PG_I64 && pg::is_whole(value)) {  // all others hold what a double holds
    put(value.integer);
  } else {
    with_any(dtype, [&](auto tag) { put(convert<typename decltype(tag)::type>(value.real)); });
  }
  return bits;
}

// A number given by the program, in the compute type: integers lose the fraction.
template <class T>
T narrow(double value) {
  return convert<T>(value);
}
template <class T>
T number_as(const pg_number& value) {
  if constexpr (std::is_same_v<T, int64_t>)
    if (pg::is_whole(value)) return value.integer;
  return narrow<T>(value.real);
}

}  // namespace cuda::elementwise
