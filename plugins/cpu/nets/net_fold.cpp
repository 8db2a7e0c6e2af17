// SPDX-License-Identifier: Apache-2.0
#include "nets/net_fold.hpp"

#include <cmath>

namespace pg::cpu {

std::vector<uint32_t> launch_positions(const Region& piece) {
  std::vector<uint32_t> positions(piece.raw->value_count, PG_VALUE_NONE);
  for (uint32_t i = 0; i < piece.raw->input_count; i++) positions[piece.raw->inputs[i]] = i;
  return positions;
}

uint32_t constant_vector(const Region& region, const pg_node& node, uint32_t input, int64_t length) {
  const uint32_t v = input < node.input_count ? node.inputs[input] : PG_VALUE_NONE;
  if (v == PG_VALUE_NONE) return v;
  const pg_tensor& t = region.value(v);
  if (!region.constant(v) || !is_net_dtype(dtype_of(t)) || t.rank != 1 || t.shape[0] != length)
    fail_support("a parameter changes");
  return v;
}

NetNorm read_net_norm(const Region& region, const pg_node& node, const KernelCall& call, int64_t channels) {
  if (call.attr<bool>("training") || !call.has(3) || !call.has(4)) fail_support("statistics of the batch");
  NetNorm norm{};
  uint32_t* const parts[] = {&norm.weight, &norm.bias, &norm.mean, &norm.var};
  for (uint32_t i = 0; i < 4; i++) *parts[i] = constant_vector(region, node, i + 1, channels);
  norm.eps = call.attr<double>("eps");
  return norm;
}

NetFold::NetFold(const Region& piece, const std::vector<uint32_t>& positions, int64_t channels, uint32_t bias,
                 const std::vector<NetNorm>& norms)
    : channels_(channels) {
  auto vector = [&](uint32_t v) -> Vector {
    if (v == PG_VALUE_NONE) return {};
    return {true, positions[v], piece.value(v).stride[0], dtype_of(piece.value(v))};
  };
  bias_ = vector(bias);
  for (const NetNorm& n : norms)
    norms_.push_back({vector(n.weight), vector(n.bias), vector(n.mean), vector(n.var), n.eps});
}

double NetFold::Vector::at(const pg_launch& launch, int64_t i, double absent) const {
  if (!present) return absent;
  switch (dtype) {
    case PG_BF16: return load<BFloat16>(pg::input<const BFloat16>(launch, input)[i * stride]);
    case PG_F16: return load<Half>(pg::input<const Half>(launch, input)[i * stride]);
    default: return pg::input<const float>(launch, input)[i * stride];
  }
}

void NetFold::read(const pg_launch& launch, std::vector<double>& scale, std::vector<double>& shift) const {
  scale.assign(static_cast<size_t>(channels_), 1);
  shift.assign(scale.size(), 0);
  for (int64_t o = 0; o < channels_; o++) {
    double a = 1, b = bias_.at(launch, o, 0);
    for (const Norm& n : norms_) {
      const double factor = n.weight.at(launch, o, 1) / std::sqrt(n.var.at(launch, o, 1) + n.eps);
      a *= factor;
      b = (b - n.mean.at(launch, o, 0)) * factor + n.bias.at(launch, o, 0);
    }
    scale[static_cast<size_t>(o)] = a, shift[static_cast<size_t>(o)] = b;
  }
}

}  // namespace pg::cpu
