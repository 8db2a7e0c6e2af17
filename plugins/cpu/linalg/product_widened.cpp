// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats where oneDNN has no kernel for them: operands are widened to float32, multiplied as such,
// and the result is rounded once. A b that stays the same is widened once, by pack().
#include "linalg/batch.hpp"
#include "storage.hpp"

namespace pg::cpu {
namespace {

// A matrix, or a batch of them, widened in the order in which it lies in memory, so that nothing is transposed.
struct WideOperand {
  std::vector<int64_t> shape, stride;  // as walked: outermost first
  int64_t count = 1;

  // Changes `strides` and the batch's `step` to those of the copy.
  WideOperand(ProductShape& wide, const ProductShape& given, int64_t rows, int64_t columns, Strides& strides,
              int64_t BatchAxis::*step) {
    bool by_columns = strides.row < strides.column && rows > 1;
    for (const BatchAxis& axis : given.batch) {
      if (axis.*step != 0) shape.push_back(axis.size), stride.push_back(axis.*step);
    }
    shape.insert(shape.end(), {by_columns ? columns : rows, by_columns ? rows : columns});
    stride.insert(stride.end(), {by_columns ? strides.column : strides.row, by_columns ? strides.row : strides.column});
    strides = by_columns ? Strides{1, rows} : Strides{columns, 1};
    count = rows * columns;
    for (size_t i = wide.batch.size(); i-- > 0;) {
      if (wide.batch[i].*step == 0) continue;
      wide.batch[i].*step = count;
      count *= wide.batch[i].size;
    }
  }
  uint64_t bytes() const { return static_cast<uint64_t>(count) * sizeof(float); }

  // Calls row(element of the tensor where a row begins, its position in the copy, length), on all threads.
  template <class Row>
  void walk(const Row& row) const {
    int64_t inner = shape.back(), rows = count / inner;
    parallel_for(rows, std::max<int64_t>(1, 16384 / inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r++) {
        int64_t at = 0, rest = r;
        for (size_t i = shape.size() - 1; i-- > 0; rest /= shape[i]) at += rest % shape[i] * stride[i];
        row(at, r * inner, inner);
      }
    });
  }
};

template <class T>
class WidenedProduct final : public Product {
 public:
  WidenedProduct(const ProductShape& s, bool constant_b)
      : wide_(s),
        a_(wide_, s, s.m, s.k, wide_.a, &BatchAxis::a),
        b_(wide_, s, s.k, s.n, wide_.b, &BatchAxis::b),
        c_(wide_, s, s.m, s.n, wide_.c, &BatchAxis::c),
        bias_stride_(s.bias_stride),
        packs_(constant_b && s.batch.empty()) {
    wide_.dtype = PG_F32;
    wide_.bias_stride = 1;
    inner_ = make_product(wide_, false);
  }

  bool activates() const override { return true; }  // the inner product does, before anything is rounded
  uint64_t packed_bytes() const override { return packs_ ? b_.bytes() : 0; }
  void pack(const void* b, void* target) override { widen(b_, b, static_cast<float*>(target)); }
  uint64_t workspace() const override {
    Scratch scratch;
    reserve(scratch);
    return scratch.bytes();
  }

  void run(const ProductData& data) override {
    Scratch scratch(data.workspace);
    Pieces p = reserve(scratch);
    widen(a_, data.a, p.a);
    if (data.packed_b == nullptr) widen(b_, data.b, p.b);
    auto* bias = static_cast<const T*>(data.bias);
    for (int64_t j = 0; bias != nullptr && j < wide_.n; j++) p.bias[j] = load<T>(bias[j * bias_stride_]);
    const void* b = data.packed_b == nullptr ? p.b : data.packed_b;
    inner_->run({p.a, b, bias != nullptr ? p.bias : nullptr, p.c, p.inner, nullptr});
    round(p.c, static_cast<T*>(data.c));
  }

 private:
  struct Pieces {
    float *a, *b, *bias, *c;
    void* inner;
  };
  Pieces reserve(Scratch& scratch) const {
    auto take = [&](uint64_t bytes) { return static_cast<float*>(scratch.take(bytes)); };
    return {take(a_.bytes()), take(b_.bytes()), take(static_cast<uint64_t>(wide_.n) * sizeof(float)), take(c_.bytes()),
            scratch.take(inner_->workspace())};
  }

  static constexpr ::cpu::Storage kStorage = std::is_same_v<T, BFloat16> ? ::cpu::sBF16 : ::cpu::sF16;

  static void widen(const WideOperand& w, const void* data, float* out) {
    auto* from = static_cast<const T*>(data);
    int64_t step = w.stride.back();
    w.walk([=](int64_t at, int64_t to, int64_t n) {
      if (step == 1) return ::cpu::convert(kStorage, ::cpu::sF32, from + at, out + to, n);
      for (int64_t i = 0; i < n; i++) out[to + i] = load<T>(from[at + i * step]);
    });
  }
  void round(const float* sums, T* c) const {
    int64_t step = c_.stride.back();
    c_.walk([=](int64_t at, int64_t from, int64_t n) {
      if (step == 1) return ::cpu::convert(::cpu::sF32, kStorage, sums + from, c + at, n);
      for (int64_t i = 0; i < n; i++) c[at + i * step] = store<T>(sums[from + i]);
    });
  }

  ProductShape wide_;
  WideOperand a_, b_, c_;
  int64_t bias_stride_;
  bool packs_;
  std::unique_ptr<Product> inner_;
};

}  // namespace

std::unique_ptr<Product> make_widened_product(const ProductShape& shape, bool constant_b) {
  if (shape.dtype == PG_BF16) return std::make_unique<WidenedProduct<BFloat16>>(shape, constant_b);
  return std::make_unique<WidenedProduct<Half>>(shape, constant_b);
}

}  // namespace pg::cpu
