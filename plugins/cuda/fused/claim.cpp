// SPDX-License-Identifier: Apache-2.0
#include "claim.hpp"

#include <vector>

#include "expression.hpp"
#include "groups.hpp"
#include "line_node.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

// Nodes apart, up to which two that read the same tensor go together: what is gathered from further away would keep
// memory for longer than a second reading costs.
constexpr uint32_t kNear = 8;

int64_t bytes_of(const pg_tensor& t) { return pg::element_count(t) * pg::dtype_bytes(pg::dtype_of(t)); }

class Claim {
 public:
  // apart: reductions that are better left alone.
  Claim(const pg::Region& region, const std::vector<uint8_t>& apart)
      : region_(region),
        apart_(apart),
        groups_(region.node_count()),
        taken_(region.node_count(), 0),
        maker_(region.raw->value_count, UINT32_MAX),
        reader_(region.raw->value_count, UINT32_MAX),
        summed_(region.raw->value_count, 0) {}

  void run(uint32_t* cluster) {
    find_summed();
    for (uint32_t n = 0; n < taken_.size(); n++) {
      const bool lines = is_line_operator(region_, n);
      try {
        if (lines && apart_[n]) continue;
        lines ? add_lines(n) : add_elementwise(n);
      } catch (const pg::Error& e) {
        if (e.code != PG_E_NOT_SUPPORTED) throw;
        continue;
      }
      taken_[n] = 1;
      lines ? meet_lines(n) : meet_elementwise(n);
      each_output(region_.node(n), [&](uint32_t v) { maker_[v] = n; });
    }
    for (uint32_t n = 0; n < taken_.size(); n++) cluster[n] = taken_[n] ? groups_.find(n) + 1 : 0;
  }

  // Marks the reductions of groups that would not move half as much at most as their nodes one by one. True: some are.
  bool leave_apart(std::vector<uint8_t>& apart) {
    const auto nodes = static_cast<uint32_t>(taken_.size());
    std::vector<int64_t> together(nodes, 0), one_by_one(nodes, 0);
    std::vector<uint32_t> reads(region_.raw->value_count, 0), reads_here(reads), last(reads.size(), UINT32_MAX);
    each_read([&](uint32_t n, uint32_t v) {
      reads[v]++;
      if (!taken_[n]) return;
      const uint32_t group = groups_.find(n);
      one_by_one[group] += bytes_of(region_.value(v));
      if (maker_[v] != UINT32_MAX && groups_.find(maker_[v]) == group) {
        reads_here[v]++;
      } else if (last[v] != group) {
        last[v] = group;
        together[group] += bytes_of(region_.value(v));
      }
    });
    for (uint32_t n = 0; n < nodes; n++) {
      if (!taken_[n]) continue;
      const uint32_t group = groups_.find(n);
      each_output(region_.node(n), [&](uint32_t v) {
        one_by_one[group] += bytes_of(region_.value(v));
        if (reads_here[v] == 0 || reads[v] > reads_here[v]) together[group] += bytes_of(region_.value(v));
      });
    }
    bool any = false;
    for (uint32_t n = 0; n < nodes; n++) {
      if (!taken_[n] || !is_line_operator(region_, n)) continue;
      const uint32_t group = groups_.find(n);
      const int64_t numbers = one_by_one[group] / 16;  // a number a line and the like do not matter
      if (2 * together[group] <= one_by_one[group] + numbers) continue;
      apart[n] = 1;
      any = true;
    }
    return any;
  }

 private:
  template <class F>
  void each_read(const F& f) const {
    for (uint32_t n = 0; n < region_.node_count(); n++) each_input(region_.node(n), [&](uint32_t v) { f(n, v); });
  }
  const pg_tensor& result(uint32_t node) const { return region_.value(region_.node(node).outputs[0]); }

  // What columns are reduced of, and what that is made of element by element.
  void find_summed() {
    for (uint32_t n = region_.node_count(); n-- > 0;) {
      const pg_node& node = region_.node(n);
      if (is_line_operator(region_, n)) {
        if (!apart_[n] && has_columns(n)) summed_[node.inputs[0]] = 1;
        continue;
      }
      if (node.output_count != 1 || !summed_[node.outputs[0]]) continue;
      each_input(region_.node(n), [&](uint32_t v) {
        if (pg::same_shape(region_.value(v), result(n))) summed_[v] = 1;
      });
    }
  }
  bool has_columns(uint32_t n) {
    try {
      read_line_node(region_, n, line_);
    } catch (const pg::Error& e) {
      if (e.code != PG_E_NOT_SUPPORTED) throw;
      return false;
    }
    return line_.axes.inner > 1;
  }

  void add_elementwise(uint32_t n) {
    read_node(region_, n, expression_);
    bool plain = pg::is_contiguous(result(n));
    each_input(region_.node(n), [&](uint32_t v) {
      const pg_tensor& t = region_.value(v);
      plain = plain && pg::is_contiguous(t) && (pg::element_count(t) == 1 || pg::same_shape(t, result(n)));
    });
    groups_.add_elementwise(n, result(n), plain);
  }
  void add_lines(uint32_t n) {
    read_line_node(region_, n, line_);
    // Packets of what comes from outside may begin anywhere, and those of what is made here do not.
    const bool in_packets = line_.streamed && line_.axes.inner == 1 && line_.width > 1;
    if (in_packets && maker_[region_.node(n).inputs[0]] == UINT32_MAX) pg::fail_support("nothing is joined with it");
    groups_.add_lines(n, *line_.call.inputs[0], line_);
  }

  // What a node cannot read while it is made, a number or a line at a time, it must not be in one kernel with.
  void meet_elementwise(uint32_t n) {
    each_input(region_.node(n), [&](uint32_t v) {
      const pg_tensor& t = region_.value(v);
      if (pg::same_shape(t, result(n))) return;
      if (maker_[v] != UINT32_MAX && !groups_.spreads(maker_[v], t, result(n))) groups_.bar(maker_[v], n);
    });
    each_input(region_.node(n), [&](uint32_t v) {
      const pg_tensor& t = region_.value(v);
      if (pg::same_shape(t, result(n)))
        meet(v, n);
      else if (maker_[v] != UINT32_MAX && groups_.spreads(maker_[v], t, result(n)))
        groups_.join(maker_[v], n);
    });
  }
  void meet_lines(uint32_t n) {
    const pg_node& node = region_.node(n);
    const uint32_t lines = line_.lines_read();
    for (uint32_t i = lines; i < node.input_count; i++) {  // weights are wanted as a whole
      const uint32_t v = node.inputs[i];
      if (is_read(node, i) && maker_[v] != UINT32_MAX) groups_.bar(maker_[v], n);
    }
    for (uint32_t i = 0; i < lines; i++) meet(node.inputs[i], n);
  }

  // Node n reads the value as it is made: it goes with who makes it, or with who has just read it too.
  void meet(uint32_t value, uint32_t n) {
    if (maker_[value] != UINT32_MAX) return join(maker_[value], n);
    if (reader_[value] != UINT32_MAX && n - reader_[value] <= kNear) join(reader_[value], n);
    reader_[value] = n;
  }
  // What columns are reduced of does not go where rows are: the reduction could not follow.
  void join(uint32_t a, uint32_t n) {
    if (region_.node(n).output_count == 1 && summed_[region_.node(n).outputs[0]] && groups_.has_rows(a)) return;
    groups_.join(a, n);
  }

  const pg::Region& region_;
  const std::vector<uint8_t>& apart_;
  Groups groups_;
  std::vector<uint8_t> taken_;
  std::vector<uint32_t> maker_, reader_;  // nodes, by value
  std::vector<uint8_t> summed_;           // values
  NodeExpression expression_;
  LineNode line_;
};

}  // namespace

void claim_nodes(const pg::Region& region, uint32_t* cluster) {
  std::vector<uint8_t> apart(region.node_count(), 0), better(apart);
  Claim claim(region, apart);
  claim.run(cluster);
  if (claim.leave_apart(better)) Claim(region, better).run(cluster);
}

}  // namespace cuda::fused
