// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool_cudnn.hpp"

#include "cudnn/choice.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

dnn::Four four_of(const pg_tensor& t) { return {t.shape[0], t.shape[1], t.shape[2], t.shape[3]}; }

}  // namespace

PoolByCudnn::PoolByCudnn(const pg::KernelCall& call, dnn::PoolKind kind, const PoolShape& shape) {
  if (shape.axes != 2) return;
  if (!(kind == dnn::PoolKind::kMax ? dnn::largest_by_cudnn() : dnn::averages_by_cudnn())) return;
  dnn::PoolingShape s;
  s.kind = kind, s.dtype = pg::dtype_of(call.out(0));
  s.full = four_of(call.in(0)), s.pooled = four_of(call.out(0));
  std::copy_n(shape.kernel + 1, 2, s.kernel), std::copy_n(shape.stride + 1, 2, s.stride);
  std::copy_n(shape.padding + 1, 2, s.padding);
  bool plain = shape.dilation[1] == 1 && shape.dilation[2] == 1 && pg::is_contiguous(call.in(0));
  if (!plain || !s.is_cudnns()) return;
  pool_ = dnn::make_pool(s, call.raw->device, std::string(call.op()) + " of " + pg::describe(call));
}

bool PoolByCudnn::run(const Launch& launch) const {
  if (pool_ == nullptr) return false;
  pool_->run(launch.native(), launch.in(0), launch.out(0), launch.workspace());
  return true;
}

}  // namespace cuda
