// SPDX-License-Identifier: Apache-2.0
// cuBLASLt's descriptors, which destroy themselves, unless the process ends. Making them needs neither a GPU nor a
// driver.
#pragma once

#include "vendor.hpp"

namespace cuda::linalg {

class Operation {
 public:
  Operation(cublasComputeType_t compute, cudaDataType_t scale) {
    PG_CUBLAS(cublasLtMatmulDescCreate(&desc_, compute, scale));
  }
  Operation(const Operation&) = delete;
  ~Operation() {
    if (!is_exiting()) PG_CUBLAS_WARN(cublasLtMatmulDescDestroy(desc_));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t name, const T& value) {
    PG_CUBLAS(cublasLtMatmulDescSetAttribute(desc_, name, &value, sizeof value));
  }
  cublasLtMatmulDesc_t get() const { return desc_; }

 private:
  cublasLtMatmulDesc_t desc_ = nullptr;
};

class Layout {
 public:
  Layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t step) {
    PG_CUBLAS(
        cublasLtMatrixLayoutCreate(&layout_, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
    if (batch == 1) return;
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  Layout(const Layout&) = delete;
  ~Layout() {
    if (!is_exiting()) PG_CUBLAS_WARN(cublasLtMatrixLayoutDestroy(layout_));
  }
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t name, const T& value) {
    PG_CUBLAS(cublasLtMatrixLayoutSetAttribute(layout_, name, &value, sizeof value));
  }
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Preference {
 public:
  Preference() { PG_CUBLAS(cublasLtMatmulPreferenceCreate(&preference_)); }
  Preference(const Preference&) = delete;
  ~Preference() {
    if (!is_exiting()) PG_CUBLAS_WARN(cublasLtMatmulPreferenceDestroy(preference_));
  }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t name, const T& value) {
    PG_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference_, name, &value, sizeof value));
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace cuda::linalg
