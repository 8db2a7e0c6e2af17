// SPDX-License-Identifier: Apache-2.0
// Which way a product is computed. Measured on two cores each of a Xeon with AVX-512 and AMX and of
// an EPYC with AVX2 (README.md in this folder):
//  - below about 1000 multiplications, calling oneDNN costs more (0.3 to 0.6 us) than a plain loop takes;
//  - with AVX2, dnnl_sgemm and the matmul primitive run the same kernel: dnnl_sgemm has 0.5 us less overhead; the own
//    product is ahead of it by a weight whose panels are kept;
//  - many rows by a narrow b are computed strip by strip, by one of these ways each;
//  - with AVX-512, dnnl_sgemm is ahead on plain operands, the primitive on transposed ones, and ahead of both is the
//    primitive with b in its private layout; the own product is ahead of all by a large plain b, and as x^T y.
// Under deterministic=true only own products are taken: their sums do not depend on threads.
#include "linalg/product.hpp"

#include "linalg/product_strips.hpp"
#include "linalg/repeated.hpp"
#include "linalg/work.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

// Rows of float32 by a linear layer's weight up to which its panels are kept. More rows are worth no second copy of the
// weight: what packing it takes is little beside them.
constexpr int64_t kMostKeptRows = 384;

// c^T = b^T a^T by the own product, of one matrix without a bias.
class TurnedProduct final : public Product {
 public:
  explicit TurnedProduct(ProductShape s) {
    std::swap(s.m, s.n);
    std::swap(s.a, s.b);
    for (MatrixStrides* strides : {&s.a, &s.b, &s.c}) std::swap(strides->row, strides->column);
    product_ = make_own_product(s, false, thread_count());
  }
  uint64_t workspace() const override { return product_->workspace(); }
  void run(const ProductData& data) override {
    product_->run({data.b, data.a, nullptr, data.c, data.workspace, nullptr});
  }

 private:
  std::unique_ptr<Product> product_;
};

// A tall x^T y whose x has the more columns, as a linear layer's weight gradient is: where x's rows begin at multiples
// of 2 KiB, dnnl_sgemm gathers them anew for each stretch of y's few columns, all from the same cache sets, at half its
// speed (3200 x 1024 by 256). The own product of y^T x packs each operand as it lies, once.
bool gathers_slowly(const ProductShape& s) {
  constexpr int64_t kAliasing = 512, kMostColumns = 512, kDeep = 64;
  const bool plain = s.batch.empty() && !s.bias && s.activation == Activation::kNone;
  return plain && s.a.row == 1 && s.a.column >= s.m && s.a.column % kAliasing == 0 && s.b.column == 1 &&
         s.n <= kMostColumns && s.m >= 2 * s.n && s.k >= kDeep;
}

// Where oneDNN's float32 falls behind the own product with AVX-512: by a plain b that outgrows the near caches it runs
// at half its speed and less, as x^T y sooner than otherwise (README.md).
bool outgrows_caches(const ProductShape& s) {
  constexpr int64_t kMany = int64_t{1} << 20, kFewestRows = 128, kFewestColumns = 640, kFewestDepth = 256;
  if (s.dtype != PG_F32 || !s.batch.empty() || s.b.column != 1) return false;
  const int64_t numbers = s.n * s.k;
  if (s.a.column == 1) return numbers >= kMany || (numbers >= kMany / 2 && s.n >= s.k);
  return s.a.row == 1 && numbers >= kMany / 2 && s.m >= kFewestRows && s.n >= kFewestColumns && s.k >= kFewestDepth;
}

// Whether own loops beat a library's call: multiplications of one matrix. With AVX-512, which they do not use, the
// library is ahead sooner, and so it is where b's columns have to be gathered for few rows.
bool is_small(const ProductShape& s) {
  int64_t work = work_of({s.m, s.n, s.k});
  if (s.dtype != PG_F32 && s.dtype != PG_F64) return work <= (s.b.column == 1 ? 8000 : 4096);
  if (s.b.column != 1 && (s.m < 8 || s.n * s.k > 2048)) return work <= 4096;
  return work <= (onednn::has_avx512() ? 8000 : 36000);
}

// c is filled with zeros or the bias: the product over an empty k. Nothing is done where c is empty.
template <class T>
class Emptiness final : public Product {
 public:
  explicit Emptiness(const ProductShape& shape) : s_(shape) {}
  void run(const ProductData& data) override { fill(data, 0, 0); }

 private:
  void fill(const ProductData& data, size_t axis, int64_t offset) {
    if (axis < s_.batch.size()) {
      for (int64_t i = 0; i < s_.batch[axis].size; i++) fill(data, axis + 1, offset + i * s_.batch[axis].c);
      return;
    }
    for (int64_t i = 0; i < s_.m; i++) {
      for (int64_t j = 0; j < s_.n; j++) {
        T value = s_.bias ? static_cast<const T*>(data.bias)[j * s_.bias_stride] : T{};
        static_cast<T*>(data.c)[offset + i * s_.c.row + j * s_.c.column] = value;
      }
    }
  }
  ProductShape s_;
};

std::unique_ptr<Product> choose(const ProductShape& shape, bool constant_b, bool strip) {
  const int64_t threads = strip ? 1 : thread_count();
  int64_t results = shape.m * shape.n;
  for (const BatchAxis& axis : shape.batch) results *= axis.size;
  if (results == 0 || shape.k == 0) {
    return with_number(shape.dtype, [&](auto type) -> std::unique_ptr<Product> {
      return std::make_unique<Emptiness<typename decltype(type)::type>>(shape);
    });
  }
  if (shape.dtype == PG_F32 && shape.m == 1) {  // b is read once: no layout makes that faster
    if (auto product = make_few_rows_product(shape)) return product;
  }
  if (is_small(shape)) return make_small_product(shape);
  if (strip_rows(shape) > 0) return std::make_unique<StripProduct>(shape);
  if (deterministic()) {  // where k is long oneDNN has its threads share it: other sums for another number of them
    if (auto product = make_few_rows_product(shape)) return product;
    return make_own_product(shape, constant_b, threads);
  }
  if (onednn::has_avx512() && outgrows_caches(shape)) return make_own_product(shape, constant_b, threads);
  bool transposed = shape.a.column != 1 || shape.b.column != 1;
  if (shape.dtype == PG_F32 && !(onednn::has_avx512() && (transposed || constant_b || !shape.batch.empty()))) {
    if (auto product = make_few_rows_product(shape)) return product;
    bool weight = constant_b && shape.batch.empty() && shape.b.row == 1 && shape.b.column != 1;
    if (weight) return make_own_product(shape, strip ? constant_b : shape.m <= kMostKeptRows, threads);
    if (gathers_slowly(shape)) return std::make_unique<TurnedProduct>(shape);
    return make_sgemm_product(shape);
  }
  if (auto product = make_primitive_product(shape, constant_b)) return product;
  if (shape.dtype == PG_BF16 || shape.dtype == PG_F16) {
    if (auto product = make_few_rows_product(shape)) return product;
  }
  return shape.dtype == PG_F32 ? make_sgemm_product(shape) : make_own_product(shape, constant_b, threads);
}

}  // namespace

void check_product_dtype(uint32_t dtype) {
  with_number(dtype, [](auto) {});
}

std::unique_ptr<Product> make_product(ProductShape shape, bool constant_b, bool strip) {
  check_product_dtype(shape.dtype);
  simplify(shape);
  auto product = choose(shape, constant_b, strip);
  if (shape.activation == Activation::kNone || product->activates()) return product;
  return make_activated_product(shape, std::move(product));
}

std::unique_ptr<Product> make_repeated_product(const ProductShape& shape) {
  if (shape.m * shape.n * shape.k == 0 || is_small(shape)) return nullptr;
  if (auto product = make_panel_product(shape)) return product;
  return shape.dtype == PG_F32 && shape.batch.empty() ? make_own_product(shape, true, thread_count()) : nullptr;
}

}  // namespace pg::cpu
