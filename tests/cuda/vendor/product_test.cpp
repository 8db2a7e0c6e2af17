// SPDX-License-Identifier: Apache-2.0
// Products by the stand-in of cuBLASLt and by the own kernel, against plain loops.
#include "linalg/product.hpp"

#include <catch2/catch.hpp>
#include <climits>
#include <cmath>

#include "fixture.hpp"

using namespace cuda::linalg;
using namespace vendor_test;

namespace {

ProductShape plain(uint32_t dtype, int64_t m, int64_t n, int64_t k) {
  ProductShape s;
  s.dtype = dtype, s.m = m, s.n = n, s.k = k;
  s.a = {k, 1}, s.b = {n, 1}, s.c = {n, 1};
  return s;
}

struct ProductSkips {
  int64_t a = 0, b = 0, c = 0, bias = 0;
};

// Elements from an operand's first to behind its last: there is no more of it, and what lies behind is guarded.
int64_t extent(const ProductShape& s, int64_t BatchAxis::*step, int64_t rows, int64_t columns, Strides strides) {
  if (rows * columns * s.batch_count() == 0) return 0;
  int64_t last = (rows - 1) * strides.row + (columns - 1) * strides.column;
  for (const BatchAxis& axis : s.batch) last += (axis.size - 1) * axis.*step;
  return last + 1;
}

// Integers wrap around.
double wrapped(double value, uint32_t dtype) {
  auto integer = static_cast<int64_t>(value);
  switch (dtype) {
    case PG_I8: return static_cast<int8_t>(integer);
    case PG_U8: return static_cast<uint8_t>(integer);
    case PG_I16: return static_cast<int16_t>(integer);
    default: return value;
  }
}

double activated(double x, pg::Activation activation) {
  if (activation == pg::Activation::kRelu) return std::max(x, 0.0);
  if (activation == pg::Activation::kNone) return x;
  return 0.5 * x * (1 + std::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

void check_product(const Product& product, const ProductShape& s, ProductSkips skip = {}, uint32_t result = 0) {
  if (result == 0) result = s.dtype;
  Data a(s.dtype, extent(s, &BatchAxis::a, s.m, s.k, s.a), 1, skip.a),
      b(s.dtype, extent(s, &BatchAxis::b, s.k, s.n, s.b), 2, skip.b),
      c(result, extent(s, &BatchAxis::c, s.m, s.n, s.c), 3, skip.c),
      bias(s.dtype, (s.n - 1) * s.bias_stride + 1, 4, skip.bias);
  Workspace workspace(product.workspace());
  Stream stream;
  product.run(stream.native,
              {a.address(), b.address(), s.bias ? bias.address() : nullptr, c.address(), workspace.address()});
  stream.finish();
  double worst = 0;
  for (int64_t q = 0; q < s.batch_count(); q++) {
    BatchAxis at;
    int64_t rest = q;
    for (size_t i = s.batch.size(); i-- > 0; rest /= s.batch[i].size) {
      int64_t step = rest % s.batch[i].size;
      at.a += step * s.batch[i].a, at.b += step * s.batch[i].b, at.c += step * s.batch[i].c;
    }
    for (int64_t i = 0; i < s.m; i++) {
      for (int64_t j = 0; j < s.n; j++) {
        double sum = s.bias ? bias.at(j * s.bias_stride) : 0, size = std::fabs(sum);
        for (int64_t p = 0; p < s.k; p++) {
          double term = a.at(at.a + i * s.a.row + p * s.a.column) * b.at(at.b + p * s.b.row + j * s.b.column);
          sum += term, size += std::fabs(term);
        }
        double expected = activated(wrapped(sum, s.dtype), s.activation);
        double error = std::fabs(c.at(at.c + i * s.c.row + j * s.c.column) - expected);
        worst = std::max(worst, error / (size + 1));
      }
    }
  }
  CHECK(worst <= tolerance(result, s.k));
}

// By cuBLASLt, and `calls` of it.
void check_blas(const ProductShape& s, uint64_t calls = 1, ProductSkips skip = {}) {
  auto product = make_blas_product(s, s.dtype, 0);
  REQUIRE(product);
  uint64_t before = calls_of("cublasLtMatmul");
  check_product(*product, s, skip);
  CHECK(calls_of("cublasLtMatmul") - before == calls);
}

}  // namespace

TEST_CASE("products of every layout by cuBLASLt") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    CAPTURE(pg::dtype_name(dtype));
    ProductShape s = plain(dtype, 5, 7, 9);
    check_blas(s);
    s.a = {1, 5}, s.b = {1, 9};
    check_blas(s);
    s.a = {20, 1}, s.b = {1, 30};  // leading dimensions
    check_blas(s);
    s.a = {20, 2}, s.b = {0, 1};  // copied
    check_blas(s);
    check_blas(plain(dtype, 1, 1, 1));
    ProductShape vector = plain(dtype, 1, 6, 8);
    vector.a = {0, 3};
    check_blas(vector);
  }
}

TEST_CASE("batches by cuBLASLt") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_BF16}) {
    ProductShape s = plain(dtype, 3, 4, 5);
    s.batch = {{2, 45, 60, 36}, {3, 15, 20, 12}};
    check_blas(s);
    s.batch[0].b = 0;  // one batch axis of b: two calls of three
    check_blas(s, 2);
    s.batch[1].b = 0;
    check_blas(s);
    ProductShape heads = plain(dtype, 4, 4, 8);  // [2, 4, 3, 8] seen as [2, 3, 4, 8]
    heads.a = {24, 1}, heads.b = {1, 24};
    heads.batch = {{2, 96, 96, 48}, {3, 8, 8, 16}};
    check_blas(heads, 2);
  }
}

TEST_CASE("a bias is part of the product") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16}) {
    ProductShape s = plain(dtype, 5, 7, 9);
    s.bias = true, s.bias_stride = 1;
    check_blas(s);
    s.bias_stride = 3;
    check_blas(s);
    check_blas(s, 1, {1, 1, 1, 1});
  }
}

TEST_CASE("a bias that cuBLASLt does not add is added behind it") {
  open_host();
  standin::refuse_epilogues(true);
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16}) {
    ProductShape s = plain(dtype, 5, 7, 9);
    s.batch = {{3, 90, 0, 35}};
    s.bias = true, s.bias_stride = 2;
    check_blas(s);
  }
  standin::refuse_epilogues(false);
}

TEST_CASE("activations are part of the product, with a bias and without") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (pg::Activation activation : {pg::Activation::kRelu, pg::Activation::kGeluTanh}) {
      ProductShape s = plain(dtype, 5, 7, 9);
      s.activation = activation;
      CAPTURE(pg::dtype_name(dtype), static_cast<int>(activation));
      check_blas(s);
      check_product(*make_own_product(s, s.dtype), s);
      s.bias = true, s.bias_stride = 1;
      check_blas(s);
      check_product(*make_own_product(s, s.dtype), s);
      ProductShape nothing = plain(dtype, 3, 4, 0);
      nothing.bias = true, nothing.bias_stride = 1, nothing.activation = activation;
      check_product(*make_product(nothing, 0, "it"), nothing);
    }
  }
}

TEST_CASE("16-bit floats are multiplied as they are into float32") {
  open_host();
  for (uint32_t dtype : {PG_F16, PG_BF16}) {
    ProductShape s = plain(dtype, 5, 7, 9);
    s.b = {1, 9};  // of another row by row
    s.batch = {{3, 45, 63, 35}};
    for (const ProductSkips& skip : {ProductSkips{}, ProductSkips{1, 0, 0}, ProductSkips{0, 3, 1}}) {
      uint64_t before = calls_of("cublasLtMatmul");
      check_product(*make_blas_product(s, PG_F32, 0), s, skip, PG_F32);
      CHECK(calls_of("cublasLtMatmul") == before + 1);
    }
    check_product(*make_own_product(s, PG_F32), s, {}, PG_F32);
    ProductShape nothing = plain(dtype, 3, 4, 0);
    check_product(*make_product(nothing, PG_F32, 0, "it"), nothing, {}, PG_F32);
  }
  CHECK(make_blas_product(plain(PG_F32, 2, 2, 2), PG_F32, 0) != nullptr);
}

TEST_CASE("a ReLU keeps NaN, which cuBLASLt's does not") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (bool has_bias : {false, true}) {
      ProductShape s = plain(dtype, 2, 8, 8);
      s.activation = pg::Activation::kRelu, s.bias = has_bias, s.bias_stride = 1;
      Data a(dtype, 16, 1), b(dtype, 64, 2), c(dtype, 16, 3), bias(dtype, 8, 4);
      a.set(3, std::nan(""));  // of the first row
      auto product = make_blas_product(s, s.dtype, 0);
      REQUIRE(product);
      Workspace workspace(product->workspace());
      Stream stream;
      product->run(stream.native,
                   {a.address(), b.address(), has_bias ? bias.address() : nullptr, c.address(), workspace.address()});
      stream.finish();
      for (int64_t i = 0; i < 8; i++) {
        CHECK(std::isnan(c.at(i)));
        CHECK(c.at(8 + i) >= 0);
      }
    }
  }
}

TEST_CASE("an epilogue that cuBLASLt lacks is a pass behind its plain product") {
  open_host();
  standin::refuse_epilogues(true);
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16}) {
    for (bool bias : {false, true}) {
      for (pg::Activation activation : {pg::Activation::kRelu, pg::Activation::kGeluTanh}) {
        CAPTURE(pg::dtype_name(dtype), bias, static_cast<int>(activation));
        ProductShape s = plain(dtype, 6, 8, 9);
        s.activation = activation, s.bias = bias, s.bias_stride = 2;
        check_blas(s);
        check_blas(s, 1, {0, 0, 1, 0});  // no wide accesses
        s.n = 7, s.b = {7, 1}, s.c = {7, 1};
        check_blas(s);
      }
    }
  }
  standin::refuse_epilogues(false);
}

TEST_CASE("addresses that are aligned to an element only") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F16}) {
    for (ProductSkips skip : {ProductSkips{1, 0, 0, 0}, ProductSkips{0, 3, 0, 0}, ProductSkips{0, 0, 1, 0}}) {
      check_blas(plain(dtype, 8, 8, 8), 1, skip);
    }
  }
}

TEST_CASE("where cuBLASLt takes aligned addresses only, the own kernel takes the others") {
  open_host();
  standin::refuse_products_below(16);
  ProductShape s = plain(PG_F16, 8, 8, 8);
  check_blas(s, 1);
  check_blas(s, 0, {1, 0, 0, 0});
  standin::refuse_products_below(INT_MAX);
  CHECK(make_blas_product(s, s.dtype, 0) == nullptr);
  log_lines().clear();
  auto product = make_product(s, 0, "matmul of something");
  REQUIRE(log_lines().size() == 1);
  CHECK(log_lines()[0] == "cuBLASLt has nothing for matmul of something: an own kernel computes it");
  check_product(*product, s);
  standin::refuse_products_below(1);
}

TEST_CASE("products by the own kernel") {
  open_host();
  for (uint32_t dtype : {PG_F32, PG_F64, PG_F16, PG_BF16, PG_I64, PG_I32, PG_I16, PG_I8, PG_U8}) {
    CAPTURE(pg::dtype_name(dtype));
    ProductShape s = plain(dtype, 5, 7, 9);
    s.batch = {{2, 45, 0, 35}};
    s.bias = true, s.bias_stride = 2;
    check_product(*make_own_product(s, s.dtype), s);
    s.a = {9, 2}, s.b = {1, 20};
    check_product(*make_own_product(s, s.dtype), s);
  }
  ProductShape tiles = plain(PG_I32, 40, 70, 20);
  tiles.c = {70, 1};
  check_product(*make_own_product(tiles, tiles.dtype), tiles);
}

TEST_CASE("a sum over nothing is the bias") {
  open_host();
  ProductShape s = plain(PG_F32, 3, 4, 0);
  CHECK(make_blas_product(s, s.dtype, 0) == nullptr);
  check_product(*make_product(s, 0, "it"), s);
  s.bias = true, s.bias_stride = 1;
  check_product(*make_product(s, 0, "it"), s);
  ProductShape none = plain(PG_F32, 0, 4, 3);
  check_product(*make_product(none, 0, "it"), none);
}

TEST_CASE("failures name the call, its status and what was asked for") {
  open_host();
  ProductShape s = plain(PG_F32, 3, 4, 5);
  standin::fail("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorUnknown);
  try {
    make_product(s, 0, "matmul of [3, 5] and [5, 4]");
    FAIL("nothing was thrown");
  } catch (const pg::Error& e) {
    CHECK(std::string(e.what()) ==
          "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_INTERNAL_ERROR; asked for: matmul of [3, 5] and [5, 4]");
    CHECK(e.code == PG_E_INTERNAL);
  }
  auto product = make_product(s, 0, "it");
  standin::fail("cublasLtMatmul", 1, cudaErrorUnknown);
  CHECK_THROWS_WITH(check_product(*product, s), "cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED");
}
