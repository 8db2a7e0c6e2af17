// SPDX-License-Identifier: Apache-2.0
// The sources of generated kernels of lines, shown to the real NVRTC, which makes PTX without a GPU.
#include <catch2/catch.hpp>
#include <deque>

#include "../../contract/host.hpp"
#include "fused/claim.hpp"
#include "fused/line_node.hpp"
#include "fused/line_source.hpp"
#include "fused/nvrtc.hpp"

namespace {

using Shape = std::vector<int64_t>;

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
    node.output = value(dtype, shape);
    node.raw.size = PG_SIZE(pg_node, attrs_offset);
    node.raw.op = info;
    node.raw.input_count = static_cast<uint32_t>(from.size()), node.raw.output_count = 1;
    node.raw.inputs = node.inputs.data(), node.raw.groups = node.groups.data();
    node.raw.outputs = &node.output, node.raw.attrs = node.attrs.data();
    return node.output;
  }
  // Along the last axis, which stays with one element.
  uint32_t reduce(const char* op, uint32_t from, uint32_t dtype, Shape shape) {
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    shape.back() = 1;
    const uint32_t made = add(op, {from}, dtype, shape);
    pg_ints axes{};
    axes.count = 1, axes.value[0] = last;
    set(op, "axes", &axes, sizeof axes);
    const int32_t yes = 1;
    set(op, "keepdim", &yes, sizeof yes);
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
    const cuda::fused::LineSource made = cuda::fused::write_lines(region());
    INFO(made.source.text);
    std::string code;
    REQUIRE_NOTHROW(code = cuda::fused::compile_source(made.source.complete(!made.source.numbers.empty()), 90, true));
    return code;
  }

 private:
  struct Held {
    pg_tensor tensor{};
    Shape shape, stride;
  };
  struct Node {
    pg_node raw{};
    std::vector<uint32_t> inputs, groups;
    std::vector<char> attrs;
    uint32_t output = 0;
  };
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

constexpr uint32_t kFloats[] = {PG_F32, PG_F16, PG_BF16, PG_F64};

}  // namespace

TEST_CASE("Sources with every reduction compile, in all floating dtypes") {
  REQUIRE(cuda::fused::nvrtc_defect().empty());
  for (uint32_t dtype : kFloats) {
    Lines r;
    const Shape full = {1024, 96}, one = {1024, 1};
    const uint32_t x = r.input(dtype, full), y = r.input(dtype, {96});
    const uint32_t z = r.add("mul", {x, y}, dtype, full);
    for (const char* op : {"sum", "mean", "amax", "amin", "var", "std", "logsumexp", "nansum", "norm"}) {
      const uint32_t number = r.reduce(op, z, dtype, full);
      r.keep(r.add("sub", {z, r.add("exp", {number}, dtype, one)}, dtype, full));
      r.keep(number);
    }
    std::vector<uint32_t> cluster = r.claimed();
    CHECK(std::count(cluster.begin(), cluster.end(), cluster[0]) == static_cast<int64_t>(cluster.size()));
    const std::string code = r.ptx();
    CHECK(code.find(cuda::fused::kKernelName) != std::string::npos);
    CHECK(code.find("bar.sync") != std::string::npos);
    CHECK(code.find(".local") == std::string::npos);
  }
}

TEST_CASE("A reduction is left alone where it saves little, and where a kernel of lines cannot make it") {
  auto cluster_of = [](const Shape& full, const char* op, bool chain) {
    Lines r;
    const uint32_t x = r.input(PG_F32, full);
    uint32_t z = x;
    for (int i = 0; i < (chain ? 3 : 0); i++) z = r.add("exp", {z}, PG_F32, full);
    r.keep(r.reduce(op, z, PG_F32, full));
    return r.claimed().back();
  };
  CHECK(cluster_of({1024, 96}, "sum", true) != 0);
  CHECK(cluster_of({1024, 96}, "sum", false) == 0);  // reads what the operator reads
  CHECK(cluster_of({1024, 96}, "prod", true) == 0);  // not one of them
  CHECK(cluster_of({4, 8192}, "sum", true) == 0);    // too long for a block's memory
  CHECK(cluster_of({1024, 1}, "sum", true) == 0);    // no lines
}

TEST_CASE("A piece without the reduction that its cluster was claimed for") {
  Lines r;
  const Shape full = {256, 64}, one = {256, 1};
  const uint32_t x = r.input(PG_F32, full), n = r.input(PG_F32, one);
  const uint32_t root = r.add("sqrt", {n}, PG_F32, one);
  r.keep(r.add("div", {x, root}, PG_F32, full));
  r.keep(root);
  CHECK(cuda::fused::has_lines(r.region()));
  CHECK(r.ptx().find("sqrt.rn.f32") != std::string::npos);
}
