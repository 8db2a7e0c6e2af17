// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions over one to three axes. Initial values are PyTorch's: Kaiming's uniform ones
// with a = sqrt(5), which is a bound of 1 / sqrt(fan in).
#include <cmath>

#include "activation.hpp"
#include "window.hpp"

namespace {

template <uint32_t axes>
constexpr const char* kForward = axes == 1   ? "conv1d"
                                 : axes == 2 ? "conv2d"
                                             : "conv3d";
template <uint32_t axes>
constexpr const char* kActivated = axes == 1   ? "conv1d_activation"
                                   : axes == 2 ? "conv2d_activation"
                                               : "conv3d_activation";
template <uint32_t axes>
constexpr const char* kTranspose = axes == 1   ? "conv_transpose1d"
                                   : axes == 2 ? "conv_transpose2d"
                                               : "conv_transpose3d";

template <uint32_t axes, bool transposed>
struct Conv {
  int64_t inputs = 0, out = 0;
  pg_ints kernel = pg::repeated(axes, 0), stride = pg::repeated(axes, 1), padding = pg::repeated(axes, 0),
          output_padding = pg::repeated(axes, 0), dilation = pg::repeated(axes, 1);
  int64_t groups = 1;
  pg::Bool bias = true;
  int32_t activation = pg::Activation::kNone;  // no attribute of the transposed one

  void parameters(pg::Params& p) {
    p.positive(out, "out");
    p.infer(inputs, "inputs", -static_cast<int>(axes) - 1);
    check(p);
    int64_t first = transposed ? inputs : out, second = (transposed ? out : inputs) / groups;
    pg_ints shape = pg::make_ints({first, second});
    auto fan_in = static_cast<double>(second);
    for (uint32_t i = 0; i < axes; i++) {
      shape.value[shape.count++] = kernel.value[i];
      fan_in *= static_cast<double>(kernel.value[i]);
    }
    p.uniform(0, shape, 1 / std::sqrt(fan_in));
    if (bias) p.uniform(1, pg::make_ints({out}), 1 / std::sqrt(fan_in));
  }
  pg::Value build(const pg::LayerCall& c) const {
    pg::Batch batch(c, axes);
    if constexpr (transposed) {
      static constinit pg::OpRef op(kTranspose<axes>, "stride", "padding", "dilation", "groups", "output_padding");
      pg::Call call = c.call(op);
      return batch.result(set(call, c, batch.x).set(4, output_padding).emit());
    } else {
      static constinit pg::OpRef op(kForward<axes>, "stride", "padding", "dilation", "groups");
      static constinit pg::OpRef both(kActivated<axes>, "stride", "padding", "dilation", "groups", "activation");
      pg::Call call = c.call(activation == pg::Activation::kRelu ? both : op);
      set(call, c, batch.x);
      if (activation == pg::Activation::kRelu) call.set(4, 0);
      return batch.result(call.emit());
    }
  }

 private:
  pg::Call& set(pg::Call& call, const pg::LayerCall& c, pg::Value x) const {
    call.input(x).input(c.param(0)).input(c.param(1));
    return call.set(0, stride).set(1, padding).set(2, dilation).set(3, groups);
  }
  void check(const pg::Params& p) const {
    pg::check_axes(kernel, "kernel", axes), pg::check_axes(stride, "stride", axes);
    pg::check_axes(dilation, "dilation", axes);
    if (transposed) pg::check_axes(output_padding, "output_padding", axes);  // no attribute of the other
    if (padding.count != 2 * axes) pg::check_axes(padding, "padding", axes);
    p.positive(kernel, "kernel");
    p.positive(stride, "stride");
    p.positive(dilation, "dilation");
    p.not_negative(padding, "padding");
    p.not_negative(output_padding, "output_padding");
    p.positive(groups, "groups");
    if (inputs % groups != 0 || out % groups != 0) {
      pg::fail_argument(pg::format("inputs %lld and out %lld must be multiples of groups %lld",
                                   static_cast<long long>(inputs), static_cast<long long>(out),
                                   static_cast<long long>(groups)));
    }
  }
};

template <class T>
pg::LayerSchema<T>& first_attrs(const char* name, const char* doc) {
  return pg::add_layer<T>(name, doc)
      .inferred(&T::inputs, "inputs", "channels of the input")
      .attr(&T::out, "out", "channels of the output", PG_ATTR_REQUIRED)
      .pair(&T::kernel, "kernel", "size of the window along each axis", PG_ATTR_REQUIRED)
      .pair(&T::stride, "stride", "steps of the window along each axis, in elements")
      .pair(&T::padding, "padding", "zeros added on both sides of each axis; twice as many numbers: before and behind");
}

// PyTorch's order of positional arguments differs between the two.
template <uint32_t axes>
void add_conv(const char* name, const char* doc) {
  using T = Conv<axes, false>;
  first_attrs<T>(name, doc)
      .pair(&T::dilation, "dilation", "distance between the window's elements along each axis")
      .attr(&T::groups, "groups", "channels are split into this many independent parts")
      .attr(&T::bias, "bias", "whether to add a bias [out]")
      .choice(&T::activation, "activation", "applied to the result, in the same pass", pg::Activation::kNames)
      .params({"weight", "bias"});
}
template <uint32_t axes>
void add_transpose(const char* name, const char* doc) {
  using T = Conv<axes, true>;
  first_attrs<T>(name, doc)
      .pair(&T::output_padding, "output_padding", "elements added behind each axis of the result")
      .attr(&T::groups, "groups", "channels are split into this many independent parts")
      .attr(&T::bias, "bias", "whether to add a bias [out]")
      .pair(&T::dilation, "dilation", "distance between the window's elements along each axis")
      .params({"weight", "bias"});
}

#define PG_CONV_SIZE                                                                             \
  " Each axis becomes floor((size + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 long. " \
  "Channels of one group see only inputs of the same group."
#define PG_TRANSPOSE_SIZE                                                    \
  " It is the gradient of that convolution by its input. Each axis becomes " \
  "(size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1 long."

[[maybe_unused]] const int registered_conv = [] {
  add_conv<1>("Conv1d",
              "Cross-correlation of sequences: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, "
              "inputs, L] to [N, out, L'] (N may be missing) with weight [out, inputs / groups, k]." PG_CONV_SIZE);
  add_conv<2>(
      "Conv2d",
      "Cross-correlation of images: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, inputs, "
      "H, W] to [N, out, H', W'] (N may be missing) with weight [out, inputs / groups, kh, kw]." PG_CONV_SIZE);
  add_conv<3>("Conv3d",
              "Cross-correlation of volumes: y[o] = bias[o] + sum over inputs i of weight[o, i] * x[i], from [N, "
              "inputs, D, H, W] to [N, out, D', H', W'] (N may be missing) with weight [out, inputs / groups, kd, kh, "
              "kw]." PG_CONV_SIZE);
  add_transpose<1>("ConvTranspose1d",
                   "Transpose of a convolution of sequences: [N, inputs, L] to [N, out, L'] (N may be missing) with "
                   "weight [inputs, out / groups, k]." PG_TRANSPOSE_SIZE);
  add_transpose<2>("ConvTranspose2d",
                   "Transpose of a convolution of images: [N, inputs, H, W] to [N, out, H', W'] (N may be missing) "
                   "with weight [inputs, out / groups, kh, kw]." PG_TRANSPOSE_SIZE);
  add_transpose<3>("ConvTranspose3d",
                   "Transpose of a convolution of volumes: [N, inputs, D, H, W] to [N, out, D', H', W'] (N may be "
                   "missing) with weight [inputs, out / groups, kd, kh, kw]." PG_TRANSPOSE_SIZE);
  return 0;
}();
#undef PG_CONV_SIZE
#undef PG_TRANSPOSE_SIZE

}  // namespace
