// SPDX-License-Identifier: Apache-2.0
// What lies behind cuBLASLt's handles and descriptors here, and the product itself.
#pragma once

#include "numbers.hpp"

// What the heuristics chose, kept in the algorithm's bytes: good for this problem and these alignments only.
struct StandinAlgorithm {
  uint64_t magic, problem, workspace;
  uint32_t align_a, align_b, align_c, align_bias;
};
static_assert(sizeof(StandinAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

struct StandinMatrix {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld, batch_offset = 0;
  int32_t batch = 1;

  standin::Number number() const;
  int64_t extent() const;  // elements from the first to behind the last
};

struct StandinProduct {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;

  bool has_bias() const { return (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool knows_epilogue() const;
  double activated(double x) const;
};

struct StandinPreference {
  uint64_t workspace = 0;
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t align_a = 256, align_b = 256, align_c = 256, align_d = 256;
};

namespace standin {

// d = f(op(a) op(b), plus a bias per row of d). On the stream's thread.
void multiply(const StandinProduct& op, const StandinMatrix& a, const StandinMatrix& b, const StandinMatrix& d,
              double alpha, double beta, const void* a_data, const void* b_data, const void* c_data, void* d_data);

}  // namespace standin
