// SPDX-License-Identifier: Apache-2.0
// The convolution of a step: oneDNN's primitive with what is done behind it, and its weight and bias with the norms.
#pragma once

#include "conv/conv_onednn.hpp"
#include "conv/winograd_tiles.hpp"
#include "nets/net_fold.hpp"

namespace pg::cpu {

// oneDNN's choice of layouts, posts included. Throws pg::Error or dnnl::error where it has no kernel but its reference
// one.
dnnl::convolution_forward::primitive_desc describe_net_convolution(const NetStep& step);
// Whether its primitive is made and run on one thread.
bool is_one_threads(const ConvShape& s);

// An own loop for the step, of images in blocks of eight channels; nothing where oneDNN's takes less time.
std::optional<Winograd> find_net_winograd(const NetStep& step);

dnnl::primitive_attr net_attributes(const std::vector<NetPost>& posts);

class NetWeights {
 public:
  // weight: the layout that is wanted.
  NetWeights(const Region& piece, const std::vector<uint32_t>& positions, const NetStep& step,
             const onednn::Desc& weight);
  // Transformed.
  NetWeights(const Region& piece, const std::vector<uint32_t>& positions, const NetStep& step,
             const Winograd& winograd);
  uint64_t weight_bytes() const { return winograd_ ? winograd_->weight_bytes() : wanted_.get_size(); }
  uint64_t bias_bytes() const { return has_bias_ ? static_cast<uint64_t>(channels_) * sizeof(float) : 0; }
  void write(const pg_launch& launch, void* weight, void* bias);

 private:
  void read_filters(const pg_launch& launch, float* filters) const;

  uint32_t dtype_;  // of the weight
  int64_t channels_;
  bool has_weight_, has_bias_;
  ConvOperand operand_;
  uint32_t input_ = 0;
  NetFold fold_;
  onednn::Desc wanted_;
  onednn::Reorder reorder_;
  std::optional<Winograd> winograd_;
};

}  // namespace pg::cpu
