// SPDX-License-Identifier: Apache-2.0
// perigee/kernels/reference/operand.hpp: what the reference definitions compute on: a tensor in host memory, read into
// a row-major vector of the type they compute in, and written back from one.
//
// The compute type W is double for float64, float for the other floats (float8 is only moved and converted), int64_t
// for integers and booleans. Sums of floats run in double: a reference errs less than what is compared with it.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <vector>

#include "perigee/kernels/float8.hpp"
#include "perigee/kernels/out_of_range.hpp"
#include "perigee/plugin.hpp"

namespace pg::reference {

using Dims = std::vector<int64_t>;

inline int64_t product(const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

struct Operand {
  uint32_t dtype = 0;  // 0: absent
  Dims shape, stride;  // strides in elements, 0 where broadcast
  void* data = nullptr;

  Operand() = default;
  Operand(const pg_tensor& t, void* data)
      : dtype(dtype_of(t)), shape(t.shape, t.shape + t.rank), stride(t.stride, t.stride + t.rank), data(data) {}
  explicit operator bool() const { return dtype != 0; }
  int64_t count() const { return product(shape); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

struct b8 {  // a boolean in memory: any byte but 0 is true
  uint8_t value;
};

template <class W>
constexpr bool is_float = std::is_floating_point_v<W>;
template <class T>
constexpr bool is_float8 = std::is_same_v<T, f8e4m3fn> || std::is_same_v<T, f8e5m2>;
template <class W>
using Sum = std::conditional_t<is_float<W>, double, int64_t>;

// Sums and products in W; those of integers wrap around.
template <class W>
W wrapping_add(W a, W b) {
  if constexpr (is_float<W>)
    return a + b;
  else
    return static_cast<W>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class W>
W wrapping_multiply(W a, W b) {
  if constexpr (is_float<W>)
    return a * b;
  else
    return static_cast<W>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// ---- conversions ----

// Towards zero; what does not fit is clamped, NaN is 0.
inline int64_t truncate(double x) {
  if (!(x > -0x1p63)) return x != x ? 0 : INT64_MIN;
  return x < 0x1p63 ? static_cast<int64_t>(x) : INT64_MAX;
}

// A number as what computes in integers sees it.
inline int64_t whole_of(const pg_number& number) { return is_whole(number) ? number.integer : truncate(number.real); }

template <class T>
auto widen(T x) {
  if constexpr (std::is_same_v<T, f16> || std::is_same_v<T, bf16> || is_float8<T>)
    return to_float(x);
  else if constexpr (std::is_same_v<T, b8>)
    return static_cast<int64_t>(x.value != 0);
  else if constexpr (is_float<T>)
    return x;
  else
    return static_cast<int64_t>(x);
}

// Any of float, double, int64_t to the type in memory. Integers wrap around.
template <class T, class W>
T narrow(W x) {
  if constexpr (std::is_same_v<T, f16>)
    return to_f16(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, f8e4m3fn>)
    return to_f8e4m3fn(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, f8e5m2>)
    return to_f8e5m2(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, b8>)
    return b8{static_cast<uint8_t>(x != W(0))};
  else if constexpr (is_float<T> || !is_float<W>)
    return static_cast<T>(x);
  else
    return static_cast<T>(truncate(x));
}

// body(T()) with the type that holds the dtype in memory.
template <class Body>
void with_storage(uint32_t dtype, Body&& body) {
  switch (dtype) {
    case PG_F64: return body(double());
    case PG_F32: return body(float());
    case PG_F16: return body(f16());
    case PG_BF16: return body(bf16());
    case PG_I64: return body(int64_t());
    case PG_I32: return body(int32_t());
    case PG_I16: return body(int16_t());
    case PG_I8: return body(int8_t());
    case PG_U8: return body(uint8_t());
    case PG_B8: return body(b8());
    case PG_DTYPE(PG_FLOAT8_E4M3FN, 8): return body(f8e4m3fn());
    case PG_DTYPE(PG_FLOAT8_E5M2, 8): return body(f8e5m2());
    default: fail_support(format("%s is not computed with here", dtype_name(dtype)));
  }
}

// body(W()) with the type that the dtype is computed in.
template <class Body>
void with_compute(uint32_t dtype, Body&& body) {
  if (dtype == PG_F64) return body(double());
  if ((dtype_class(dtype) & (PG_M_FLOAT | PG_M_FLOAT8)) != 0) return body(float());
  return body(int64_t());
}

// ---- reading and writing ----

// body(element offset) for every element in row-major order.
template <class Body>
void each_offset(const Dims& shape, const Dims& stride, Body&& body) {
  int64_t rank = static_cast<int64_t>(shape.size()), at = 0;
  if (product(shape) == 0) return;
  Dims index(shape.size(), 0);
  for (;;) {
    body(at);
    int64_t axis = rank - 1;
    for (; axis >= 0; axis--) {
      at += stride[axis];
      if (++index[axis] < shape[axis]) break;
      at -= stride[axis] * shape[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <class W>
std::vector<W> read(const Operand& x) {
  std::vector<W> out;
  out.reserve(static_cast<size_t>(x.count()));
  with_storage(x.dtype, [&](auto tag) {
    const auto* data = static_cast<const decltype(tag)*>(x.data);
    each_offset(x.shape, x.stride, [&](int64_t at) { out.push_back(narrow<W>(widen(data[at]))); });
  });
  return out;
}

template <class W>
void write(const Operand& y, const std::vector<W>& values) {
  const W* next = values.data();
  with_storage(y.dtype, [&](auto tag) {
    auto* data = static_cast<decltype(tag)*>(y.data);
    each_offset(y.shape, y.stride, [&](int64_t at) { data[at] = narrow<decltype(tag)>(*next++); });
  });
}

// Read as if broadcast to `shape`.
inline Operand broadcast(Operand x, const Dims& shape) {
  Dims stride(shape.size(), 0);
  size_t lead = shape.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); i++) stride[lead + i] = x.shape[i] == 1 ? 0 : x.stride[i];
  x.shape = shape;
  x.stride = stride;
  return x;
}

// Row-major strides.
inline Dims dense(const Dims& shape) {
  Dims stride(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * (shape[i] == 0 ? 1 : shape[i]);
  return stride;
}

// A row-major tensor as [before, axis, after].
struct AxisSplit {
  int64_t before = 1, length = 1, after = 1;
  AxisSplit(const Dims& shape, int64_t axis) {
    if (shape.empty()) return;
    for (int64_t i = 0; i < axis; i++) before *= shape[i];
    length = shape[axis];
    for (size_t i = axis + 1; i < shape.size(); i++) after *= shape[i];
  }
};

// "[4, 1]": where flat element `at` stands, for messages.
inline std::string place_text(const Dims& shape, size_t at) {
  return pg::place_text(shape.data(), static_cast<uint32_t>(shape.size()), static_cast<int64_t>(at));
}

// The index tensor; throws "op: index 12 at position [4] is out of range for axis 1; expected 0 to 9". `skip` is taken
// whatever the limit.
inline std::vector<int64_t> read_index(const Operand& index, int64_t limit, const char* op, IndexName name,
                                       std::optional<int64_t> skip = {}) {
  auto numbers = read<int64_t>(index);
  for (size_t i = 0; i < numbers.size(); i++)
    if ((numbers[i] < 0 || numbers[i] >= limit) && skip != numbers[i])
      fail_argument(op + (": " + out_of_range(name, numbers[i], place_text(index.shape, i), limit)));
  return numbers;
}

}  // namespace pg::reference
