// SPDX-License-Identifier: Apache-2.0
// Batch normalisation (Ioffe and Szegedy, 2015): one struct, a row for each number of dimensions.
#include "activation.hpp"
#include "perigee/layer.hpp"

namespace {

struct BatchNormRow {
  const char *name, *doc;
  uint32_t least_rank, most_rank;
};
constexpr BatchNormRow kBatchNormRows[] = {
#define PG_BATCH_NORM_DOC(shape)                                                                                   \
  "Normalises each channel of " shape                                                                              \
  " over the batch, in the same shape (Ioffe and Szegedy, 2015): "                                                 \
  "(x - mean) / sqrt(var + eps) * weight + bias. While training, mean and biased variance are those of the batch," \
  " and running = (1 - momentum) running + momentum batch, with the unbiased variance."
    {"BatchNorm1d", PG_BATCH_NORM_DOC("[N, C] or [N, C, L]"), 2, 3},
    {"BatchNorm2d", PG_BATCH_NORM_DOC("[N, C, H, W]"), 4, 4},
    {"BatchNorm3d", PG_BATCH_NORM_DOC("[N, C, D, H, W]"), 5, 5},
#undef PG_BATCH_NORM_DOC
};

struct BatchNorm {
  int64_t features = 0;
  double eps = 1e-5, momentum = 0.1;
  pg::Bool affine = true, track_running_stats = true;
  int32_t activation = pg::Activation::kNone;

  void parameters(pg::Params& p) {
    p.infer(features, "features", 1);
    if (!(eps > 0)) pg::fail_argument(pg::format("eps must be positive, got %g", eps));
    if (!(momentum >= 0 && momentum <= 1))
      pg::fail_argument(pg::format("momentum must lie in [0, 1], got %g", momentum));
    pg_ints shape = pg::make_ints({features});
    if (affine) {
      p.constant(0, shape, 1);
      p.constant(1, shape, 0);
    }
    if (!track_running_stats) return;
    p.buffer(2, shape, 0);
    p.buffer(3, shape, 1);
  }
  pg::Value build(const pg::LayerCall& c) const {
    static constinit pg::OpRef op("batch_norm", "training", "momentum", "eps");
    static constinit pg::OpRef both("batch_norm_activation", "training", "momentum", "eps", "activation");
    const BatchNormRow& row = c.extra<BatchNormRow>();
    const pg_tensor& x = c.input().meta();
    if (x.rank < row.least_rank || x.rank > row.most_rank) {
      pg::fail_argument(pg::format("expected an input of %u axes, got %s", row.most_rank, pg::shape_text(x).c_str()));
    }
    pg::Call call = c.call(activation == pg::Activation::kRelu ? both : op);
    call.input(c.input());
    for (uint32_t i = 0; i < 4; i++) call.input(c.param(i));
    call.set(0, c.training() || !track_running_stats).set(1, momentum).set(2, eps);
    if (activation == pg::Activation::kRelu) call.set(3, 0);
    return call.emit();
  }
};

[[maybe_unused]] const int registered_batch_norm = [] {
  for (const BatchNormRow& row : kBatchNormRows) {
    pg::add_layer<BatchNorm>(row.name, row.doc, &row)
        .inferred(&BatchNorm::features, "features", "channels: the size of axis 2 of the input")
        .attr(&BatchNorm::eps, "eps", "added to the variance")
        .attr(&BatchNorm::momentum, "momentum", "weight of a new batch in the running statistics")
        .attr(&BatchNorm::affine, "affine", "whether to learn a scale and a shift for each channel")
        .attr(&BatchNorm::track_running_stats, "track_running_stats",
              "whether to keep running statistics for evaluation, which without them uses the batch's too")
        .choice(&BatchNorm::activation, "activation", "applied to the result, in the same pass", pg::Activation::kNames)
        .params({"weight", "bias", "running_mean", "running_var"});
  }
  return 0;
}();

}  // namespace
