// SPDX-License-Identifier: Apache-2.0
// What batch norms behind a product come to: a factor of each channel's weights, and a bias.
#pragma once

#include "nets/net.hpp"

namespace pg::cpu {

// Where the inputs of a piece lie in a launch, by value.
std::vector<uint32_t> launch_positions(const Region& piece);

// A vector that stays, of a frozen region: its value, or PG_VALUE_NONE where it is absent. Refuses one that changes, or
// that is not of `length` floats.
uint32_t constant_vector(const Region& region, const pg_node& node, uint32_t input, int64_t length);
// A batch norm with running statistics of so many channels. Refuses one that is none.
NetNorm read_net_norm(const Region& region, const pg_node& node, const KernelCall& call, int64_t channels);

class NetFold {
 public:
  // bias: a value, or PG_VALUE_NONE.
  NetFold(const Region& piece, const std::vector<uint32_t>& positions, int64_t channels, uint32_t bias,
          const std::vector<NetNorm>& norms);
  bool scales() const { return !norms_.empty(); }
  // Of each channel: what its weights are multiplied by, and what is added behind.
  void read(const pg_launch& launch, std::vector<double>& scale, std::vector<double>& shift) const;

 private:
  struct Vector {
    bool present = false;
    uint32_t input = 0;
    int64_t stride = 0;
    uint32_t dtype = PG_F32;
    double at(const pg_launch& launch, int64_t i, double absent) const;
  };
  struct Norm {
    Vector weight, bias, mean, var;
    double eps;
  };

  int64_t channels_;
  Vector bias_;
  std::vector<Norm> norms_;
};

}  // namespace pg::cpu
