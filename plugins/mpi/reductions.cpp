// SPDX-License-Identifier: Apache-2.0
#include "reductions.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include "perigee/kernels/float16.hpp"

namespace mpi {
namespace {

inline float wide(float x) { return x; }
inline double wide(double x) { return x; }
template <class T>
requires std::is_integral_v<T> T wide(T x) { return x; }
inline float wide(pg::f16 x) { return pg::to_float(x); }
inline float wide(pg::bf16 x) { return pg::to_float(x); }

template <class T, class W>
T narrow(W x) {
  if constexpr (std::is_same_v<T, pg::f16>) {
    return pg::to_f16(x);
  } else if constexpr (std::is_same_v<T, pg::bf16>) {
    return pg::to_bf16(x);
  } else {
    return x;
  }
}

// NaN where any is; both have their arguments in the same place on all ranks, so all get the same bits. Sums of whole
// numbers wrap around.
template <uint32_t kind, class W>
W join(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    if constexpr (kind == PG_REDUCE_MAX) return std::max(a, b);
    if constexpr (kind == PG_REDUCE_MIN) return std::min(a, b);
    using U = std::make_unsigned_t<W>;
    return static_cast<W>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    if constexpr (kind == PG_REDUCE_MEAN) return a * W(0.5) + b * W(0.5);
    if constexpr (kind == PG_REDUCE_MAX) return a > b || std::isnan(a) ? a : b;
    if constexpr (kind == PG_REDUCE_MIN) return a < b || std::isnan(a) ? a : b;
    return a + b;
  }
}

template <class T, uint32_t kind>
void combine(const void* lower, const void* upper, void* out, uint64_t count) {
  const T *a = static_cast<const T*>(lower), *b = static_cast<const T*>(upper);
  T* y = static_cast<T*>(out);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
  for (uint64_t i = 0; i < count; i++) y[i] = narrow<T>(join<kind>(wide(a[i]), wide(b[i])));
}

// As MPI calls it: inout = in (op) inout.
template <class T, uint32_t kind>
void reduce(void* in, void* inout, int* count, MPI_Datatype*) {
  combine<T, kind>(in, inout, inout, static_cast<uint64_t>(*count));
}

// Never destroyed: the plugin is closed after statics that were made while it worked.
std::map<std::pair<uint32_t, uint32_t>, MPI_Op>& made() {
  static auto& ops = *new std::map<std::pair<uint32_t, uint32_t>, MPI_Op>;
  return ops;
}

template <class T>
MPI_User_function* function_of(uint32_t kind) {
  switch (kind) {
    case PG_REDUCE_MEAN: return reduce<T, PG_REDUCE_MEAN>;
    case PG_REDUCE_MAX: return reduce<T, PG_REDUCE_MAX>;
    case PG_REDUCE_MIN: return reduce<T, PG_REDUCE_MIN>;
    default: return reduce<T, PG_REDUCE_SUM>;
  }
}

template <class T>
Combine combine_of(uint32_t kind) {
  switch (kind) {
    case PG_REDUCE_MAX: return combine<T, PG_REDUCE_MAX>;
    case PG_REDUCE_MIN: return combine<T, PG_REDUCE_MIN>;
    default: return combine<T, PG_REDUCE_SUM>;
  }
}

template <class T>
MPI_Op own(uint32_t dtype, uint32_t kind) {
  auto [place, fresh] = made().try_emplace({dtype, kind}, MPI_OP_NULL);
  if (fresh) MPI_Op_create(function_of<T>(kind), 1, &place->second);
  return place->second;
}

template <class T>
void divide_all(void* data, uint64_t count, double by) {
  T* x = static_cast<T*>(data);
  for (uint64_t i = 0; i < count; i++) {
    auto value = wide(x[i]);
    x[i] = narrow<T>(value / static_cast<decltype(value)>(by));
  }
}

template <class T>
Reduction half_of(MPI_Datatype type, uint32_t dtype) {
  return {type, own<T>(dtype, PG_REDUCE_MEAN), combine<T, PG_REDUCE_MEAN>};
}

// What MPI has, and what it has not.
template <class T>
Reduction standard(MPI_Datatype type, uint32_t kind) {
  const MPI_Op op = kind == PG_REDUCE_MAX ? MPI_MAX : kind == PG_REDUCE_MIN ? MPI_MIN : MPI_SUM;
  return {type, op, combine_of<T>(kind)};
}
template <class T>
Reduction special(MPI_Datatype type, uint32_t dtype, uint32_t kind) {
  return {type, own<T>(dtype, kind), combine_of<T>(kind)};
}
template <class T>
Reduction floating(MPI_Datatype type, uint32_t dtype, uint32_t kind) {
  return kind == PG_REDUCE_SUM ? standard<T>(type, kind) : special<T>(type, dtype, kind);
}

}  // namespace

MPI_Datatype carrier(uint32_t dtype) {
  switch (pg::dtype_bits(dtype)) {
    case 8: return MPI_UINT8_T;
    case 16: return MPI_UINT16_T;
    case 32: return MPI_UINT32_T;
    case 64: return MPI_UINT64_T;
    case 128: return MPI_C_DOUBLE_COMPLEX;
    default: pg::fail_support(pg::format("mpi carries no %s", pg::dtype_name(dtype)));
  }
}

Reduction mean_of_two(uint32_t dtype) {
  switch (dtype) {
    case PG_F32: return half_of<float>(MPI_FLOAT, dtype);
    case PG_F64: return half_of<double>(MPI_DOUBLE, dtype);
    case PG_F16: return half_of<pg::f16>(MPI_UINT16_T, dtype);
    case PG_BF16: return half_of<pg::bf16>(MPI_UINT16_T, dtype);
    default: pg::fail_support(pg::format("mpi has no such reduction of %s", pg::dtype_name(dtype)));
  }
}

// A mean is a sum until it is divided.
Reduction reduction(uint32_t dtype, uint32_t kind) {
  const bool mean = kind == PG_REDUCE_MEAN;
  if (mean) kind = PG_REDUCE_SUM;
  switch (dtype) {
    case PG_F32: return floating<float>(MPI_FLOAT, dtype, kind);
    case PG_F64: return floating<double>(MPI_DOUBLE, dtype, kind);
    case PG_F16: return special<pg::f16>(MPI_UINT16_T, dtype, kind);
    case PG_BF16: return special<pg::bf16>(MPI_UINT16_T, dtype, kind);
    default: break;
  }
  if (!mean) {
    switch (dtype) {
      case PG_I64: return standard<int64_t>(MPI_INT64_T, kind);
      case PG_I32: return standard<int32_t>(MPI_INT32_T, kind);
      case PG_I16: return standard<int16_t>(MPI_INT16_T, kind);
      case PG_I8: return standard<int8_t>(MPI_INT8_T, kind);
      case PG_U8: return standard<uint8_t>(MPI_UINT8_T, kind);
      default: break;
    }
  }
  pg::fail_support(pg::format("mpi has no such reduction of %s", pg::dtype_name(dtype)));
}

void free_reductions() {
  for (auto& [key, op] : made()) MPI_Op_free(&op);
  made().clear();
}

void divide(uint32_t dtype, void* data, uint64_t count, double by) {
  switch (dtype) {
    case PG_F32: return divide_all<float>(data, count, by);
    case PG_F64: return divide_all<double>(data, count, by);
    case PG_F16: return divide_all<pg::f16>(data, count, by);
    case PG_BF16: return divide_all<pg::bf16>(data, count, by);
    default: return;
  }
}

}  // namespace mpi
