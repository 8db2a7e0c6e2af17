// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt. Our results are row-major and its matrices column-major, so it is asked for the transposed
// product: c' = b' a', n rows and m columns, where the bias belongs to the rows as its epilogue wants. Its GELU is the
// tanh form, used for 16-bit floats; its ReLU loses NaN and is not used.
#include <mutex>

#include "epilogue.hpp"
#include "linalg/descriptors.hpp"
#include "linalg/product.hpp"
#include "scratch.hpp"

namespace cuda::linalg {
namespace {

// What split-K and the like may use; more has gained nothing on Hopper that its vendor reports.
constexpr uint64_t kWorkspace = uint64_t{32} << 20;
constexpr uint32_t kAligned = 16;  // bytes: the widest access of a thread

struct Types {
  cudaDataType_t data, result, scale;
  cublasComputeType_t compute;
};

// No TF32: CUBLAS_COMPUTE_32F multiplies float32 as they are. 16-bit floats are summed in float32.
std::optional<Types> types_of(uint32_t dtype, uint32_t result) {
  auto half = [&](cudaDataType_t data) {
    return Types{data, result == PG_F32 ? CUDA_R_32F : data, CUDA_R_32F, CUBLAS_COMPUTE_32F};
  };
  switch (dtype) {
    case PG_F32: return Types{CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case PG_F64: return Types{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case PG_F16: return half(CUDA_R_16F);
    case PG_BF16: return half(CUDA_R_16BF);
    default: return std::nullopt;
  }
}

cublasLtEpilogue_t epilogue_of(const ProductShape& s) {
  switch (s.activation) {
    case Activation::kGeluTanh: return s.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default: return s.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

// The transposed operand as a matrix of cuBLASLt: `rows` and `columns` are ours.
Layout layout_of(cudaDataType_t type, const View& view, int64_t rows, int64_t columns, int64_t batch, int64_t step) {
  return view.column_major ? Layout(type, rows, columns, view.ld, batch, step)
                           : Layout(type, columns, rows, view.ld, batch, step);
}

class BlasProduct final : public Product {
 public:
  BlasProduct(Calls calls, const Types& types, uint32_t result, uint32_t device)
      : calls_(std::move(calls)),
        types_(types),
        item_(pg::dtype_bytes(calls_.shape.dtype)),
        c_item_(pg::dtype_bytes(result)),
        handle_(blas_handle(device)),
        operation_(types.compute, types.scale),
        a_(layout_of(types.data, calls_.a, calls_.shape.m, calls_.shape.k, calls_.batch.size, calls_.batch.a)),
        b_(layout_of(types.data, calls_.b, calls_.shape.k, calls_.shape.n, calls_.batch.size, calls_.batch.b)),
        c_(types.result, calls_.shape.n, calls_.shape.m, calls_.ldc, calls_.batch.size, calls_.batch.c) {
    set_operation();
    uint64_t workspace = std::max(find_algorithm(kAligned, aligned_), find_algorithm(0, any_));
    loops_aligned_ = std::all_of(calls_.loop.begin(), calls_.loop.end(), [&](const BatchAxis& axis) {
      return (axis.a * item_ | axis.b * item_ | axis.c * c_item_) % kAligned == 0;
    });
    Scratch scratch;
    blas_at_ = scratch.take(workspace);
    const ProductShape& s = calls_.shape;
    copy_a_ = operand_copy(calls_.copy_a, scratch), copy_b_ = operand_copy(calls_.copy_b, scratch);
    if (s.bias && s.bias_stride != 1 && s.n > 1) copy_bias_ = OperandCopy(s.dtype, {s.n}, {s.bias_stride}, scratch);
    workspace_ = scratch.bytes();
  }
  bool takes_aligned() const { return loops_aligned_ && aligned_.state == CUBLAS_STATUS_SUCCESS; }
  bool takes_any() const { return any_.state == CUBLAS_STATUS_SUCCESS; }
  // For addresses that cuBLASLt has nothing for.
  void set_fallback(std::unique_ptr<Product> product) { fallback_ = std::move(product); }
  uint64_t workspace() const override { return workspace_; }

  void run(cudaStream_t stream, const ProductData& data) const override {
    // Copies lie aligned in the workspace; whether all is aligned can be told before they are made.
    uintptr_t bits = bits_of(data.c);
    if (!copy_a_.needed()) bits |= bits_of(data.a);
    if (!copy_b_.needed()) bits |= bits_of(data.b);
    if (!copy_bias_.needed()) bits |= bits_of(data.bias);
    bool aligned = takes_aligned() && bits % kAligned == 0;
    if (!aligned && !takes_any()) return fallback_->run(stream, data);
    auto* a = static_cast<const char*>(copy_a_.run(stream, data.a, data.workspace));
    auto* b = static_cast<const char*>(copy_b_.run(stream, data.b, data.workspace));
    auto* c = static_cast<char*>(data.c);
    // The bias's address is part of the operation, which other threads may be about to run.
    std::unique_lock lock(bias_mutex_, std::defer_lock);
    if (calls_.shape.bias) {
      const void* bias = copy_bias_.run(stream, data.bias, data.workspace);
      lock.lock();
      operation_.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    }
    void* scratch = piece(data.workspace, blas_at_);
    for (int64_t i = 0; i < calls_.count(); i++) {
      BatchAxis at = calls_.offset(i);
      call(stream, aligned ? aligned_ : any_, a + at.a * item_, b + at.b * item_, c + at.c * c_item_, scratch);
    }
  }

 private:
  OperandCopy operand_copy(const DenseCopy& copy, Scratch& scratch) const {
    return copy.needed ? OperandCopy(calls_.shape.dtype, copy.shape, copy.stride, scratch) : OperandCopy();
  }

  void set_operation() {
    auto transpose = [](const View& view) { return view.column_major ? CUBLAS_OP_T : CUBLAS_OP_N; };
    operation_.set(CUBLASLT_MATMUL_DESC_TRANSA, transpose(calls_.b));
    operation_.set(CUBLASLT_MATMUL_DESC_TRANSB, transpose(calls_.a));
    operation_.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(calls_.shape));
  }

  // For addresses that are multiples of `alignment`, or of an item. Returns the workspace it wants.
  uint64_t find_algorithm(uint32_t alignment, cublasLtMatmulHeuristicResult_t& result) {
    result = {};
    result.state = CUBLAS_STATUS_NOT_SUPPORTED;
    if (alignment == 0) alignment = static_cast<uint32_t>(item_);
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    // Partial sums are added up in float32, and in an order that does not depend on who comes first.
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    auto shared = [&](int64_t step, int64_t item) {
      return batch_alignment(std::max(alignment, static_cast<uint32_t>(item)), calls_.batch, step, item);
    };
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shared(calls_.batch.b, item_));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shared(calls_.batch.a, item_));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shared(calls_.batch.c, c_item_));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shared(calls_.batch.c, c_item_));
    // Its value stands for its alignment; nothing reads from it here.
    if (calls_.shape.bias) {
      operation_.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<const void*>(uintptr_t{alignment}));
    }
    int count = 0;
    cublasLtMatmulHeuristicResult_t best{};
    cublasStatus_t status = PG_CUBLAS_STATUS(cublasLtMatmulAlgoGetHeuristic(
        handle_, operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), preference.get(), 1, &best, &count));
    // It calls some combinations that it lacks invalid; if it was ours that is, the log says so.
    bool invalid = status == CUBLAS_STATUS_INVALID_VALUE;
    if (invalid) warn_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    if (invalid || status == CUBLAS_STATUS_NOT_SUPPORTED) return 0;
    check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0 || best.state != CUBLAS_STATUS_SUCCESS) return 0;
    result = best;
    return result.workspaceSize;
  }

  static uintptr_t bits_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

  void call(cudaStream_t stream, const cublasLtMatmulHeuristicResult_t& chosen, const void* a, const void* b, void* c,
            void* scratch) const {
    float one = 1, zero = 0;
    double one64 = 1, zero64 = 0;
    bool wide = types_.scale == CUDA_R_64F;
    const void* alpha = wide ? static_cast<const void*>(&one64) : &one;
    const void* beta = wide ? static_cast<const void*>(&zero64) : &zero;
    PG_CUBLAS(cublasLtMatmul(handle_, operation_.get(), alpha, b, b_.get(), a, a_.get(), beta, c, c_.get(), c, c_.get(),
                             &chosen.algo, scratch, chosen.workspaceSize, stream));
  }

  Calls calls_;
  Types types_;
  int64_t item_, c_item_;  // bytes
  cublasLtHandle_t handle_;
  mutable Operation operation_;
  mutable std::mutex bias_mutex_;
  Layout a_, b_, c_;
  cublasLtMatmulHeuristicResult_t aligned_{}, any_{};
  OperandCopy copy_a_, copy_b_, copy_bias_;
  bool loops_aligned_ = true;
  uint64_t blas_at_ = 0, workspace_ = 0;
  std::unique_ptr<Product> fallback_;
};

// A product, and behind it what is left of the bias and the activation. The result is dense.
class WithEpilogue final : public Product {
 public:
  // left: what the product leaves to be done.
  WithEpilogue(const ProductShape& left, std::unique_ptr<Product> product)
      : left_(left), rows_(left.m * left.batch_count()), product_(std::move(product)) {}
  uint64_t workspace() const override { return product_->workspace(); }
  void run(cudaStream_t stream, const ProductData& data) const override {
    ProductData own = data;
    const void* bias = left_.bias ? std::exchange(own.bias, nullptr) : nullptr;
    product_->run(stream, own);
    run_epilogue(stream, left_.dtype, rows_, left_.n, 1, {bias, left_.bias_stride, left_.activation}, data.c);
  }

 private:
  ProductShape left_;
  int64_t rows_;
  std::unique_ptr<Product> product_;
};

// NULL: cuBLASLt has no algorithm for all that the shape asks for.
std::unique_ptr<Product> find_product(const ProductShape& shape, const Types& types, uint32_t result, uint32_t device) {
  std::optional<Calls> calls = plan_calls(shape);
  if (!calls) return nullptr;
  auto product = std::make_unique<BlasProduct>(std::move(*calls), types, result, device);
  if (product->takes_any()) return product;
  if (!product->takes_aligned()) return nullptr;
  product->set_fallback(make_own_product(shape, result));
  return product;
}

}  // namespace

std::unique_ptr<Product> make_blas_product(const ProductShape& shape, uint32_t result, uint32_t device) {
  std::optional<Types> types = types_of(shape.dtype, result);
  if (!types) return nullptr;
  use_device(device);
  ProductShape asked = shape, left = shape;
  left.bias = false, left.activation = Activation::kNone;
  // Its ReLU makes 0 of NaN, and ours keeps it. How exact its GELU is it does not say: 16-bit results hide that.
  bool half = shape.dtype == PG_F16 || shape.dtype == PG_BF16;
  if (shape.activation == Activation::kRelu || !half) std::swap(asked.activation, left.activation);
  auto product = find_product(asked, *types, result, device);
  if (product == nullptr && epilogue_of(asked) != CUBLASLT_EPILOGUE_DEFAULT) {
    left = shape;
    asked.bias = false, asked.activation = Activation::kNone;
    product = find_product(asked, *types, result, device);
  }
  if (product == nullptr || (!left.bias && left.activation == Activation::kNone)) return product;
  return std::make_unique<WithEpilogue>(left, std::move(product));
}

}  // namespace cuda::linalg
