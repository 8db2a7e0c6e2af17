// SPDX-License-Identifier: Apache-2.0
// adam (Kingma and Ba 2015; decoupled decay: Loshchilov and Hutter 2019) and sgd, over all tensors of a model at once.
#include <cmath>

#include "multi_tensor.hpp"

namespace cpu {
namespace {

void require_floats(const pg::KernelCall& call) {
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (!call.has(i)) continue;
    require_dense(call, call.in(i));
    if (!is_float(storage_of(call.in(i)))) refuse(call);
  }
}

// The operands of all tensors, group after group; groups may be empty.
template <int N>
MultiTensor<N> all_tensors(const pg::KernelCall& call) {
  size_t count = call.group(0);
  std::vector<const pg_tensor*> tensors(N * count, nullptr);
  for (uint32_t k = 0; k < N; k++) {
    if (call.group(k) != 0 && call.group(k) != count) {
      pg::fail_argument(pg::format("%s: group %u has %u tensors; expected %zu", call.op(), k, call.group(k), count));
    }
    for (uint32_t i = 0; i < call.group(k); i++) tensors[k * count + i] = call.raw->inputs[call.group_begin(k) + i];
  }
  return MultiTensor<N>(tensors, count);
}

struct Adam final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_floats(call); }
  Adam(const pg::KernelCall& call, pg::Plan&)
      : count_(call.group(0)),
        lr_(call.runtime<double>("lr")),
        beta1_(call.runtime<double>("beta1")),
        beta2_(call.runtime<double>("beta2")),
        eps_(call.runtime<double>("eps")),
        decay_(call.runtime<double>("weight_decay")),
        step_(call.runtime<double>("step")),
        scale_(call.runtime<double>("grad_scale")),
        decoupled_(call.attr<bool>("decoupled")),
        tensors_(all_tensors<4>(call)) {}

  void launch(const pg_launch& launch) override {
    double lr = lr_(launch), beta1 = beta1_(launch), beta2 = beta2_(launch), decay = decay_(launch), t = step_(launch);
    double correction1 = 1 - std::pow(beta1, t), root2 = std::sqrt(1 - std::pow(beta2, t));
    Numbers w{
        lr / correction1,   beta1,    beta2, eps_(launch), decoupled_ ? 0 : decay, decoupled_ ? 1 - lr * decay : 1,
        1 / scale_(launch), 1 / root2};
    AdamStep narrow{static_cast<float>(w.step_size),  static_cast<float>(w.beta1),    static_cast<float>(w.beta2),
                    static_cast<float>(w.eps),        static_cast<float>(w.decay),    static_cast<float>(w.keep),
                    static_cast<float>(w.grad_scale), static_cast<float>(w.inv_root2)};
    auto address = [&](int k, size_t i) { return pg::host_pointer(launch.input[static_cast<size_t>(k) * count_ + i]); };
    tensors_.run(address, [&](Storage type, char* const* p, int64_t n) {
      if (type == sF64) return step_f64(w, p, n);
      simd->adam(reinterpret_cast<float*>(p[0]), reinterpret_cast<float*>(p[1]), reinterpret_cast<float*>(p[2]),
                 reinterpret_cast<float*>(p[3]), n, narrow);
    });
  }

 private:
  struct Numbers {
    double step_size, beta1, beta2, eps, decay, keep, grad_scale, inv_root2;
  };
  static void step_f64(const Numbers& w, char* const* p, int64_t n) {
    auto *param = reinterpret_cast<double*>(p[0]), *grad = reinterpret_cast<double*>(p[1]);
    auto *m = reinterpret_cast<double*>(p[2]), *v = reinterpret_cast<double*>(p[3]);
    for (int64_t i = 0; i < n; i++) {
      double x = param[i] * w.keep, g = grad[i] * w.grad_scale + w.decay * x;
      m[i] = w.beta1 * m[i] + (1 - w.beta1) * g;
      v[i] = w.beta2 * v[i] + (1 - w.beta2) * g * g;
      param[i] = x - w.step_size * m[i] / (std::sqrt(v[i]) * w.inv_root2 + w.eps);
    }
  }

  size_t count_;
  pg::Runtime<double> lr_, beta1_, beta2_, eps_, decay_, step_, scale_;
  bool decoupled_;
  MultiTensor<4> tensors_;
};
PG_KERNEL("adam", Adam);

struct Sgd final : pg::Kernel {
  static void supports(const pg::KernelCall& call) { require_floats(call); }
  Sgd(const pg::KernelCall& call, pg::Plan&)
      : count_(call.group(0)),
        lr_(call.runtime<double>("lr")),
        momentum_(call.runtime<double>("momentum")),
        dampening_(call.runtime<double>("dampening")),
        decay_(call.runtime<double>("weight_decay")),
        first_(call.runtime<bool>("first")),
        nesterov_(call.attr<bool>("nesterov")),
        tensors_(all_tensors<3>(call)) {}

  void launch(const pg_launch& launch) override {
    double lr = lr_(launch), momentum = momentum_(launch), dampening = dampening_(launch), decay = decay_(launch);
    bool first = first_(launch);
    SgdStep narrow{static_cast<float>(lr),
                   static_cast<float>(momentum),
                   static_cast<float>(dampening),
                   static_cast<float>(decay),
                   nesterov_ ? 1 : 0,
                   first ? 1 : 0};
    auto address = [&](int k, size_t i) { return pg::host_pointer(launch.input[static_cast<size_t>(k) * count_ + i]); };
    tensors_.run(address, [&](Storage type, char* const* p, int64_t n) {
      if (type != sF64) {
        return simd->sgd(reinterpret_cast<float*>(p[0]), reinterpret_cast<float*>(p[1]), reinterpret_cast<float*>(p[2]),
                         n, narrow);
      }
      auto *param = reinterpret_cast<double*>(p[0]), *grad = reinterpret_cast<double*>(p[1]);
      auto* buffer = reinterpret_cast<double*>(p[2]);
      for (int64_t i = 0; i < n; i++) {
        double g = grad[i] + decay * param[i];
        if (buffer != nullptr) {
          buffer[i] = first ? g : momentum * buffer[i] + (1 - dampening) * g;
          g = nesterov_ ? g + momentum * buffer[i] : buffer[i];
        }
        param[i] -= lr * g;
      }
    });
  }

 private:
  size_t count_;
  pg::Runtime<double> lr_, momentum_, dampening_, decay_;
  pg::Runtime<bool> first_;
  bool nesterov_;
  MultiTensor<3> tensors_;
};
PG_KERNEL("sgd", Sgd);

}  // namespace
}  // namespace cpu
