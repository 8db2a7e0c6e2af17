// SPDX-License-Identifier: Apache-2.0
#include "one_call.hpp"

#include "expression.hpp"
#include "nvrtc.hpp"
#include "region_kernel.hpp"

namespace cuda::fused {
namespace {

// The call as a region of one node. `inputs`: those of the call that are tensors, which are the region's.
class OneNode {
 public:
  OneNode(const pg::KernelCall& call, const std::vector<uint32_t>& inputs) {
    for (uint32_t i = 0; i < call.input_count(); i++) {
      from_.push_back(call.has(i) ? static_cast<uint32_t>(values_.size()) : PG_VALUE_NONE);
      if (call.has(i)) values_.push_back(&call.in(i));
    }
    for (uint32_t i : inputs) inputs_.push_back(from_[i]);
    result_ = static_cast<uint32_t>(values_.size());
    values_.push_back(&call.out(0));
    node_.size = PG_SIZE(pg_node, attrs_offset);
    node_.op = call.raw->op;
    node_.input_count = call.input_count(), node_.output_count = 1;
    node_.inputs = from_.data(), node_.groups = call.raw->groups, node_.outputs = &result_;
    node_.attrs = call.raw->attrs;
    raw_.size = PG_SIZE(pg_region, overwrites);
    raw_.device = call.raw->device;
    raw_.value_count = result_ + 1, raw_.node_count = 1;
    raw_.values = values_.data(), raw_.nodes = &nodes_;
    raw_.input_count = static_cast<uint32_t>(inputs_.size()), raw_.output_count = 1;
    raw_.inputs = inputs_.data(), raw_.outputs = &result_;
    raw_.overwrites = &overwrites_;
  }
  OneNode(const OneNode&) = delete;
  pg::Region region() const { return pg::Region(&raw_); }

 private:
  std::vector<const pg_tensor*> values_;
  std::vector<uint32_t> from_, inputs_;
  uint32_t result_ = 0;
  uint64_t overwrites_ = 0;
  pg_node node_{};
  const pg_node* nodes_ = &node_;
  pg_region raw_{};
};

std::vector<uint32_t> tensors_of(const pg::KernelCall& call) {
  std::vector<uint32_t> tensors;
  for (uint32_t i = 0; i < call.input_count(); i++)
    if (call.has(i)) tensors.push_back(i);
  return tensors;
}

class Nothing final : public Kernel {
 public:
  void run(const Launch&) override {}
};

class OneCall final : public Kernel {
 public:
  explicit OneCall(const pg::KernelCall& call) : inputs_(tensors_of(call)), kernel_(OneNode(call, inputs_).region()) {}
  void run(const Launch& launch) override {
    std::vector<pg_address> inputs;
    for (uint32_t i : inputs_) inputs.push_back(launch.raw.input[i]);
    pg_launch raw = launch.raw;
    raw.input = inputs.data(), raw.input_count = static_cast<uint32_t>(inputs.size());
    kernel_.run(Launch(raw));
  }
  bool renews() const override { return kernel_.renews(); }

 private:
  std::vector<uint32_t> inputs_;
  RegionKernel kernel_;
};

}  // namespace

void check_one_call(const pg::KernelCall& call) {
  NodeExpression expression;
  read_call(call, expression);
  if (const std::string& defect = nvrtc_defect(); !defect.empty())
    pg::fail_support(pg::format("the kernel of %s is generated, and there is no NVRTC: %s", call.op(), defect.c_str()));
}

pg::Kernel* prepare_one_call(const pg::KernelCall& call) {
  if (pg::element_count(call.out(0)) == 0) return new Nothing;
  return new OneCall(call);
}

}  // namespace cuda::fused
