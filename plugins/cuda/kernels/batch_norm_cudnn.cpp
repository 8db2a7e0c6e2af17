// SPDX-License-Identifier: Apache-2.0
#include "kernels/batch_norm_cudnn.hpp"

#include <climits>
#include <optional>

#include "cudnn/choice.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda {
namespace {

bool is_vector(const pg::KernelCall& call, uint32_t input) {
  if (!call.has(input)) return false;
  return pg::dtype_of(call.in(input)) == PG_F32 && pg::is_contiguous(call.in(input));
}

// [N, C, ...] with the places of a plane along one axis, unless there are two axes of them.
dnn::Four as_image(const pg_tensor& x) {
  if (x.rank == 4) return {x.shape[0], x.shape[1], x.shape[2], x.shape[3]};
  int64_t plane = 1;
  for (uint32_t i = 2; i < x.rank; i++) plane *= x.shape[i];
  return {x.shape[0], x.shape[1], plane, 1};
}

// None: this is no case of cuDNN's.
std::optional<dnn::NormShape> read_shape(const pg::KernelCall& call, bool gradient) {
  const pg_tensor& x = call.in(gradient ? 1 : 0);
  int64_t count = pg::element_count(x);
  dnn::NormShape s;
  s.kind = gradient ? dnn::NormKind::kGradient : dnn::NormKind::kForward;
  s.dtype = pg::dtype_of(x), s.x = as_image(x), s.running = !gradient && call.has(3);
  // Without training it has no engine for a norm of its own (cuDNN 9.19), nor for float64.
  bool taken = call.attr<bool>("training") && s.dtype != PG_F64 && pg::is_contiguous(x) && count > 0 && count < INT_MAX;
  if (gradient) {
    taken = taken && pg::is_contiguous(call.in(0));
    for (uint32_t i = 2; i <= 4; i++) taken = taken && is_vector(call, i);
  } else {
    for (uint32_t i = 1; i <= (s.running ? 4 : 2); i++) taken = taken && is_vector(call, i);
  }
  return taken ? std::optional(s) : std::nullopt;
}

}  // namespace

NormByCudnn::NormByCudnn(const pg::KernelCall& call)
    : gradient_(call.is("batch_norm_grad")), outputs_(call.output_count()) {
  if (!dnn::norms_by_cudnn()) return;
  std::optional<dnn::NormShape> shape = read_shape(call, gradient_);
  if (!shape) return;
  if (!gradient_) momentum_ = call.runtime<double>("momentum"), eps_ = call.runtime<double>("eps");
  norm_ = dnn::make_norm(*shape, call.raw->device, std::string(call.op()) + " of " + pg::describe(call));
}

bool NormByCudnn::run(const Launch& launch) const {
  if (norm_ == nullptr) return false;
  dnn::NormData d{};
  auto output = [&](uint32_t i) { return outputs_ > i ? launch.out(i) : nullptr; };
  d.result = launch.out(0), d.workspace = launch.workspace();
  if (gradient_) {
    d.dy = launch.in(0), d.x = launch.in(1), d.weight = launch.in(2);
    d.mean = launch.mutated(3), d.invstd = launch.mutated(4);
    d.dweight = output(1), d.dbias = output(2);
  } else {
    d.x = launch.in(0), d.weight = launch.in(1), d.bias = launch.in(2);
    if (launch.has(3)) d.running_mean = launch.mutated(3), d.running_var = launch.mutated(4);
    d.mean = output(1), d.invstd = output(2);
    d.momentum = static_cast<float>(momentum_(launch.raw)), d.eps = static_cast<float>(eps_(launch.raw));
  }
  if (!norm_->takes(d)) return false;
  norm_->run(launch.native(), d);
  return true;
}

}  // namespace cuda
