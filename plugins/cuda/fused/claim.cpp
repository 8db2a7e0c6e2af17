// SPDX-License-Identifier: Apache-2.0
#include "claim.hpp"

#include <vector>

#include "expression.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

// Nodes apart, up to which two that read the same tensor go together: what is gathered from further away would keep
// memory for longer than a second reading costs.
constexpr uint32_t kNear = 8;

// Of one shape: element by element in the same places.
bool lie_alike(const pg_tensor& a, const pg_tensor& b) {
  if (!pg::same_shape(a, b)) return false;
  for (uint32_t i = 0; i < a.rank; i++)
    if (a.shape[i] != 1 && a.stride[i] != b.stride[i]) return false;
  return true;
}

class Clusters {
 public:
  explicit Clusters(const pg::Region& region)
      : region_(region),
        parent_(region.node_count()),
        maker_(region.raw->value_count, UINT32_MAX),
        reader_(region.raw->value_count, UINT32_MAX) {
    for (uint32_t n = 0; n < parent_.size(); n++) parent_[n] = n;
  }

  void run(uint32_t* cluster) {
    std::vector<uint8_t> taken(parent_.size(), 0);
    for (uint32_t n = 0; n < parent_.size(); n++) {
      NodeExpression expression;
      try {
        read_node(region_, n, expression);
      } catch (const pg::Error& e) {
        if (e.code != PG_E_NOT_SUPPORTED) throw;
        continue;
      }
      taken[n] = 1;
      const pg_node& node = region_.node(n);
      for (uint32_t i = 0; i < node.input_count; i++)
        if (node.inputs[i] != PG_VALUE_NONE) meet(node.inputs[i], n);
      maker_[node.outputs[0]] = n;
    }
    for (uint32_t n = 0; n < parent_.size(); n++) cluster[n] = taken[n] ? find(n) + 1 : 0;
  }

 private:
  const pg_tensor& result(uint32_t node) const { return region_.value(region_.node(node).outputs[0]); }

  // Node n reads the value: it goes with who makes it, or with who has just read it too.
  void meet(uint32_t value, uint32_t n) {
    if (!pg::same_shape(region_.value(value), result(n))) return;
    if (maker_[value] != UINT32_MAX) return join(maker_[value], n);
    if (reader_[value] != UINT32_MAX && n - reader_[value] <= kNear) join(reader_[value], n);
    reader_[value] = n;
  }
  void join(uint32_t a, uint32_t b) {
    if (lie_alike(result(a), result(b))) parent_[find(a)] = find(b);
  }
  uint32_t find(uint32_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }

  const pg::Region& region_;
  std::vector<uint32_t> parent_;
  std::vector<uint32_t> maker_, reader_;  // nodes, by value
};

}  // namespace

void claim_nodes(const pg::Region& region, uint32_t* cluster) { Clusters(region).run(cluster); }

}  // namespace cuda::fused
