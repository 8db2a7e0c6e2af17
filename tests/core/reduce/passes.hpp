// SPDX-License-Identifier: Apache-2.0
// Backward passes that are played: gradients of float32 parameters in host memory, told to whoever listens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/fake_device.hpp"
#include "tape/listener.hpp"

namespace perigee::test {

inline const std::vector<int64_t> kFour{16, 16, 100, 16};  // bytes: 64 64 400 64
inline const std::vector<bool> kAll{true, true, true, true};

inline FakeOptions host_memory() {
  FakeOptions options;
  options.synchronous = true;
  return options;
}

inline float* floats(Tensor& x) {
  const pg_address at = x.address();
  return reinterpret_cast<float*>(at.buffer + at.offset);
}

inline TensorRef filled(Device& device, int64_t n, float value) {
  TensorRef x = make_dense(device, intern_meta(PG_F32, 1, &n));
  for (int64_t i = 0; i < n; i++) floats(*x)[i] = value + static_cast<float>(i);
  return x;
}

inline TensorRef& gradient_of_param(const TensorRef& param) { return *gradient_of(*param); }

template <class Fn>
void each_listener(const TensorRef& param, Fn&& fn) {
  if (!param->node->rare) return;
  for (const Node::Listener& l : param->node->rare->listeners) fn(l);
}

// A pass that computes these parameters' gradients, the last one's first: of parameter i `value` + i.
inline void play_pass(Device& device, const std::vector<TensorRef>& params, float value,
                      const std::vector<bool>& uses) {
  std::vector<std::pair<size_t, TensorRef>> computed;
  for (size_t i = params.size(); i-- > 0;) {
    if (!uses[i]) continue;
    computed.emplace_back(i, filled(device, params[i]->meta->numel, value + static_cast<float>(i)));
    each_listener(params[i], [&](const Node::Listener& l) {
      l.who->arrived(l.number, *computed.back().second, gradient_of_param(params[i]).get());
    });
  }
  for (auto& [i, g] : computed) {
    TensorRef& own = gradient_of_param(params[i]);
    if (own) {
      for (int64_t k = 0; k < g->meta->numel; k++) floats(*own)[k] += floats(*g)[k];
      own->storage->version++;
    } else {
      own = std::move(g);
    }
    each_listener(params[i], [&](const Node::Listener& l) { l.who->collected(l.number, *own); });
  }
}

// "-" where there is none; else its first element, if the others follow it as they should.
inline std::string seen_gradient(const TensorRef& param) {
  TensorRef& own = gradient_of_param(param);
  if (!own) return "-";
  const float* g = floats(*own);
  for (int64_t k = 1; k < param->meta->numel; k++)
    if (g[k] == g[0]) return "damaged";
  return std::to_string(g[0]);
}

}  // namespace perigee::test
