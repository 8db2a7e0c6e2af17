// SPDX-License-Identifier: Apache-2.0
// Normalisation of many short lines, as tiles of them lie turned (short_lines.cpp).
#include "loop.hpp"

namespace cpu::PG_CPU_ISA {
namespace {

template <class T, bool kCentred>
void norm(const T* x, int64_t n, double eps, const T* weight, const T* bias, T* y, T* means, T* invstds) {
  constexpr int64_t kCount = kLines<T>;
  T mean[kCount] = {}, squares[kCount] = {}, invstd[kCount];
  if constexpr (kCentred) {
    for (int64_t c = 0; c < n; c++) {
      for (int64_t r = 0; r < kCount; r++) mean[r] += x[c * kCount + r];
    }
    for (int64_t r = 0; r < kCount; r++)
      mean[r] = static_cast<T>(static_cast<double>(mean[r]) / static_cast<double>(n));
  }
  for (int64_t c = 0; c < n; c++) {
    for (int64_t r = 0; r < kCount; r++) {
      T d = x[c * kCount + r] - mean[r];
      squares[r] += d * d;
    }
  }
  for (int64_t r = 0; r < kCount; r++) {
    double variance = static_cast<double>(squares[r]) / static_cast<double>(n);
    invstd[r] = static_cast<T>(1 / __builtin_sqrt(variance + eps));
  }
  for (int64_t c = 0; c < n; c++) {
    T w = weight[c], b = kCentred ? bias[c] : T(0);
    PG_LOOP
    for (int64_t r = 0; r < kCount; r++) {
      T scaled = (x[c * kCount + r] - mean[r]) * invstd[r] * w;
      y[c * kCount + r] = kCentred ? scaled + b : scaled;
    }
  }
  for (int64_t r = 0; r < kCount; r++) means[r] = mean[r], invstds[r] = invstd[r];
}

template <class T>
void norm_lines(const void* x, int64_t n, bool centred, double eps, const void* weight, const void* bias, void* y,
                void* mean, void* invstd) {
  (centred ? norm<T, true> : norm<T, false>)(static_cast<const T*>(x), n, eps, static_cast<const T*>(weight),
                                             static_cast<const T*>(bias), static_cast<T*>(y), static_cast<T*>(mean),
                                             static_cast<T*>(invstd));
}

template <class T, bool kCentred>
void norm_grad(const T* dy, const T* x, int64_t n, const T* mean, const T* invstd, const T* weight, T* dx, T* dweight,
               T* dbias) {
  constexpr int64_t kCount = kLines<T>;
  T shift[kCount] = {}, slope[kCount] = {}, m[kCount] = {}, s[kCount];
  for (int64_t r = 0; r < kCount; r++) s[r] = invstd[r];
  if constexpr (kCentred)
    for (int64_t r = 0; r < kCount; r++) m[r] = mean[r];
  for (int64_t c = 0; c < n; c++) {
    T w = weight[c];
    PG_LOOP
    for (int64_t r = 0; r < kCount; r++) {
      T d = dy[c * kCount + r], g = d * w, xh = (x[c * kCount + r] - m[r]) * s[r];
      if constexpr (kCentred) shift[r] += g, dbias[c * kCount + r] += d;
      slope[r] += g * xh;
      dweight[c * kCount + r] += d * xh;
    }
  }
  T scale = static_cast<T>(1 / static_cast<double>(n));
  for (int64_t r = 0; r < kCount; r++) shift[r] *= scale, slope[r] *= scale;
  for (int64_t c = 0; c < n; c++) {
    T w = weight[c];
    PG_LOOP
    for (int64_t r = 0; r < kCount; r++) {
      T xh = (x[c * kCount + r] - m[r]) * s[r], change = dy[c * kCount + r] * w;
      if constexpr (kCentred) change -= shift[r];
      dx[c * kCount + r] = s[r] * (change - xh * slope[r]);
    }
  }
}

template <class T>
void norm_grad_lines(const void* dy, const void* x, int64_t n, bool centred, const void* mean, const void* invstd,
                     const void* weight, void* dx, void* dweight, void* dbias) {
  (centred ? norm_grad<T, true> : norm_grad<T, false>)(static_cast<const T*>(dy), static_cast<const T*>(x), n,
                                                       static_cast<const T*>(mean), static_cast<const T*>(invstd),
                                                       static_cast<const T*>(weight), static_cast<T*>(dx),
                                                       static_cast<T*>(dweight), static_cast<T*>(dbias));
}

}  // namespace

void fill_norm_lines(Simd& table) {
  table.norm_lines[0] = norm_lines<float>;
  table.norm_lines[1] = norm_lines<double>;
  table.norm_grad_lines[0] = norm_grad_lines<float>;
  table.norm_grad_lines[1] = norm_grad_lines<double>;
}

}  // namespace cpu::PG_CPU_ISA
