// SPDX-License-Identifier: Apache-2.0
// pg.compiler/0 of the processor: what goes together, and the tables of threaded code.
#include <cstring>

#include "../reduction.hpp"
#include "claim.hpp"
#include "groups.hpp"
#include "line_region.hpp"
#include "nets/net.hpp"
#include "nets/net_linear.hpp"
#include "perigee/kernels/strided.hpp"

namespace cpu {

#if defined(__x86_64__)
namespace avx2 {
const Threaded* make_threaded();
}
namespace avx512 {
const Threaded* make_threaded();
}
#else
namespace generic {
const Threaded* make_threaded();
}
#endif

const Threaded& threaded() {
#if defined(__x86_64__)
  static const Threaded* table =
      std::strcmp(simd->name, "avx512") == 0 ? avx512::make_threaded() : avx2::make_threaded();
#else
  static const Threaded* table = generic::make_threaded();
#endif
  return *table;
}

TileHandler tile_loop(Primitive p, Compute c) {
  if (pg::math::info(p).cost == pg::math::kCheap || p == pExp || p == pSigmoid || p == pSilu) return nullptr;
  switch (pg::math::info(p).form) {
    case pg::math::kUnary: return reinterpret_cast<TileHandler>(simd->unary[p][c]);
    case pg::math::kBinary: return reinterpret_cast<TileHandler>(simd->binary[p][c]);
    case pg::math::kSlope: return reinterpret_cast<TileHandler>(simd->slope[p][c]);
    case pg::math::kTernary: return reinterpret_cast<TileHandler>(simd->ternary[p][c]);
    case pg::math::kChoice: return nullptr;
  }
  return nullptr;
}

namespace {

// The width of a node's words. Refuses a mixture.
int node_width(const pg::Region& region, const pg_node& node) {
  int width = -1;
  auto look = [&](uint32_t value) {
    if (value == PG_VALUE_NONE) return;
    const int w = width_of(storage_of(region.value(value)));
    if (w >= 0 && width >= 0 && w != width) pg::fail_support("words of two widths");
    width = std::max(width, w);
  };
  for (uint32_t i = 0; i < node.input_count; i++) look(node.inputs[i]);
  look(node.outputs[0]);
  return width;
}

// Nodes apart, up to which two that read the same tensor go together: what is gathered from further away would keep
// memory for longer than a second reading costs.
constexpr uint32_t kNear = 8;
// What operators on lines have in the caches anyway is not read quicker in a region.
constexpr int64_t kLeastElements = 65536;

int64_t bytes_of(const pg_tensor& t) { return pg::element_count(t) * kStorageBytes[storage_of(t)]; }

class Claim {
 public:
  // apart: nodes that are better left alone.
  Claim(const pg::Region& region, const std::vector<uint8_t>& apart)
      : region_(region),
        apart_(apart),
        groups_(region.node_count()),
        taken_(region.node_count(), 0),
        costly_(taken_),
        makes_(taken_),
        maker_(region.raw->value_count, UINT32_MAX),
        reader_(maker_),
        summed_(region.raw->value_count, 0) {}

  void run(uint32_t* cluster) {
    const uint32_t nodes = region_.node_count();
    find_summed();
    for (uint32_t n = 0; n < nodes; n++) {
      const pg_node& node = region_.node(n);
      if (apart_[n]) continue;
      try {
        const MakeLines make = find_lines(node.op->name);
        make != nullptr ? take_lines(n, make) : take_elementwise(n);
      } catch (const pg::Error&) {
        continue;
      }
      taken_[n] = 1;
      for (uint32_t k = 0; k < node.output_count; k++)
        if (node.outputs[k] != PG_VALUE_NONE) maker_[node.outputs[k]] = n;
    }
    for (uint32_t n = 0; n < nodes; n++) cluster[n] = taken_[n] ? groups_.find(n) + 1 : 0;
  }

  // Marks nodes that work on lines in groups that would not be quicker than their nodes one by one: that must read and
  // write half as much at most; a quarter of 16-bit numbers, which are converted at each step. Sums of columns pay
  // sooner: three quarters of many, half of 16-bit numbers. A costly function, which is called for each tile, counts as
  // if it wrote its result.
  bool leave_apart(std::vector<uint8_t>& apart) {
    const uint32_t nodes = region_.node_count();
    std::vector<int64_t> together(nodes, 0), one_by_one(nodes, 0);
    std::vector<uint32_t> reads(region_.raw->value_count, 0), reads_here(reads), last(reads.size(), UINT32_MAX);
    each_read([&](uint32_t, uint32_t v) { reads[v]++; });
    each_read([&](uint32_t n, uint32_t v) {
      if (!taken_[n]) return;
      const uint32_t group = groups_.find(n);
      if (makes_[n]) return;  // as it does by itself
      const int64_t bytes = bytes_of(region_.value(v));
      one_by_one[group] += bytes;
      if (maker_[v] != UINT32_MAX && groups_.find(maker_[v]) == group) {
        reads_here[v]++;
      } else if (last[v] != group) {
        last[v] = group;
        together[group] += bytes;
      }
    });
    for (uint32_t n = 0; n < nodes; n++) {
      if (!taken_[n]) continue;
      const uint32_t group = groups_.find(n);
      const pg_node& node = region_.node(n);
      for (uint32_t k = 0; k < node.output_count; k++) {
        const uint32_t v = node.outputs[k];
        if (v == PG_VALUE_NONE) continue;
        const int64_t bytes = bytes_of(region_.value(v));
        one_by_one[group] += bytes;
        if (reads_here[v] == 0 || reads[v] > reads_here[v]) together[group] += bytes;
        if (costly_[n]) together[group] += bytes;
      }
    }
    bool any = false;
    std::vector<uint8_t> with_product(nodes, 0);
    for (uint32_t n = 0; n < nodes; n++)
      if (taken_[n] && makes_[n]) with_product[groups_.find(n)] = 1;
    for (uint32_t n = 0; n < nodes; n++) {
      if (!taken_[n] || find_lines(region_.node(n).op->name) == nullptr) continue;
      const uint32_t group = groups_.find(n);
      const int64_t numbers = one_by_one[group] / 16;  // a number a line and the like do not matter
      const pg_tensor& full = *groups_.full(group);
      const bool narrow = kStorageBytes[storage_of(full)] < 4, many = pg::element_count(full) >= 8 * kLeastElements;
      int64_t quarters = groups_.leading(n) ? (narrow || !many ? 2 : 3) : (narrow ? 1 : 2);
      if (with_product[group]) quarters = 3;
      if (4 * together[group] <= quarters * (one_by_one[group] + numbers) && pg::element_count(full) >= kLeastElements)
        continue;
      if (with_product[group] && !makes_[n]) continue;  // first without these
      apart[n] = 1;
      any = true;
    }
    return any;
  }

 private:
  template <class F>
  void each_read(const F& f) const {
    for (uint32_t n = 0; n < region_.node_count(); n++) {
      const pg_node& node = region_.node(n);
      for (uint32_t i = 0; i < node.input_count; i++)
        if (node.inputs[i] != PG_VALUE_NONE) f(n, node.inputs[i]);
    }
  }

  // What sums of columns add up, and what that is made of element by element.
  void find_summed() {
    for (uint32_t n = region_.node_count(); n-- > 0;) {
      const pg_node& node = region_.node(n);
      if (apart_[n] || node.input_count == 0 || node.inputs[0] == PG_VALUE_NONE) continue;
      if (find_lines(node.op->name) != nullptr) {
        if (sums_columns(n)) summed_[node.inputs[0]] = 1;
        continue;
      }
      for (uint32_t i = 0; i < node.input_count && node.output_count == 1 && summed_[node.outputs[0]]; i++) {
        const uint32_t v = node.inputs[i];
        if (v != PG_VALUE_NONE && pg::same_shape(region_.value(v), region_.value(node.outputs[0]))) summed_[v] = 1;
      }
    }
  }
  bool sums_columns(uint32_t n) const {
    try {
      pg::Region::Call call;
      region_.describe(n, call);
      return find_lines(region_.node(n).op->name)(pg::KernelCall(&call.call))->leading;
    } catch (const pg::Error&) {
      return false;
    }
  }

  void take_elementwise(uint32_t n) {
    const pg_node& node = region_.node(n);
    if (node.output_count != 1) pg::fail_support("no elementwise operator");
    const pg_tensor& result = region_.value(node.outputs[0]);
    if (!pg::fills_memory(result)) pg::fail_support("it has gaps");
    const int width = node_width(region_, node);
    read_node(region_, n, expression_);
    groups_.add_elementwise(n, result, width);
    for (int i = 0; i < expression_.program.count; i++)
      costly_[n] |= tile_loop(expression_.program.step[i].primitive, kF32) != nullptr;
    for (uint32_t i = 0; i < node.input_count; i++) {  // before it is joined with anything
      const uint32_t v = node.inputs[i];
      if (v == PG_VALUE_NONE || maker_[v] == UINT32_MAX || pg::same_shape(region_.value(v), result)) continue;
      const int64_t length = line_length(region_.value(v), result);
      if (length == 0 || length > kLongestLine) groups_.bar(maker_[v], n);
    }
    for (uint32_t i = 0; i < node.input_count; i++) {
      const uint32_t v = node.inputs[i];
      if (v == PG_VALUE_NONE) continue;
      const pg_tensor& x = region_.value(v);
      if (pg::same_shape(x, result))
        meet(v, n);
      else if (maker_[v] != UINT32_MAX && groups_.makes_numbers(maker_[v], x) &&
               pg::same_shape(*groups_.full(maker_[v]), result))
        groups_.join(maker_[v], n);
    }
  }

  void take_lines(uint32_t n, MakeLines make) {
    const pg_node& node = region_.node(n);
    pg::Region::Call call;
    region_.describe(n, call);
    const std::unique_ptr<Lines> lines = make(pg::KernelCall(&call.call));
    const pg_tensor& x = lines->makes ? *call.outputs[0] : *call.inputs[0];
    const int64_t length = length_of(*lines, x), count = pg::element_count(x);
    if (count == 0 || length < 2 || (length > kLongestLine && lines->reduction() == nullptr))
      pg::fail_support("no lines of a region");
    if (lines->leading && count / length < Reduction::kTile * pg::thread_count())
      pg::fail_support("fewer columns than threads would take all rows of");
    const pg_tensor* numbers = nullptr;
    for (const pg_tensor* out : call.outputs) {
      if (out == nullptr || pg::same_shape(*out, x)) continue;
      if (pg::element_count(*out) != count / length) pg::fail_support("no number a line");
      numbers = out;
    }
    groups_.add_lines(n, x, length, lines->leading, numbers);
    makes_[n] = lines->makes;
    for (uint32_t i = 0; i < node.input_count; i++) {  // what is wanted as a whole
      const uint32_t v = node.inputs[i];
      if (v != PG_VALUE_NONE && maker_[v] != UINT32_MAX && (lines->makes || !pg::same_shape(region_.value(v), x)))
        groups_.bar(maker_[v], n);
    }
    if (lines->makes) return;
    for (uint32_t i = 0; i < node.input_count; i++) {
      const uint32_t v = node.inputs[i];
      if (v != PG_VALUE_NONE && pg::same_shape(region_.value(v), x)) meet(v, n);
    }
  }

  // Node n takes the value element by element, or line by line.
  void meet(uint32_t v, uint32_t n) {
    if (maker_[v] != UINT32_MAX) return join(maker_[v], n);
    if (reader_[v] != UINT32_MAX && n - reader_[v] <= kNear) join(reader_[v], n);
    reader_[v] = n;
  }
  // What is summed in columns does not go where lines are: the sum could not follow.
  void join(uint32_t a, uint32_t n) {
    if (summed_[region_.node(n).outputs[0]] && groups_.in_lines(a)) return;
    groups_.join(a, n);
  }

  const pg::Region& region_;
  const std::vector<uint8_t>& apart_;
  Groups groups_;
  std::vector<uint8_t> taken_, costly_, makes_;  // nodes; makes_: products
  std::vector<uint32_t> maker_, reader_;         // nodes, by value
  std::vector<uint8_t> summed_;                  // values
  NodeExpression expression_;
};

}  // namespace

void RegionCompiler::claim(const pg::Region& region, uint32_t* cluster) {
  const uint32_t nodes = region.node_count();
  const std::vector<uint8_t> net = pg::cpu::find_net_nodes(region);
  const std::vector<uint32_t> linear = pg::cpu::find_linear_nets(region);
  std::vector<uint8_t> apart(net);
  for (uint32_t n = 0; n < nodes; n++) apart[n] = net[n] != 0 || linear[n] != 0;
  constexpr int kRounds = 3;  // groups without their products, then without other lines
  for (int round = 0; round < kRounds; round++) {
    const std::vector<uint8_t> now(apart);
    Claim claim(region, now);
    claim.run(cluster);
    if (round + 1 == kRounds || !claim.leave_apart(apart)) break;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    if (linear[n] != 0) cluster[n] = nodes + pg::cpu::kMostNets + linear[n];
    if (net[n]) cluster[n] = (nodes + net[n]) | PG_CLUSTER_LONG;
  }
}

pg::Kernel* RegionCompiler::compile(const pg::Region& piece, pg::Plan& plan) {
  if (pg::cpu::has_convolution(piece)) return pg::cpu::make_net(piece, plan);
  if (pg::cpu::is_linear_net(piece)) return pg::cpu::make_linear_net(piece, plan);
  if (LineRegion::is_needed(piece)) return new LineRegion(piece, plan);
  return new RegionKernel(piece);
}

}  // namespace cpu
