// SPDX-License-Identifier: Apache-2.0
// A net as oneDNN's primitives, one behind the other.
#pragma once

#include <optional>
#include <string>

#include "nets/net_convolution.hpp"
#include "nets/net_memory.hpp"
#include "nets/net_scale.hpp"
#include "onednn/blocked.hpp"

namespace pg::cpu {

// Where an argument lies: a buffer, an input or output of the launch, or bytes into what was packed.
struct NetPlace {
  enum Where { kBuffer, kInput, kOutput, kPacked } where = kBuffer;
  uint64_t at = 0;
  bool operator==(const NetPlace&) const = default;
};

// A convolution by tiles of x, weight, y and a bias, as places have them, of which the bias may be missing.
struct NetTiles {
  Winograd winograd;
  bool add, relu;
};

// A primitive; a copy from the first place to the second; the first place times the second's numbers; or a convolution.
struct NetWork {
  onednn::Step step;
  std::optional<NetTiles> tiles;
  std::optional<onednn::Copy> copy;
  std::optional<ChannelScale> scale;
  std::vector<NetPlace> places;
  bool one_thread = false;
};

struct NetProgram {
  struct Weights {
    NetWeights weights;
    uint64_t weight, bias;  // bytes into what is packed
  };
  std::vector<NetWork> works;
  std::vector<Weights> weights;
  NetMemory memory;
  uint64_t packed_bytes = 0, scratchpad_bytes = 0;
  std::string description;
};

// Throws pg::Error or dnnl::error where it has no convolution, or oneDNN no kernel for a step.
NetProgram build_net(const Region& piece);

class NetKernel final : public DescribedKernel {
 public:
  NetKernel(NetProgram program, Plan& plan);
  void launch(const pg_launch& launch) override;
  void pack(uint32_t input, const pg_launch& launch, pg_address target) override;
  const char* description() const override { return net_.description.c_str(); }

 private:
  NetProgram net_;
};

}  // namespace pg::cpu
