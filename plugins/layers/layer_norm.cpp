// SPDX-License-Identifier: Apache-2.0
// Layer normalisation (Ba, Kiros and Hinton, 2016).
#include "perigee/layer.hpp"

namespace {

struct LayerNorm {
  pg_ints shape{};
  double eps = 1e-5;
  pg::Bool affine = true, bias = true, elementwise_affine = true;

  void parameters(pg::Params& p) {
    if (shape.count == 0) pg::fail_argument("shape must name at least one size");
    p.positive(shape, "shape");
    if (!(eps > 0)) pg::fail_argument(pg::format("eps must be positive, got %g", eps));
    if (!affine || !elementwise_affine) return;
    p.constant(0, shape, 1);
    if (bias) p.constant(1, shape, 0);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("layer_norm", "dims", "eps");
    const pg_tensor& x = c.input().meta();
    bool fits = x.rank >= shape.count;
    for (int64_t i = 0; fits && i < shape.count; i++) {
      fits = pg::dim_equal(x.shape[x.rank - shape.count + i], shape.value[i]);
    }
    if (!fits) pg::fail_argument("the input " + pg::shape_text(x) + " does not end in the layer's shape");
    return c.call(op).input(c.input()).input(c.param(0)).input(c.param(1)).set(0, shape.count).set(1, eps).emit();
  }
};

PG_LAYER(LayerNorm, "LayerNorm",
         "Normalises over the last axes, those that `shape` names (Ba, Kiros and Hinton, 2016): "
         "(x - mean) / sqrt(var + eps) * weight + bias, the variance being the biased one; [..., shape] in the same "
         "shape.")
    .attr(&LayerNorm::shape, "shape", "sizes of the axes to normalise over", PG_ATTR_REQUIRED)
    .attr(&LayerNorm::eps, "eps", "added to the variance")
    .attr(&LayerNorm::affine, "affine", "whether to learn a scale and a shift for each element")
    .attr(&LayerNorm::bias, "bias", "whether the shift is learnt, where there is a scale")
    .attr(&LayerNorm::elementwise_affine, "elementwise_affine", "the same as `affine`; PyTorch's name")
    .params({"weight", "bias"});

}  // namespace
