// SPDX-License-Identifier: Apache-2.0
// The convolutional parts of a frozen region as few steps: what follows a convolution elementwise is done as its result
// is written, and batch norms become part of its weight and bias.
#pragma once

#include <dnnl.hpp>
#include <vector>

#include "conv/conv.hpp"
#include "onednn/onednn.hpp"
#include "perigee/compiler.hpp"

namespace pg::cpu {

// A function of each element, in oneDNN's words.
struct NetFunction {
  dnnl::algorithm algorithm = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
};

// What happens to a result before it is written: a function, or the addition of another tensor.
struct NetPost {
  bool sum = false;
  NetFunction function;
};

// Running statistics, and the scale and shift behind them; numbers of values, PG_VALUE_NONE where absent.
struct NetNorm {
  uint32_t weight, bias, mean, var;
  double eps;
};

struct NetPool {
  bool mean = false, with_padding = false;  // the largest of each window; or its mean, in which padding counts
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0};
};

enum class NetKind { kConvolution, kPool, kSum, kFunction, kScale, kJoin };

struct NetStep {
  NetKind kind = NetKind::kFunction;
  uint32_t dtype = PG_F32;  // of all images
  uint32_t x = PG_VALUE_NONE, y = PG_VALUE_NONE;
  uint32_t other = PG_VALUE_NONE;  // what is added, or the number of each channel that x is multiplied by
  std::vector<uint32_t> parts;     // x and what is behind it, along the channels
  std::vector<NetPost> posts;
  // A convolution's. Without a weight it is a norm alone: a channel by itself each, its weight 1.
  ConvShape shape{};
  uint32_t weight = PG_VALUE_NONE, bias = PG_VALUE_NONE;
  std::vector<NetNorm> norms;  // in their order
  NetPool pool;

  // Calls f(value) for each tensor that is read, but for a convolution's parameters.
  template <class F>
  void each_read(const F& f) const {
    for (uint32_t v : {x, other})
      if (v != PG_VALUE_NONE) f(v);
    for (uint32_t v : parts) f(v);
  }
  bool has_bias() const { return bias != PG_VALUE_NONE || !norms.empty(); }
  bool sums() const {
    for (const NetPost& p : posts)
      if (p.sum) return true;
    return false;
  }
};

// A node by itself. Throws pg::Error where it is none that nets are made of.
NetStep read_net_step(const pg::Region& region, uint32_t node);
// Whether nets, and linear layers with norms, are made of that dtype.
bool is_net_dtype(uint32_t dtype);
// What nets compute images of a dtype in: float32, or bfloat16 where the processor has arithmetic for it.
onednn::DataType net_type(uint32_t dtype);

// The nodes of a frozen region that are better computed as nets: convolutions, and what of the others follows one. Nets
// of different numbers are apart; 0: none.
std::vector<uint8_t> find_net_nodes(const pg::Region& region);
constexpr uint32_t kMostNets = 3;

// Whether a piece is a net: what is cut off one may be without convolutions, which is no kernel of nets.
bool has_convolution(const pg::Region& piece);

struct NetSteps {
  std::vector<NetStep> steps;                   // of one dtype
  uint32_t norms = 0, functions = 0, sums = 0;  // that are done by convolutions
};
NetSteps join_net_steps(const pg::Region& piece);

// The whole of a piece. Throws pg::Error where it has no convolution, or oneDNN no kernel for one.
pg::Kernel* make_net(const pg::Region& piece, pg::Plan& plan);

}  // namespace pg::cpu
