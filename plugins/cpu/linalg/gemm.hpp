// SPDX-License-Identifier: Apache-2.0
// The blocked matrix product of the element types that oneDNN does not multiply on this processor: float64, integers,
// and 16-bit floats without AVX-512. Operands are packed into panels, so any strides cost the same.
#pragma once

#include <cstdint>

namespace pg::cpu {

// A matrix in memory: element (i, j) lies at data[i * row + j * column].
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
};

// Bytes of scratch that gemm wants for these dimensions.
template <class T>
uint64_t gemm_workspace(int64_t m, int64_t n, int64_t k);

// What c starts from: nothing, a bias per column, or what it holds.
template <class T>
struct Start {
  const T* bias = nullptr;
  int64_t bias_stride = 1;  // in elements
  bool add = false;         // c += a b
};

// c[m, n] = a[m, k] b[k, n] + start. The result does not depend on the number of threads. `scratch` is aligned to 64
// bytes. m, n and k are positive.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c, Start<T> start,
          void* scratch);

}  // namespace pg::cpu
