// SPDX-License-Identifier: Apache-2.0
// float32 products by oneDNN's dnnl_sgemm, which takes the operands' own strides.
#include <algorithm>
#include <atomic>

#include "linalg/blas.hpp"
#include "linalg/work.hpp"
#include "onednn/onednn.hpp"

namespace pg::cpu {
namespace {

// Makes `strides` and the batch steps those of a dense copy, and returns its number of elements.
int64_t describe_copy(ProductShape& s, Strides& strides, int64_t rows, int64_t columns, int64_t BatchAxis::*step) {
  strides = {columns, 1};
  int64_t size = rows * columns;
  for (size_t i = s.batch.size(); i-- > 0;) {
    if (s.batch[i].*step == 0) continue;
    s.batch[i].*step = size;
    size *= s.batch[i].size;
  }
  return size;
}

void copy_operand(const ProductShape& s, Strides strides, int64_t rows, int64_t columns, int64_t BatchAxis::*step,
                  const void* data, void* target) {
  std::vector<int64_t> shape, stride;
  for (const BatchAxis& axis : s.batch) {
    if (axis.*step != 0) shape.push_back(axis.size), stride.push_back(axis.*step);
  }
  shape.insert(shape.end(), {rows, columns});
  stride.insert(stride.end(), {strides.row, strides.column});
  gather(static_cast<uint32_t>(shape.size()), shape.data(), stride.data(), static_cast<const float*>(data),
         static_cast<float*>(target));
}

// Where b's rows begin at a multiple of 2 KiB and a has few rows, dnnl_sgemm walks down b's columns where they lie,
// from one cache set to the same one, at 0.5 to 0.7 of its speed (64 x 2048 x 1024: 40 instead of 70 GFLOP/s). Copied
// into panels of this many columns b does not lie so.
constexpr int64_t kPanel = 192, kAliasing = 512, kFewestRows = 16, kMostRows = 256;

class SgemmProduct final : public Product {
 public:
  explicit SgemmProduct(const ProductShape& shape) : given_(shape), s_(shape) {
    a_ = blas_operand(s_.m, s_.k, s_.a);
    b_ = blas_operand(s_.k, s_.n, s_.b);
    if (a_.copy) a_elements_ = describe_copy(s_, s_.a, s_.m, s_.k, &BatchAxis::a);
    if (b_.copy) b_elements_ = describe_copy(s_, s_.b, s_.k, s_.n, &BatchAxis::b);
    bool rows = s_.m >= kFewestRows && s_.m <= kMostRows;
    bool aliases = s_.batch.empty() && !b_.copy && !b_.transposed && b_.leading % kAliasing == 0 && s_.n > kPanel;
    if (rows && aliases) panel_slices_ = std::min<int64_t>(thread_count(), (s_.n + kPanel - 1) / kPanel);
    if (split_by_batch(s_, thread_count())) slices_ = std::min<int64_t>(thread_count(), s_.batch_count());
  }

  uint64_t workspace() const override {
    Scratch scratch;
    if (a_.copy) scratch.take(static_cast<uint64_t>(a_elements_) * sizeof(float));
    if (b_.copy) scratch.take(static_cast<uint64_t>(b_elements_) * sizeof(float));
    if (panel_slices_ > 0) scratch.take(panel_bytes() * static_cast<uint64_t>(panel_slices_));
    return scratch.bytes();
  }

  void run(const ProductData& data) override {
    Scratch scratch(data.workspace);
    auto* a = static_cast<const float*>(data.a);
    auto* b = static_cast<const float*>(data.b);
    auto* c = static_cast<float*>(data.c);
    if (a_.copy) {
      auto* copy = static_cast<float*>(scratch.take(static_cast<uint64_t>(a_elements_) * sizeof(float)));
      copy_operand(given_, given_.a, s_.m, s_.k, &BatchAxis::a, a, copy);
      a = copy;
    }
    if (b_.copy) {
      auto* copy = static_cast<float*>(scratch.take(static_cast<uint64_t>(b_elements_) * sizeof(float)));
      copy_operand(given_, given_.b, s_.k, s_.n, &BatchAxis::b, b, copy);
      b = copy;
    }
    auto* bias = s_.bias ? static_cast<const float*>(data.bias) : nullptr;
    // A bias is what c starts from: no pass of its own over the finished result.
    if (panel_slices_ > 0) return multiply_panels(a, b, c, bias, static_cast<float*>(scratch.take(0)));
    onednn::OneThread guard(work_of({s_.m, s_.n, s_.k}) <= onednn::kSmallWork);
    if (s_.batch.empty()) return onednn::check(multiply(a, b, c, bias), "dnnl_sgemm");
    std::atomic<int> failure{dnnl_success};  // nothing may be thrown inside the loop
    for_batch(s_, slices_, [&](int64_t, BatchOffset at) {
      dnnl_status_t status = multiply(a + at.a, b + at.b, c + at.c, bias);
      if (status != dnnl_success) failure = status;
    });
    onednn::check(static_cast<dnnl_status_t>(failure.load()), "dnnl_sgemm");
  }

 private:
  dnnl_status_t multiply(const float* a, const float* b, float* c, const float* bias) const {
    if (bias != nullptr) spread_bias(c, bias);
    int64_t leading = s_.m == 1 ? s_.n : s_.c.row;
    return dnnl_sgemm(a_.transposed ? 'T' : 'N', b_.transposed ? 'T' : 'N', s_.m, s_.n, s_.k, 1.0f, a, a_.leading, b,
                      b_.leading, bias != nullptr ? 1.0f : 0.0f, c, leading);
  }

  // Of one thread, which multiplies its panels by itself.
  uint64_t panel_bytes() const { return scratch_bytes(static_cast<uint64_t>(s_.k * kPanel) * sizeof(float)); }

  void multiply_panels(const float* a, const float* b, float* c, const float* bias, float* rooms) const {
    if (bias != nullptr) spread_bias(c, bias);
    const int64_t count = (s_.n + kPanel - 1) / kPanel, slices = panel_slices_;
    std::atomic<int> failure{dnnl_success};
    parallel_for(slices, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; slice++) {
        float* panel = rooms + static_cast<uint64_t>(slice) * panel_bytes() / sizeof(float);
        for (int64_t i = count * slice / slices; i < count * (slice + 1) / slices; i++) {
          const int64_t j = i * kPanel, width = std::min(kPanel, s_.n - j);
          for (int64_t p = 0; p < s_.k; p++) std::copy_n(b + p * b_.leading + j, width, panel + p * width);
          dnnl_status_t status = dnnl_sgemm(a_.transposed ? 'T' : 'N', 'N', s_.m, width, s_.k, 1.0f, a, a_.leading,
                                            panel, width, bias != nullptr ? 1.0f : 0.0f, c + j, s_.c.row);
          if (status != dnnl_success) failure = status;
        }
      }
    });
    onednn::check(static_cast<dnnl_status_t>(failure.load()), "dnnl_sgemm");
  }

  void spread_bias(float* c, const float* bias) const {
    int64_t n = s_.n, row = s_.c.row, step = s_.bias_stride;
    parallel_for(s_.m, std::max<int64_t>(1, 65536 / n), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        for (int64_t j = 0; j < n; j++) c[i * row + j] = bias[j * step];
      }
    });
  }

  ProductShape given_, s_;  // with the operands' strides; with those of the copies
  BlasOperand a_, b_;
  int64_t a_elements_ = 0, b_elements_ = 0, slices_ = 1;
  int64_t panel_slices_ = 0;  // 0: b is taken as it lies
};

}  // namespace

std::unique_ptr<Product> make_sgemm_product(const ProductShape& shape) { return std::make_unique<SgemmProduct>(shape); }

}  // namespace pg::cpu
