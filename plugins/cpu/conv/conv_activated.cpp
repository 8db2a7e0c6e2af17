// SPDX-License-Identifier: Apache-2.0
// A convolution and, behind it, a pass over the dense result: for the ways that do not apply its activation themselves.
#include "conv/conv.hpp"
#include "dense_unary.hpp"

namespace pg::cpu {
namespace {

class ActivatedConvolution final : public Convolution {
 public:
  ActivatedConvolution(const ConvShape& s, std::unique_ptr<Convolution> convolution)
      : count_(s.y.count()), activation_(::cpu::pRelu, s.dtype), convolution_(std::move(convolution)) {}
  uint64_t workspace() const override { return convolution_->workspace(); }
  uint64_t packed_bytes() const override { return convolution_->packed_bytes(); }
  void pack(const void* weight, void* target) override { convolution_->pack(weight, target); }
  bool activates() const override { return true; }

  void run(const ConvData& data) override {
    convolution_->run(data);
    activation_.run(data.result, count_);
  }

 private:
  int64_t count_;
  ::cpu::DenseUnary activation_;
  std::unique_ptr<Convolution> convolution_;
};

std::unique_ptr<Convolution> choose(const ConvShape& shape) {
  if (auto convolution = make_onednn_convolution(shape)) return convolution;
  if (shape.dtype == PG_F32 || shape.dtype == PG_F64) return make_column_convolution(shape);
  return make_widened_convolution(shape);
}

}  // namespace

std::unique_ptr<Convolution> make_convolution(const ConvShape& shape) {
  auto convolution = choose(shape);
  if (!shape.relu || convolution->activates()) return convolution;
  return std::make_unique<ActivatedConvolution>(shape, std::move(convolution));
}

}  // namespace pg::cpu
