// SPDX-License-Identifier: Apache-2.0
// pg.compiler/0 of the processor: what goes together, and the tables of threaded code.
#include <cstring>

#include "claim.hpp"
#include "perigee/kernels/strided.hpp"
#include "region_kernel.hpp"

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
  if (pg::math::info(p).cost == pg::math::kCheap) return nullptr;
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

// Of one shape: element by element in the same places.
bool lie_alike(const pg_tensor& a, const pg_tensor& b) {
  for (uint32_t i = 0; i < a.rank; i++) {
    if (a.shape[i] != 1 && a.stride[i] != b.stride[i]) return false;
  }
  return true;
}

// Nodes that are joined so far, by one of them.
class Groups {
 public:
  explicit Groups(uint32_t nodes) : parent_(nodes), width_(nodes, -1), result_(nodes, nullptr) {
    for (uint32_t n = 0; n < nodes; n++) parent_[n] = n;
  }
  uint32_t find(uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void add(uint32_t node, int width, const pg_tensor& result) { width_[node] = width, result_[node] = &result; }
  // Unless one computes in words of 4 bytes and the other of 8, or their results lie in different orders.
  void join(uint32_t a, uint32_t b) {
    a = find(a), b = find(b);
    if (a == b || (width_[a] >= 0 && width_[b] >= 0 && width_[a] != width_[b])) return;
    if (!lie_alike(*result_[a], *result_[b])) return;
    parent_[a] = b;
    width_[b] = std::max(width_[a], width_[b]);
  }

 private:
  std::vector<uint32_t> parent_;
  std::vector<int> width_;  // -1: truth values only
  std::vector<const pg_tensor*> result_;
};

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

}  // namespace

// Nodes apart, up to which two that read the same tensor go together: what is gathered from further away would keep
// memory for longer than a second reading costs.
constexpr uint32_t kNear = 8;

void RegionCompiler::claim(const pg::Region& region, uint32_t* cluster) {
  const uint32_t nodes = region.node_count();
  Groups groups(nodes);
  std::vector<uint8_t> taken(nodes, 0);
  std::vector<uint32_t> maker(region.raw->value_count, UINT32_MAX), reader = maker;
  NodeExpression expression;
  for (uint32_t n = 0; n < nodes; n++) {
    const pg_node& node = region.node(n);
    const pg_tensor& result = region.value(node.outputs[0]);
    try {
      if (!pg::fills_memory(result)) continue;
      groups.add(n, node_width(region, node), result);
      read_node(region, n, expression);
    } catch (const pg::Error&) {
      continue;
    }
    taken[n] = 1;
    maker[node.outputs[0]] = n;
    for (uint32_t i = 0; i < node.input_count; i++) {
      const uint32_t v = node.inputs[i];
      if (v == PG_VALUE_NONE || !pg::same_shape(region.value(v), result)) continue;
      if (maker[v] != UINT32_MAX) {
        groups.join(maker[v], n);
      } else {
        if (reader[v] != UINT32_MAX && n - reader[v] <= kNear) groups.join(reader[v], n);
        reader[v] = n;
      }
    }
  }
  for (uint32_t n = 0; n < nodes; n++) cluster[n] = taken[n] ? groups.find(n) + 1 : 0;
}

pg::Kernel* RegionCompiler::compile(const pg::Region& piece, pg::Plan&) { return new RegionKernel(piece); }

}  // namespace cpu
