// SPDX-License-Identifier: Apache-2.0
// Copies between any two dtypes and strides, and fills: copy.hpp. What is dense on both sides, or zero, is the
// runtime's work; what is transposed goes through shared memory (transpose.cuh); the rest is elementwise.
#include "../copy.hpp"

#include <cmath>

#include "../elementwise.cuh"
#include "../transpose.cuh"

namespace cuda {
namespace elementwise {
namespace {

// T: unsigned bits, of one dtype on both sides.
template <class T>
struct Move : Function<T, T> {
  static constexpr bool kRenewed = false;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i];
  }
};

template <class T>
struct Convert : Function<T, T> {
  static constexpr uint32_t kWidths = sizeof(T) == 8 ? 2 : 4 | 2;
  static constexpr bool kAnyOutput = true, kRenewed = false;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&x)[1][V], T (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = x[0][i];
  }
};

struct ConvertComplex : Function<Complex, Complex> {
  static constexpr uint32_t kWidths = 0;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const Complex (&x)[1][V], Complex (&y)[V]) const {
    y[0] = x[0][0];
  }
};

template <class T>
struct Fill : Function<T, T> {
  static constexpr int kInputs = 0;
  T value;
  template <int V>
  __device__ __forceinline__ void operator()(int64_t, const T (&)[1][V], T (&y)[V]) const {
#pragma unroll
    for (int i = 0; i < V; i++) y[i] = value;
  }
};

void* start(const pg_tensor& t) { return reinterpret_cast<void*>(t.buffer + t.offset); }
bool is_complex(const pg_tensor& t) { return pg::dtype_class(pg::dtype_of(t)) == PG_M_COMPLEX; }

void require_plain(const pg_tensor& t) {
  storage_of(t);
  if (t.class_id != PG_CLASS_DENSE || t.layout != 0) pg::fail_support("tensors of a private layout are not copied");
}

// One dtype, and neither side is dense throughout.
void copy_moved(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source, int64_t bytes) {
  Loop<2> loop({raw(target), raw(source)}, widths_for_bits(pg::dtype_of(target)));
  if (Transpose transpose; plan_transpose(loop.nest(), transpose)) {
    return copy_transposed(stream, transpose, start(target), start(source), bytes);
  }
  with_bits(bytes, [&](auto zero) { run(stream, loop, {start(target), start(source)}, Move<decltype(zero)>()); });
}

void copy_converted(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source) {
  with_compute(pg::dtype_of(source), [&](auto tag) {
    using F = Convert<typename decltype(tag)::type>;
    Loop<2> loop({typed(target), typed(source)}, F::kWidths);
    run(stream, loop, {start(target), start(source)}, F());
  });
}

void copy_complex(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source) {
  Loop<2> loop({typed(target), typed(source)}, 0);
  run(stream, loop, {start(target), start(source)}, ConvertComplex());
}

// Whether every byte of an element is the same.
bool even_bytes(uint64_t bits, int64_t bytes) {
  for (int64_t i = 1; i < bytes; i++) {
    if (((bits >> (8 * i)) & 0xff) != (bits & 0xff)) return false;
  }
  return true;
}

}  // namespace
}  // namespace elementwise

void copy_tensor(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source) {
  using namespace elementwise;
  require_plain(target);
  require_plain(source);
  int64_t count = pg::element_count(target), bytes = pg::dtype_bytes(pg::dtype_of(target));
  if (count == 0 || is_dry(reinterpret_cast<const void*>(&copy_tensor), count)) return;
  InBlock none(nullptr);
  if (pg::dtype_of(target) != pg::dtype_of(source)) {
    bool complex = is_complex(target) || is_complex(source);
    return complex ? copy_complex(stream, target, source) : copy_converted(stream, target, source);
  }
  Loop<2> loop({raw(target), raw(source)}, 0);
  if (loop.nest().linear(0) && loop.nest().linear(1)) {
    if (start(target) == start(source)) return;
    PG_CUDA(cudaMemcpyAsync(start(target), start(source), static_cast<size_t>(count * bytes), cudaMemcpyDeviceToDevice,
                            stream));
  } else if (bytes == 16) {
    copy_complex(stream, target, source);
  } else {
    copy_moved(stream, target, source, bytes);
  }
}

void fill_tensor(cudaStream_t stream, const pg_tensor& target, const pg_number& value) {
  using namespace elementwise;
  require_plain(target);
  uint32_t dtype = pg::dtype_of(target);
  int64_t count = pg::element_count(target), bytes = pg::dtype_bytes(dtype);
  if (count == 0) return;
  auto is_zero = [](double part) { return part == 0 && !std::signbit(part); };
  uint64_t bits = dtype != PG_C128 ? bits_of(dtype, value) : is_zero(value.real) && is_zero(value.imaginary) ? 0 : 1;
  Loop<1> loop({raw(target)}, widths_for_bits(dtype));
  // A captured fill of a number that changes is a kernel whatever the number is.
  if (runtime_block == nullptr && loop.nest().linear(0) && even_bytes(bits, dtype == PG_C128 ? 8 : bytes)) {
    PG_CUDA(cudaMemsetAsync(start(target), static_cast<int>(bits & 0xff), static_cast<size_t>(count * bytes), stream));
  } else if (dtype == PG_C128) {
    ConvertComplex f;
    f.number[0] = {value.real, value.imaginary};
    run(stream, Loop<2>({typed(target), number()}, 0), {start(target), nullptr}, f);
  } else {
    with_bits(bytes, [&](auto zero) {
      using T = decltype(zero);
      Fill<T> f;
      f.value = static_cast<T>(bits);
      run(stream, loop, {start(target)}, f);
    });
  }
}

}  // namespace cuda
