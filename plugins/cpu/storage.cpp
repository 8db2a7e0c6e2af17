// SPDX-License-Identifier: Apache-2.0
#include "storage.hpp"

#include <type_traits>

#include "perigee/kernels/strided.hpp"

namespace cpu {

Storage storage_of(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return sF64;
    case PG_F32: return sF32;
    case PG_F16: return sF16;
    case PG_BF16: return sBF16;
    case PG_I64: return sI64;
    case PG_I32: return sI32;
    case PG_I16: return sI16;
    case PG_I8: return sI8;
    case PG_U8: return sU8;
    case PG_B8: return sBool;
    case PG_DTYPE(PG_FLOAT8_E4M3FN, 8): return sE4M3FN;
    case PG_DTYPE(PG_FLOAT8_E5M2, 8): return sE5M2;
    default: return kStorageCount;
  }
}

namespace {

template <class To, class From>
To cast(From x) {
  if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && sizeof(To) < 4)
    return static_cast<To>(static_cast<int32_t>(x));  // wraps, where a direct cast would be undefined
  else
    return static_cast<To>(x);
}

template <class From, class To>
void convert_plain(const void* source, void* target, int64_t n) {
  const From* s = static_cast<const From*>(source);
  To* t = static_cast<To*>(target);
  for (int64_t i = 0; i < n; i++) t[i] = cast<To>(s[i]);
}

template <class T>
constexpr bool is_half = std::is_same_v<T, pg::f16> || std::is_same_v<T, pg::bf16>;

// Floats that C++ has no type for.
bool is_narrow(Storage s) { return s == sF16 || s == sBF16 || is_float8(s); }

ConvertFn plain_converter(Storage from, Storage to) {
  if (is_narrow(from) || is_narrow(to)) return nullptr;
  return visit(from, [&](auto a) -> ConvertFn {
    return visit(to, [&](auto b) -> ConvertFn {
      using From = decltype(a);
      using To = decltype(b);
      if constexpr (is_half<From> || is_half<To>)
        return nullptr;
      else
        return convert_plain<From, To>;
    });
  });
}

struct Converters {
  ConvertFn plain[kStorageCount][kStorageCount];
  Converters() {
    for (int i = 0; i < kStorageCount; i++) {
      for (int j = 0; j < kStorageCount; j++) plain[i][j] = plain_converter(Storage(i), Storage(j));
    }
  }
};
const Converters converters;

ConvertFn widener(Storage from) {
  return from == sF16    ? simd->f16_to_f32
         : from == sBF16 ? simd->bf16_to_f32
         : from == sE5M2 ? simd->e5m2_to_f32
                         : simd->e4m3fn_to_f32;
}
ConvertFn narrower(Storage to) {
  return to == sF16    ? simd->f32_to_f16
         : to == sBF16 ? simd->f32_to_bf16
         : to == sE5M2 ? simd->f32_to_e5m2
                       : simd->f32_to_e4m3fn;
}

}  // namespace

void convert(Storage from, Storage to, const void* source, void* target, int64_t n) {
  if (n == 0) return;  // an empty tensor has no address
  if (from == to) {
    std::memcpy(target, source, static_cast<size_t>(n * kStorageBytes[from]));
  } else if (from == sF32 && is_narrow(to)) {
    narrower(to)(source, target, n);
  } else if (is_narrow(from) && to == sF32) {
    widener(from)(source, target, n);
  } else if (!is_narrow(from) && !is_narrow(to)) {
    converters.plain[from][to](source, target, n);
  } else {  // by way of float32
    alignas(64) float middle[kBlock];
    for (int64_t i = 0; i < n; i += kBlock) {
      int64_t m = n - i < kBlock ? n - i : kBlock;
      convert(from, sF32, static_cast<const char*>(source) + i * kStorageBytes[from], middle, m);
      convert(sF32, to, middle, static_cast<char*>(target) + i * kStorageBytes[to], m);
    }
  }
}

void put_number(Storage to, double value, void* target) {
  if (is_narrow(to)) {
    const auto narrow = static_cast<float>(value);
    convert(sF32, to, &narrow, target, 1);
  } else {
    converters.plain[sF64][to](&value, target, 1);
  }
}

void put_number(Storage to, const pg_number& value, void* target) {
  if (to == sI64 && pg::is_whole(value)) {  // all others hold what a double holds
    std::memcpy(target, &value.integer, sizeof value.integer);
  } else {
    put_number(to, value.real, target);
  }
}

void fill_elements(void* target, const void* value, int bytes, int64_t n) {
  visit_bytes(bytes, [&](auto zero) {
    using E = decltype(zero);
    E element;
    std::memcpy(&element, value, sizeof element);
    E* t = static_cast<E*>(target);
    for (int64_t i = 0; i < n; i++) t[i] = element;
  });
}

void refuse_turned(const pg::KernelCall& call) {
  constexpr int64_t kWorthIt = 4096;  // elements
  const pg_tensor& out = call.out(0);
  if (!pg::fills_memory(out)) return;
  int order[PG_MAX_RANK];
  const int axes = pg::axes_by_stride(out, order);
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (!call.has(i) || pg::element_count(call.in(i)) < kWorthIt) continue;
    const pg_tensor& t = call.in(i);
    if (t.rank > out.rank) continue;
    int64_t last = 0;  // the step along the innermost axis of the result that has one
    for (int k = 0; k < axes; k++) {
      const int axis = order[k] - static_cast<int>(out.rank - t.rank);
      if (axis < 0 || t.shape[axis] == 1 || t.stride[axis] == 0) continue;
      if (last == 0) last = t.stride[axis];
      if (t.stride[axis] < last) pg::fail_support("an input lies turned: a copy of it is taken faster");
    }
  }
}

}  // namespace cpu
