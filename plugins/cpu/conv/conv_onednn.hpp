// SPDX-License-Identifier: Apache-2.0
// A convolution or one of its gradients as one primitive of oneDNN, with the copies to the layouts that it wants.
#pragma once

#include "conv/whole_convolution.hpp"
#include "onednn/adapted.hpp"

namespace pg::cpu {

// A tensor's layout in oneDNN's words. Axes of size 1 may have any stride, which would hide that a tensor is dense.
onednn::Desc operand_desc(const ConvOperand& t, onednn::DataType type);
// Filters [o, c / groups, ...], which oneDNN wants as [groups, o / groups, c / groups, ...] where there are groups.
onednn::Desc weight_desc(const ConvOperand& t, int64_t groups, onednn::DataType type);
// Whether a float32 convolution is to go Winograd's way, where oneDNN has it and the transformed tensors take no more
// scratch memory than this.
bool pays_winograd(const ConvShape& s);
constexpr uint64_t kWinogradBytes = uint64_t{256} << 20;
// What is padded behind the axes that the window slides over, from the last of three on. What the last window leaves
// over need not be padded: oneDNN checks that the sizes fit exactly.
onednn::Dims padding_behind(const ConvShape& s);

class OnednnConvolution final : public WholeConvolution {
 public:
  using Algorithm = dnnl::algorithm;
  // In the arithmetic of `type`: the tensors' own dtype, or float32. Throws dnnl::error for what oneDNN has no kernel
  // for.
  OnednnConvolution(const ConvShape& s, onednn::DataType type, Algorithm algorithm);

  uint64_t workspace() const override { return adapted_.workspace(); }
  uint64_t packed_bytes() const override { return kind_ == ConvKind::kWeightGradient ? 0 : adapted_.packed_bytes(1); }
  void pack(const void* weight, void* target) override { adapted_.pack(1, weight, target); }
  bool activates() const override { return adapted_.activates(2); }
  void run(const ConvData& d) override;

  uint64_t dy_bytes() const override { return adapted_.packed_bytes(0); }
  const onednn::Desc& wanted_dy() const override { return adapted_.wanted(0); }
  void pack_dy(const void* dy, const void* y, void* target) override { adapted_.pack(0, dy, target, y); }
  bool masks_dy() const override { return adapted_.masks(0); }

 private:
  bool try_create(const ConvShape& s, const onednn::Desc& x, const onednn::Desc& weight, const onednn::Desc& y,
                  const onednn::Desc& bias);
  void create(const ConvShape& s, const onednn::Desc& x, const onednn::Desc& weight, const onednn::Desc& y,
              const onednn::Desc& bias);

  Algorithm algorithm_;
  ConvKind kind_;
  uint32_t dtype_;
  int64_t n_, c_, image_;
  bool bias_, one_thread_;
  onednn::Desc x_, weight_, y_, given_bias_;
  onednn::Adapted adapted_;
};

}  // namespace pg::cpu
