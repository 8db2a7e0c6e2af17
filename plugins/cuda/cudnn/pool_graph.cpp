// SPDX-License-Identifier: Apache-2.0
#include "cudnn/pool_graph.hpp"

namespace cuda::dnn {
namespace {

Descriptor describe(PoolUid uid, uint32_t dtype, const Four& shape) {
  Four stride = dense_strides(shape);
  Tensor t{uid, *data_type(dtype), {shape.begin(), shape.end()}, {stride.begin(), stride.end()}};
  t.alignment = pg::dtype_bytes(dtype);
  return t.describe();
}

cudnnResampleMode_t mode_of(PoolKind kind) {
  switch (kind) {
    case PoolKind::kMax: return CUDNN_RESAMPLE_MAXPOOL;
    case PoolKind::kAveragePadded: return CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
    default: return CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING;
  }
}

}  // namespace

PoolGraph::PoolGraph(const PoolingShape& s)
    : full_(describe(kFull, s.dtype, s.full)), pooled_(describe(kPooled, s.dtype, s.pooled)) {
  describe_windows(s);
  operation_ = Descriptor(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  operation_.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, windows_);
  operation_.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, full_);
  operation_.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, pooled_);
  operation_.finalize();
}

void PoolGraph::describe_windows(const PoolingShape& s) {
  windows_ = Descriptor(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  windows_.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, mode_of(s.kind));
  windows_.set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute_type(s.dtype));
  windows_.set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN);
  cudnnPaddingMode_t padding = s.kind == PoolKind::kMax ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
  windows_.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, padding);
  windows_.set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, int64_t{2});
  windows_.set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, std::span<const int64_t>(s.kernel));
  windows_.set(CUDNN_ATTR_RESAMPLE_STRIDES, std::span<const int64_t>(s.stride));
  windows_.set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, std::span<const int64_t>(s.padding));
  windows_.set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, std::span<const int64_t>(s.padding));
  windows_.finalize();
}

}  // namespace cuda::dnn
