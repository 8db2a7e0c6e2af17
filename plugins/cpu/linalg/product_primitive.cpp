// SPDX-License-Identifier: Apache-2.0
// Products by oneDNN's matmul primitive: strided operands as they are, or b in the layout that the primitive likes
// best, written once by pack() or, for 16-bit floats (whose kernels are several times slower without), before every
// run.
#include "linalg/blas.hpp"
#include "linalg/work.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

using onednn::Desc;
using onednn::Dims;

Desc operand(const ProductShape& s, int64_t rows, int64_t columns, Strides strides, int64_t BatchAxis::*step) {
  Dims dims, stride;
  for (const BatchAxis& axis : s.batch) {
    bool broadcast = axis.*step == 0;
    dims.push_back(broadcast ? 1 : axis.size);
    stride.push_back(broadcast ? 1 : axis.*step);
  }
  BlasOperand blas = blas_operand(rows, columns, strides);
  dims.insert(dims.end(), {rows, columns});
  stride.insert(stride.end(), {blas.transposed ? 1 : blas.leading, blas.transposed ? blas.leading : 1});
  for (size_t i = 0; i < s.batch.size(); i++) {  // a batch axis of size 1 still needs a stride that makes sense
    if (dims[i] == 1) stride[i] = rows * columns;
  }
  return Desc(dims, onednn::data_type(s.dtype), stride);
}

struct Variant {
  onednn::Step step;
  Desc b;
  uint64_t scratch = 0;
};

class PrimitiveProduct final : public Product {
 public:
  // Throws a dnnl::error of status unimplemented where there is no kernel worth running.
  PrimitiveProduct(const ProductShape& s, bool constant_b)
      : bias_(s.bias),
        gelu_(s.activation == Activation::kGeluTanh),
        one_thread_(work_of({s.batch_count(), s.m, s.n, s.k}) <= onednn::kSmallWork) {
    onednn::OneThread guard(one_thread_);
    a_ = operand(s, s.m, s.k, s.a, &BatchAxis::a);
    b_ = operand(s, s.k, s.n, s.b, &BatchAxis::b);
    c_ = operand(s, s.m, s.n, s.c, &BatchAxis::c);
    if (s.bias) {
      Dims dims(s.batch.size() + 1, 1);
      dims.push_back(s.n);
      bias_desc_ = onednn::dense(dims, onednn::data_type(s.dtype));
    }
    plain_ = make(b_);
    bool narrow = s.dtype != PG_F32;
    if (!s.batch.empty() || !onednn::has_avx512() || !(constant_b || (narrow && s.m >= 32))) return;
    private_ = make(onednn::any({s.k, s.n}, onednn::data_type(s.dtype)));
    if (private_.b == b_) return;
    // A b of few rows is padded to whole tiles: sixteen times as large where it is one row.
    packs_ = constant_b && private_.b.get_size() <= 2 * b_.get_size();
    pack_ = onednn::Reorder(b_, private_.b);
    pack_now_ = narrow && s.m >= 32;
  }

  // Not relu: oneDNN's turns NaN into 0.
  bool activates() const override { return gelu_; }
  uint64_t packed_bytes() const override { return packs_ ? private_.b.get_size() : 0; }
  void pack(const void* b, void* target) override { pack_.run(b, target, nullptr); }

  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }

  void run(const ProductData& data) override {
    onednn::OneThread guard(one_thread_);
    Scratch scratch(data.workspace);
    auto [for_primitive, for_b, for_pack] = reserve(scratch);
    const void* b = data.packed_b;
    if (b == nullptr && pack_now_) {
      pack_.run(data.b, for_b, for_pack);
      b = for_b;
    }
    Variant& variant = b == nullptr ? plain_ : private_;
    if (b == nullptr) b = data.b;
    auto address = [](const void* p) { return const_cast<void*>(p); };
    if (bias_) {
      variant.step.run({address(data.a), address(b), data.c, for_primitive, address(data.bias)});
    } else {
      variant.step.run({address(data.a), address(b), data.c, for_primitive});
    }
  }

 private:
  struct Pieces {
    void *primitive, *b, *pack;
  };
  Pieces reserve(Scratch& scratch) const {
    Pieces pieces{};
    uint64_t bytes = std::max(plain_.scratch, private_.scratch);
    if (bytes > 0) pieces.primitive = scratch.take(bytes);
    if (pack_now_) {
      pieces.b = scratch.take(private_.b.get_size());
      pieces.pack = scratch.take(pack_.workspace());
    }
    return pieces;
  }

  Variant make(const Desc& b) const {
    auto desc = bias_ ? dnnl::matmul::desc(a_, b, bias_desc_, c_) : dnnl::matmul::desc(a_, b, c_);
    dnnl::primitive_attr attributes = onednn::user_scratchpad();
    if (gelu_) {
      dnnl::post_ops behind;
      behind.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
      attributes.set_post_ops(behind);
    }
    dnnl::matmul::primitive_desc pd(desc, attributes, onednn::engine());
    if (!onednn::is_fast(pd)) throw dnnl::error(dnnl_unimplemented, "no kernel but the reference one");
    std::vector<onednn::Step::Argument> arguments = {{DNNL_ARG_SRC, a_},
                                                     {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                                     {DNNL_ARG_DST, c_},
                                                     {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}};
    if (bias_) arguments.push_back({DNNL_ARG_BIAS, bias_desc_});
    return {onednn::Step(dnnl::matmul(pd), arguments), pd.weights_desc(), pd.scratchpad_desc().get_size()};
  }

  const bool bias_, gelu_, one_thread_;
  bool packs_ = false, pack_now_ = false;
  Desc a_, b_, c_, bias_desc_;
  Variant plain_, private_;
  onednn::Reorder pack_;
};

}  // namespace

std::unique_ptr<Product> make_primitive_product(const ProductShape& s, bool constant_b) {
  if (onednn::data_type(s.dtype) == onednn::DataType::undef || !onednn::computes(s.dtype)) return nullptr;
  bool copies = blas_operand(s.m, s.k, s.a).copy || blas_operand(s.k, s.n, s.b).copy;
  if (copies || (s.bias && s.bias_stride != 1 && s.n > 1)) return nullptr;
  try {
    return std::make_unique<PrimitiveProduct>(s, constant_b);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented) return nullptr;
    onednn::check(e.status, "matmul");
    return nullptr;
  }
}

}  // namespace pg::cpu
