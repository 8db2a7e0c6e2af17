// SPDX-License-Identifier: Apache-2.0
#include "cublaslt.hpp"

#include <cmath>

standin::Number StandinMatrix::number() const {
  switch (type) {
    case CUDA_R_32F: return standin::Number::kF32;
    case CUDA_R_64F: return standin::Number::kF64;
    case CUDA_R_16F: return standin::Number::kF16;
    case CUDA_R_16BF: return standin::Number::kBf16;
    default: return standin::Number::kNone;
  }
}

int64_t StandinMatrix::extent() const {
  auto r = static_cast<int64_t>(rows), c = static_cast<int64_t>(columns);
  if (r == 0 || c == 0 || batch == 0) return 0;
  return (batch - 1) * batch_offset + (c - 1) * ld + r;
}

bool StandinProduct::knows_epilogue() const {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS: return true;
    default: return false;
  }
}

double StandinProduct::activated(double x) const {
  if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x > 0 ? x : 0;  // NaN becomes 0, as users report of the library
  if ((epilogue & CUBLASLT_EPILOGUE_GELU) == 0) return x;
  // The instruction that there is for tanh has 11 bits.
  double power = std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x));
  return 0.5 * x * (1 + std::round(power * 0x1p11) * 0x1p-11);
}

namespace standin {

void multiply(const StandinProduct& op, const StandinMatrix& a, const StandinMatrix& b, const StandinMatrix& d,
              double alpha, double beta, const void* a_data, const void* b_data, const void* c_data, void* d_data) {
  bool wide = op.compute == CUBLAS_COMPUTE_64F, flip_a = op.transpose_a != CUBLAS_OP_N,
       flip_b = op.transpose_b != CUBLAS_OP_N;
  Number from = a.number(), to = d.number();
  auto depth = static_cast<int64_t>(flip_a ? a.rows : a.columns);
  for (int64_t q = 0; q < d.batch; q++) {
    for (int64_t j = 0; j < static_cast<int64_t>(d.columns); j++) {
      for (int64_t i = 0; i < static_cast<int64_t>(d.rows); i++) {
        Sum sum(wide);
        for (int64_t p = 0; p < depth; p++) {
          int64_t at_a = q * a.batch_offset + (flip_a ? i * a.ld + p : p * a.ld + i);
          int64_t at_b = q * b.batch_offset + (flip_b ? p * b.ld + j : j * b.ld + p);
          sum.add_product(read_number(from, a_data, at_a), read_number(from, b_data, at_b));
        }
        int64_t at = q * d.batch_offset + j * d.ld + i;
        double value = alpha * sum.value();
        if (beta != 0) value += beta * read_number(to, c_data, at);
        if (op.has_bias()) value += read_number(to, op.bias, i);
        write_number(to, d_data, at, op.activated(value));
      }
    }
  }
}

}  // namespace standin
