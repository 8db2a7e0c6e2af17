// SPDX-License-Identifier: Apache-2.0
// Which nodes of a frozen region nets are made of.
#include <algorithm>
#include <cmath>

#include "kernels/windows.hpp"
#include "nets/net.hpp"
#include "nets/net_convolution.hpp"

namespace pg::cpu {
namespace {

bool begins_with(const char* name, const char* part) { return std::strncmp(name, part, std::strlen(part)) == 0; }

// Which net an image of that dtype is in.
uint8_t number_of(uint32_t dtype) { return dtype == PG_F32 ? 1 : dtype == PG_BF16 ? 2 : 3; }

// A tensor that nets compute with: [n, c, ...], without gaps.
void need_image(const pg_tensor& t, uint32_t dtype) {
  if (dtype_of(t) != dtype || t.rank < 3 || t.rank > 5 || element_count(t) == 0) fail_support("no image of floats");
  const ConvOperand o(t);
  if (!o.dense() && !o.channels_last()) fail_support("it has gaps");
}

NetFunction relu() { return {dnnl::algorithm::eltwise_relu, 0, 0}; }

NetFunction limits(double low, double high) {
  if (!(low <= high)) fail_support("limits that cross");
  return {dnnl::algorithm::eltwise_clip, static_cast<float>(low), static_cast<float>(high)};
}

NetFunction read_function(const KernelCall& call) {
  using A = dnnl::algorithm;
  if (call.is("relu")) return relu();
  if (call.is("sigmoid")) return {A::eltwise_logistic, 0, 0};
  if (call.is("tanh")) return {A::eltwise_tanh, 0, 0};
  if (call.is("silu")) return {A::eltwise_swish, 1, 0};
  if (call.is("hardswish")) return {A::eltwise_hardswish, 0, 0};
  if (call.is("gelu")) return {call.attr<int>("approximate") != 0 ? A::eltwise_gelu_tanh : A::eltwise_gelu_erf, 0, 0};
  if (call.is("leaky_relu")) return {A::eltwise_relu, call.attr<float>("negative_slope"), 0};
  if (call.is("elu")) return {A::eltwise_elu, call.attr<float>("alpha"), 0};
  if (call.is("relu6")) return limits(0, 6);
  if (call.is("hardtanh")) return limits(call.attr<double>("min_val"), call.attr<double>("max_val"));
  if (call.is("clamp")) return limits(call.attr<double>("min"), call.attr<double>("max"));
  fail_support("not an operator of nets");
}

void read_convolution_step(const Region& region, const pg_node& node, const KernelCall& call, NetStep& step) {
  step.kind = NetKind::kConvolution;
  step.shape = read_convolution(call);
  step.weight = node.inputs[1];
  if (!region.constant(step.weight) || dtype_of(call.in(1)) != step.dtype) fail_support("a weight changes");
  step.bias = constant_vector(region, node, 2, step.shape.o);
  if (step.shape.relu) step.posts.push_back({false, relu()});
}

void read_norm(const Region& region, const pg_node& node, const KernelCall& call, NetStep& step) {
  step.kind = NetKind::kConvolution;
  ConvShape& s = step.shape;
  const ConvOperand x(call.in(0));
  s.kind = ConvKind::kForward, s.dtype = step.dtype;
  s.n = x.shape[0], s.c = s.o = s.groups = x.shape[1];
  s.x = s.y = x;
  read_sizes(call.in(0), s.in), read_sizes(call.in(0), s.out);
  s.kernel[0] = s.kernel[1] = s.kernel[2] = 1;
  s.weight.rank = x.rank;
  for (uint32_t i = 0; i < x.rank; i++) s.weight.shape[i] = i == 0 ? s.o : 1, s.weight.stride[i] = 1;
  step.norms.push_back(read_net_norm(region, node, call, s.c));
  if (begins_with(call.op(), "batch_norm_activation")) step.posts.push_back({false, relu()});
}

void read_pool(const KernelCall& call, NetStep& step) {
  step.kind = NetKind::kPool;
  NetPool& p = step.pool;
  p.mean = !begins_with(call.op(), "max_pool");
  const pg_tensor &x = call.in(0), &y = call.out(0);
  const uint32_t axes = x.rank - 2;
  if (call.is("mean")) {  // of whole planes, small enough for a window
    if (y.rank != x.rank || call.axis_mask("axes", x.rank) != (((1u << axes) - 1) << 2))
      fail_support("no plane's mean");
    read_sizes(x, p.kernel);
    for (int64_t size : p.kernel)
      if (size > 16) fail_support("a large plane");
    return;
  }
  read_list(call, "kernel", axes, p.kernel);
  std::copy_n(p.kernel, 3, p.stride);
  read_list(call, "stride", axes, p.stride), read_list(call, "padding", axes, p.padding);
  if (call.attr<bool>("ceil_mode")) fail_support("windows beyond the padding");
  if (!p.mean) {
    int64_t dilation[3] = {1, 1, 1};
    read_list(call, "dilation", axes, dilation);
    for (int64_t d : dilation)
      if (d != 1) fail_support("dilated windows");
    return;
  }
  p.with_padding = call.attr<bool>("count_include_pad");
  if (call.attr<int64_t>("divisor_override") != 0) fail_support("another divisor");
}

// A number a channel: of each image, or of all.
bool is_of_channels(const pg_tensor& t, const pg_tensor& x) {
  if (t.rank != x.rank || t.shape[1] != x.shape[1] || (t.shape[0] != 1 && t.shape[0] != x.shape[0])) return false;
  return std::all_of(t.shape + 2, t.shape + t.rank, [](int64_t size) { return size == 1; });
}

void read_product(const pg_node& node, const KernelCall& call, NetStep& step) {
  step.kind = NetKind::kScale;
  if (!call.has(1)) fail_support("a number is a factor");
  need_image(call.in(1), step.dtype);
  const bool turned = !same_shape(call.in(0), call.out(0));
  const pg_tensor &x = call.in(turned ? 1 : 0), &factor = call.in(turned ? 0 : 1);
  if (!same_shape(x, call.out(0)) || !is_of_channels(factor, x)) fail_support("factors are not of channels");
  step.x = node.inputs[turned ? 1 : 0], step.other = node.inputs[turned ? 0 : 1];
}

void read_join(const pg_node& node, const KernelCall& call, NetStep& step) {
  step.kind = NetKind::kJoin;
  if (call.axis("axis", call.out(0).rank) != 1) fail_support("joined along another axis than channels");
  for (uint32_t i = 1; i < node.input_count; i++) {
    need_image(call.in(i), step.dtype);
    step.parts.push_back(node.inputs[i]);
  }
}

}  // namespace

bool is_net_dtype(uint32_t dtype) { return dtype == PG_F32 || dtype == PG_BF16 || dtype == PG_F16; }

onednn::DataType net_type(uint32_t dtype) {
  return dtype == PG_BF16 && onednn::computes(PG_BF16) ? onednn::DataType::bf16 : onednn::DataType::f32;
}

bool has_convolution(const Region& piece) {
  for (uint32_t n = 0; n < piece.node_count(); n++)
    if (begins_with(piece.node(n).op->name, "conv")) return true;
  return false;
}

NetStep read_net_step(const Region& region, uint32_t n) {
  const pg_node& node = region.node(n);
  const char* name = node.op->name;
  Region::Call described;
  region.describe(n, described);
  const KernelCall call(&described.call);
  if (!call.has(0) || !call.has_output(0)) fail_support("nothing to compute");
  for (uint32_t i = 1; i < node.output_count; i++)
    if (node.outputs[i] != PG_VALUE_NONE) fail_support("a second result is wanted");
  NetStep step;
  step.dtype = dtype_of(call.in(0));
  if (!is_net_dtype(step.dtype)) fail_support("no floats of nets");
  need_image(call.in(0), step.dtype), need_image(call.out(0), step.dtype);
  step.x = node.inputs[0], step.y = node.outputs[0];
  auto is_of_axes = [&](const char* stem, const char* tail) {
    for (const char* axes : {"1d", "2d", "3d"})
      if (call.is((std::string(stem) + axes + tail).c_str())) return true;
    return false;
  };
  if (is_of_axes("conv", "") || is_of_axes("conv", "_activation")) {
    read_convolution_step(region, node, call, step);
  } else if (begins_with(name, "batch_norm") && !begins_with(name, "batch_norm_grad")) {
    read_norm(region, node, call, step);
  } else if (is_of_axes("max_pool", "") || is_of_axes("avg_pool", "") || call.is("mean")) {
    read_pool(call, step);
  } else if (call.is("add")) {
    step.kind = NetKind::kSum;
    if (!call.has(1)) fail_support("a number is added");
    need_image(call.in(1), step.dtype);
    if (!same_shape(call.in(0), call.in(1))) fail_support("operands of two shapes");
    step.other = node.inputs[1];
  } else if (call.is("mul")) {
    read_product(node, call, step);
  } else if (call.is("cat")) {
    read_join(node, call, step);
  } else {
    step.kind = NetKind::kFunction;
    if (node.input_count != 1) fail_support("not an operator of nets");
    step.posts.push_back({false, read_function(call)});
  }
  return step;
}

std::vector<uint8_t> find_net_nodes(const Region& region) {
  std::vector<uint8_t> found(region.node_count(), 0);
  if (!region.frozen() || deterministic()) return found;
  std::vector<uint8_t> made(region.raw->value_count, 0);  // by a node that was found
  for (uint32_t n = 0; n < region.node_count(); n++) {
    try {
      const NetStep step = read_net_step(region, n);
      bool follows = false;
      step.each_read([&](uint32_t v) { follows |= made[v] != 0; });
      if (step.weight != PG_VALUE_NONE) {
        describe_net_convolution(step);  // or there is none
      } else if (!follows) {
        continue;
      }
      found[n] = number_of(step.dtype);
      made[step.y] = 1;
    } catch (const std::exception&) {
      continue;
    }
  }
  return found;
}

}  // namespace pg::cpu
