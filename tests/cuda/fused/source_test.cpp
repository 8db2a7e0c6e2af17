// SPDX-License-Identifier: Apache-2.0
// The sources of generated kernels, for all elementwise operators and dtypes, shown to the real NVRTC, which makes PTX
// without a GPU.
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "../../contract/host.hpp"
#include "fused/claim.hpp"
#include "fused/expression.hpp"
#include "fused/nvrtc.hpp"
#include "fused/source.hpp"

namespace {

constexpr uint32_t kDtypes[] = {PG_F32, PG_F16, PG_BF16, PG_F64, PG_I64, PG_I32, PG_I16, PG_I8, PG_U8, PG_B8};
constexpr uint32_t kMostNodes = 24;
const int64_t kMany = 64, kOne = 1;

pg_tensor vector_of(uint32_t dtype, const int64_t& elements) {
  static const int64_t stride = 1;
  pg_tensor t{};
  t.size = PG_SIZE(pg_tensor, components);
  t.dtype_code = static_cast<uint16_t>(dtype >> 16), t.dtype_bits = static_cast<uint16_t>(dtype & 0xffff);
  t.rank = 1;
  t.shape = &elements;
  t.stride = &stride;
  return t;
}

// A region, built by hand: each node reads inputs of its own kind, and its result leaves the region.
class Built {
 public:
  uint32_t input(uint32_t dtype, const int64_t& elements = kMany) {
    auto [at, fresh] = known_.try_emplace({dtype, elements}, 0u);
    if (fresh) inputs.push_back(at->second = value(dtype, elements));
    return at->second;
  }
  // Takes the node where kernels can be generated for it, with a result of either dtype that it may have.
  bool add(const pg_op_info* op, const std::vector<uint32_t>& from, const std::vector<char>& attrs, uint32_t dtype,
           bool alone = false) {
    for (uint32_t result : {dtype, static_cast<uint32_t>(PG_B8)}) {
      Node& node = nodes_.emplace_back();
      node.inputs = from;
      node.groups.assign(from.size(), 1);
      node.attrs = attrs;
      const uint32_t out = value(result, kMany);
      node.output = out;
      node.raw.size = PG_SIZE(pg_node, attrs_offset);
      node.raw.op = op;
      node.raw.input_count = static_cast<uint32_t>(from.size());
      node.raw.output_count = 1;
      node.raw.inputs = node.inputs.data();
      node.raw.groups = node.groups.data();
      node.raw.outputs = &node.output;
      node.raw.attrs = node.attrs.data();
      pointers_.push_back(&node.raw);
      cuda::fused::NodeExpression expression;
      try {
        cuda::fused::read_node(region(), count() - 1, expression, alone);
        outputs.push_back(out);
        for (int i = 0; i < expression.program.count; i++) primitives.insert(expression.program.step[i].primitive);
        return true;
      } catch (const pg::Error& e) {
        REQUIRE(e.code == PG_E_NOT_SUPPORTED);
        nodes_.pop_back();
        pointers_.pop_back();
        values_.pop_back();
      }
    }
    return false;
  }
  uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }
  pg::Region region() {
    value_pointers_.clear();
    for (const pg_tensor& t : values_) value_pointers_.push_back(&t);
    overwrites_.assign(outputs.size(), 0);
    raw_ = {};
    raw_.size = PG_SIZE(pg_region, overwrites);
    raw_.value_count = static_cast<uint32_t>(values_.size());
    raw_.node_count = count();
    raw_.values = value_pointers_.data();
    raw_.nodes = pointers_.data();
    raw_.input_count = static_cast<uint32_t>(inputs.size());
    raw_.output_count = static_cast<uint32_t>(outputs.size());
    raw_.inputs = inputs.data();
    raw_.outputs = outputs.data();
    raw_.overwrites = overwrites_.data();
    return pg::Region(&raw_);
  }
  uint32_t last() const { return outputs.back(); }

  std::vector<uint32_t> inputs, outputs;
  std::set<pg::math::Primitive> primitives;

 private:
  struct Node {
    pg_node raw{};
    std::vector<uint32_t> inputs, groups;
    uint32_t output = 0;
    std::vector<char> attrs;
  };
  uint32_t value(uint32_t dtype, const int64_t& elements) {
    values_.push_back(vector_of(dtype, elements));
    return static_cast<uint32_t>(values_.size() - 1);
  }
  std::map<std::pair<uint32_t, int64_t>, uint32_t> known_;
  std::deque<pg_tensor> values_;
  std::deque<Node> nodes_;
  std::vector<const pg_node*> pointers_;
  std::vector<const pg_tensor*> value_pointers_;
  std::vector<uint64_t> overwrites_;
  pg_region raw_{};
};

// `renewed`: as a part of a captured plan.
std::string compiled(Built& built, bool renewed = false) {
  const cuda::fused::Source source = cuda::fused::write_source(built.region());
  INFO(source.text);
  std::string ptx;
  REQUIRE_NOTHROW(ptx = cuda::fused::compile_source(source.complete(renewed), 90, true));
  return ptx;
}

std::vector<char> defaults_of(const pg_op_info& op) {
  auto* from = static_cast<const char*>(op.defaults);
  return {from, from + op.attr_size};
}

const pg_attr_info* find_kind(const pg_op_info& op, uint32_t kind) {
  for (uint32_t i = 0; i < op.attr_count; i++)
    if (op.attrs[i]->kind == kind) return op.attrs[i];
  return nullptr;
}

// Calls f(inputs, attrs) with all tensors, and with a number in place of each input that may be one.
template <class F>
void each_call(Built& built, const pg_op_info& op, uint32_t dtype, const F& f) {
  const pg::ScalarExpression* known = pg::scalar_expression(op);
  std::vector<uint32_t> from;
  for (uint32_t i = 0; i < op.input_count; i++)
    from.push_back(built.input((known->truth_inputs() >> i & 1u) != 0 ? static_cast<uint32_t>(PG_B8) : dtype));
  std::vector<char> attrs = defaults_of(op);
  f(from, attrs);
  for (uint32_t a = 0; a < op.attr_count; a++) {  // what expressions may ask: choices, and whole numbers but 0
    const pg_attr_info& attr = *op.attrs[a];
    const bool whole = attr.kind == PG_ATTR_INT && (attr.flags & PG_ATTR_RUNTIME) == 0;
    if (attr.kind != PG_ATTR_CHOICE && attr.kind != PG_ATTR_BOOL && !whole) continue;
    const int64_t last = attr.kind == PG_ATTR_CHOICE ? static_cast<int64_t>(attr.choice_count) - 1 : 1;
    for (int64_t i = 1; i <= last; i++) {
      std::vector<char> other = attrs;
      std::memcpy(other.data() + attr.offset, &i, whole ? 8 : 4);
      f(from, other);
    }
  }
  const pg_attr_info* scalar = find_kind(op, PG_ATTR_SCALAR);
  if (scalar == nullptr) return;
  for (uint32_t i = 0; i < op.input_count; i++) {
    std::vector<uint32_t> fewer = from;
    fewer[i] = PG_VALUE_NONE;
    std::vector<char> with = attrs;
    const pg_scalar number = {PG_SCALAR_FLOAT, static_cast<int32_t>(i)};
    std::memcpy(with.data() + scalar->offset, &number, sizeof number);
    f(fewer, with);
  }
}

}  // namespace

TEST_CASE("Sources of all elementwise operators compile, in all dtypes") {
  REQUIRE(cuda::fused::nvrtc_defect().empty());
  std::set<pg::math::Primitive> seen;
  int kernels = 0;
  for (uint32_t dtype : kDtypes) {
    auto built = std::make_unique<Built>();
    auto flush = [&] {
      if (built->count() == 0) return;
      const std::string ptx = compiled(*built, kernels % 2 == 1);
      CHECK(ptx.find(cuda::fused::kKernelName) != std::string::npos);
      seen.insert(built->primitives.begin(), built->primitives.end());
      kernels++;
      built = std::make_unique<Built>();
    };
    for (const pg_op_info* op : contract::all_ops()) {
      if (op->scalar == nullptr || pg::scalar_expression(*op) == nullptr) continue;
      each_call(*built, *op, dtype, [&](const std::vector<uint32_t>& from, const std::vector<char>& attrs) {
        built->add(op, from, attrs, dtype);
      });
      if (built->count() >= kMostNodes) flush();
    }
    flush();
  }
  CHECK(kernels > 20);
  std::string missing;
  for (const auto& info : pg::math::kPrimitives)
    if (seen.count(static_cast<pg::math::Primitive>(info.number)) == 0) missing += std::string(" ") + info.name;
  CHECK(missing == "");
}

TEST_CASE("What decides bits and speed stands in the code: nothing is contracted, packets are 16 bytes") {
  Built built;
  const pg_op_info *mul = contract::find_op("mul"), *add = contract::find_op("add");
  const uint32_t x = built.input(PG_F32), one = built.input(PG_F32, kOne);
  REQUIRE(built.add(mul, {x, x}, defaults_of(*mul), PG_F32));
  REQUIRE(built.add(add, {built.last(), one}, defaults_of(*add), PG_F32));
  const std::string ptx = compiled(built);
  CHECK(ptx.find("fma.") == std::string::npos);
  CHECK(ptx.find(".ftz") == std::string::npos);
  CHECK(ptx.find("mul.rn.f32") + ptx.find("mul.f32") != 2 * std::string::npos);
  CHECK(ptx.find("ld.global.v4") != std::string::npos);
  CHECK(ptx.find("st.global.v4") != std::string::npos);
  CHECK(ptx.find(".local") == std::string::npos);
}

TEST_CASE("16-bit results are rounded behind each operator") {
  Built built;
  const pg_op_info* add = contract::find_op("add");
  const uint32_t x = built.input(PG_BF16);
  REQUIRE(built.add(add, {x, x}, defaults_of(*add), PG_BF16));
  REQUIRE(built.add(add, {built.last(), x}, defaults_of(*add), PG_BF16));
  built.outputs.erase(built.outputs.begin());
  const std::string ptx = compiled(built);
  size_t conversions = 0;
  for (size_t at = 0; (at = ptx.find("cvt.rn.bf16.f32", at)) != std::string::npos; at++) conversions++;
  CHECK(conversions >= 2 * 8);  // both, for each element of a packet
}

TEST_CASE("Numbers of a captured launch are read once, before all packets") {
  Built built;
  const pg_op_info* mul = contract::find_op("mul");
  std::vector<char> with = defaults_of(*mul);
  const pg_scalar number = {PG_SCALAR_FLOAT, 1};
  std::memcpy(with.data() + find_kind(*mul, PG_ATTR_SCALAR)->offset, &number, sizeof number);
  REQUIRE(built.add(mul, {built.input(PG_F32), PG_VALUE_NONE}, with, PG_F32));
  auto loads = [](const std::string& ptx) {
    size_t count = 0;
    for (size_t at = 0; (at = ptx.find("ld.global", at)) != std::string::npos; at++) count++;
    return count;
  };
  const std::string plain = compiled(built), captured = compiled(built, true);
  CHECK(loads(captured) == loads(plain) + 1);
  CHECK(captured.find("ld.global") < captured.find("ld.global.v4"));
  CHECK(captured.find(".local") == std::string::npos);
}

TEST_CASE("Whole numbers that may be divided by zero are a kernel by themselves") {
  for (const char* name : {"remainder", "pow"}) {
    const pg_op_info* op = contract::find_op(name);
    for (uint32_t dtype : {PG_I64, PG_I32, PG_I16}) {
      Built built;
      const uint32_t x = built.input(dtype);
      CHECK_FALSE(built.add(op, {x, x}, defaults_of(*op), dtype));
      REQUIRE(built.add(op, {x, x}, defaults_of(*op), dtype, true));
      const std::string ptx = compiled(built);
      CHECK(ptx.find("atom") != std::string::npos);  // the record's lock
    }
  }
}

TEST_CASE("A capability that NVRTC does not know is refused, and what does not compile says why") {
  CHECK_THROWS_AS(cuda::fused::compile_source("", 999), pg::Error);
  CHECK_THROWS_WITH(cuda::fused::compile_source("extern \"C\" __global__ void region() { nothing(); }", 90),
                    Catch::Contains("nothing"));
}
