// SPDX-License-Identifier: Apache-2.0
// Regions with lines, built by hand.
#pragma once

#include <catch2/catch.hpp>
#include <deque>

#include "../../contract/host.hpp"
#include "fused/claim.hpp"
#include "fused/line_source.hpp"
#include "fused/nvrtc.hpp"
#include "fused/stream_source.hpp"

using Shape = std::vector<int64_t>;
constexpr uint32_t kFloats[] = {PG_F32, PG_F16, PG_BF16, PG_F64};

// A region, built by hand.
class Lines {
 public:
  uint32_t value(uint32_t dtype, const Shape& shape) {
    Held& held = held_.emplace_back();
    held.shape = shape;
    held.stride.assign(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;) held.stride[i - 1] = held.stride[i] * shape[i];
    pg_tensor& t = held.tensor;
    t.size = PG_SIZE(pg_tensor, components);
    t.dtype_code = static_cast<uint16_t>(dtype >> 16), t.dtype_bits = static_cast<uint16_t>(dtype & 0xffff);
    t.rank = static_cast<uint32_t>(shape.size());
    t.shape = held.shape.data(), t.stride = held.stride.data();
    return static_cast<uint32_t>(held_.size() - 1);
  }
  uint32_t input(uint32_t dtype, const Shape& shape) {
    inputs_.push_back(value(dtype, shape));
    return inputs_.back();
  }
  uint32_t add(const char* op, const std::vector<uint32_t>& from, uint32_t dtype, const Shape& shape) {
    Node& node = nodes_.emplace_back();
    const pg_op_info* info = contract::find_op(op);
    node.inputs = from;
    node.groups.assign(from.size(), 1);
    node.attrs.assign(static_cast<const char*>(info->defaults),
                      static_cast<const char*>(info->defaults) + info->attr_size);
    node.outputs = {value(dtype, shape)};
    for (uint32_t k = 1; k < info->output_count; k++) node.outputs.push_back(PG_VALUE_NONE);
    node.raw.size = PG_SIZE(pg_node, attrs_offset);
    node.raw.op = info;
    node.raw.input_count = static_cast<uint32_t>(from.size()), node.raw.output_count = info->output_count;
    node.raw.inputs = node.inputs.data(), node.raw.groups = node.groups.data();
    node.raw.outputs = node.outputs.data(), node.raw.attrs = node.attrs.data();
    return node.outputs[0];
  }
  // Along the last axis, which stays with one element.
  uint32_t reduce(const char* op, uint32_t from, uint32_t dtype, Shape shape) {
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    shape.back() = 1;
    const uint32_t made = add(op, {from}, dtype, shape);
    if (std::strncmp(op, "arg", 3) == 0) {
      const int32_t no = 0;
      set(op, "axis", &last, sizeof last);
      set(op, "flat", &no, sizeof no);
    } else {
      pg_ints axes{};
      axes.count = 1, axes.value[0] = last;
      set(op, "axes", &axes, sizeof axes);
    }
    const int32_t yes = 1;
    set(op, "keepdim", &yes, sizeof yes);
    return made;
  }
  // Over the first axis, or all but the last; it goes.
  uint32_t reduce_columns(const char* op, uint32_t from, uint32_t dtype, const Shape& shape) {
    const uint32_t made = add(op, {from}, dtype, {shape.back()});
    pg_ints axes{};
    axes.count = static_cast<uint32_t>(shape.size()) - 1;
    for (uint32_t i = 0; i < axes.count; i++) axes.value[i] = i;
    set(op, "axes", &axes, sizeof axes);
    return made;
  }
  void keep(uint32_t value) { outputs_.push_back(value); }
  pg::Region region() {
    tensors_.clear(), nodes_raw_.clear();
    for (const Held& held : held_) tensors_.push_back(&held.tensor);
    for (const Node& node : nodes_) nodes_raw_.push_back(&node.raw);
    overwrites_.assign(outputs_.size(), 0);
    raw_ = {};
    raw_.size = PG_SIZE(pg_region, overwrites);
    raw_.value_count = static_cast<uint32_t>(tensors_.size()),
    raw_.node_count = static_cast<uint32_t>(nodes_raw_.size());
    raw_.values = tensors_.data(), raw_.nodes = nodes_raw_.data();
    raw_.input_count = static_cast<uint32_t>(inputs_.size()), raw_.inputs = inputs_.data();
    raw_.output_count = static_cast<uint32_t>(outputs_.size()), raw_.outputs = outputs_.data();
    raw_.overwrites = overwrites_.data();
    return pg::Region(&raw_);
  }
  std::vector<uint32_t> claimed() {
    std::vector<uint32_t> cluster(nodes_.size(), 0);
    cuda::fused::claim_nodes(region(), cluster.data());
    return cluster;
  }
  std::string ptx() {
    const pg::Region made = region();
    if (cuda::fused::has_streams(made)) return compiled(cuda::fused::write_streams(made).source);
    return compiled(cuda::fused::write_lines(made).source);
  }

 private:
  struct Held {
    pg_tensor tensor{};
    Shape shape, stride;
  };
  struct Node {
    pg_node raw{};
    std::vector<uint32_t> inputs, groups, outputs;
    std::vector<char> attrs;
  };
  static std::string compiled(const cuda::fused::Source& source) {
    INFO(source.text);
    std::string code;
    REQUIRE_NOTHROW(code = cuda::fused::compile_source(source.complete(!source.numbers.empty()), 90, true));
    return code;
  }
  void set(const char* op, const char* name, const void* data, size_t bytes) {
    const pg_op_info& info = *contract::find_op(op);
    for (uint32_t i = 0; i < info.attr_count; i++)
      if (std::strcmp(info.attrs[i]->name, name) == 0)
        return static_cast<void>(std::memcpy(nodes_.back().attrs.data() + info.attrs[i]->offset, data, bytes));
    FAIL(op << " has no " << name);
  }
  std::deque<Held> held_;
  std::deque<Node> nodes_;
  std::vector<const pg_tensor*> tensors_;
  std::vector<const pg_node*> nodes_raw_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<uint64_t> overwrites_;
  pg_region raw_{};
};
