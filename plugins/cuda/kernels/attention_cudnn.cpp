// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_cudnn.hpp"

#include "cudnn/choice.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

// Of rank 3 or 4. Axes of size 1 may have any stride: they get that of a dense tensor.
void describe(const pg_tensor& t, dnn::Four& shape, dnn::Four& stride) {
  shape = {1, 1, 1, 1}, stride = {};
  for (uint32_t i = 0; i < t.rank; i++) {
    shape[4 - t.rank + i] = t.shape[i], stride[4 - t.rank + i] = t.stride[i];
  }
  for (int i = 0; i < 3; i++) {
    if (shape[i] == 1) stride[i] = shape[1] * shape[2] * shape[3];
  }
}

}  // namespace

AttentionByCudnn::AttentionByCudnn(const pg::KernelCall& call) {
  const uint32_t rank = call.in(0).rank;
  if (!dnn::attention_by_cudnn() || rank < 3 || rank > 4 || call.has(3) || call.has(4)) return;
  dnn::AttentionShape s;
  s.dtype = pg::dtype_of(call.in(0)), s.causal = call.attr<bool>("is_causal");
  describe(call.in(0), s.q, s.q_stride), describe(call.in(1), s.k, s.k_stride), describe(call.in(2), s.v, s.v_stride);
  bool same = s.q[3] == s.k[3] && s.k[2] == s.v[2];
  for (int i = 0; i < 2; i++) same = same && s.q[i] == s.k[i] && s.q[i] == s.v[i];
  if (!same || !s.is_cudnns()) return;
  attention_ = dnn::make_attention(s, call.raw->device, std::string(call.op()) + " of " + pg::describe(call));
}

bool AttentionByCudnn::run(const Launch& launch, double scale, bool has_lse) const {
  if (attention_ == nullptr) return false;
  dnn::AttentionData d;
  d.q = launch.in(0), d.k = launch.in(1), d.v = launch.in(2);
  d.out = launch.out(0), d.lse = has_lse ? launch.out(1) : nullptr;
  d.workspace = launch.workspace(), d.scale = static_cast<float>(scale);
  return attention_->run(launch.native(), d);
}

}  // namespace cuda
