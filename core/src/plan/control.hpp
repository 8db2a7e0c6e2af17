// SPDX-License-Identifier: Apache-2.0
// Runs a node that owns bodies (graph/control.hpp).
#pragma once

#include "graph/control.hpp"
#include "plan/run.hpp"

namespace perigee {

// Several threads may run it at once, as a Runner.
class ControlRunner {
 public:
  // `wanted`: by output of the node, whether somebody asks for it. What it needs to know of the graph it copies.
  ControlRunner(const Graph& g, uint32_t node, const std::vector<uint8_t>& wanted, const Placement* placement,
                bool fuses);
  // By input and output of the node; outputs that nobody asked for stay empty. `sizes`: what is known of sizes. Errors
  // name the node of the body that failed, or this one.
  void run(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs);

 private:
  struct Part;
  TensorRef zero(uint32_t output, const Bindings& sizes) const;
  TensorRef empty(uint32_t output, const Bindings& sizes) const;
  void run_cond(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs);
  void run_scan(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs);
  void run_loop(Tensor* const* inputs, const Bindings& sizes, TensorRef* outputs);
  void check_carry(uint32_t i, const Tensor& now, const Tensor& first) const;

  const std::shared_ptr<Control> control_;
  const uint32_t input_count_;
  std::vector<MetaRef> metas_;  // by output
  std::vector<Device*> devices_;
  std::vector<uint8_t> wanted_;
  std::vector<std::unique_ptr<Part>> parts_;  // by body

 public:
  ~ControlRunner();
};

}  // namespace perigee
