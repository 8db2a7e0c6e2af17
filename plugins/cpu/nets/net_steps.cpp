// SPDX-License-Identifier: Apache-2.0
// Nodes as steps: what follows a convolution is done by it where nobody else reads what was in between.
#include <algorithm>

#include "nets/net.hpp"

namespace pg::cpu {
namespace {

constexpr size_t kMostPosts = 8;
constexpr size_t kNobody = SIZE_MAX;

class Joiner {
 public:
  explicit Joiner(const Region& piece)
      : piece_(piece), reads_(piece.raw->value_count, 0), maker_(piece.raw->value_count, kNobody) {
    for (uint32_t n = 0; n < piece.node_count(); n++) {
      const pg_node& node = piece.node(n);
      for (uint32_t i = 0; i < node.input_count; i++)
        if (node.inputs[i] != PG_VALUE_NONE) reads_[node.inputs[i]]++;
    }
    for (uint32_t i = 0; i < piece.raw->output_count; i++) reads_[piece.raw->outputs[i]]++;
  }

  NetSteps join() {
    for (uint32_t n = 0; n < piece_.node_count(); n++) {
      NetStep step = read_net_step(piece_, n);
      if (join_norm(step) || join_function(step) || join_sum(step)) continue;
      maker_[step.y] = joined_.steps.size();
      joined_.steps.push_back(std::move(step));
    }
    return std::move(joined_);
  }

 private:
  // The step that makes a value which one node alone reads, where it may do more.
  NetStep* open(uint32_t value) {
    if (maker_[value] == kNobody || reads_[value] != 1) return nullptr;
    NetStep& step = joined_.steps[maker_[value]];
    return step.posts.size() < kMostPosts ? &step : nullptr;
  }
  void goes_on(NetStep& step, uint32_t y) {
    maker_[y] = maker_[step.y];
    step.y = y;
  }

  bool join_norm(const NetStep& norm) {
    if (norm.kind != NetKind::kConvolution || norm.weight != PG_VALUE_NONE) return false;
    NetStep* conv = open(norm.x);
    if (conv == nullptr || conv->kind != NetKind::kConvolution || !conv->posts.empty()) return false;
    conv->norms.insert(conv->norms.end(), norm.norms.begin(), norm.norms.end());
    conv->posts = norm.posts;
    joined_.norms += static_cast<uint32_t>(norm.norms.size());
    joined_.functions += static_cast<uint32_t>(norm.posts.size());
    goes_on(*conv, norm.y);
    return true;
  }

  bool join_function(const NetStep& function) {
    if (function.kind != NetKind::kFunction) return false;
    NetStep* before = open(function.x);
    if (before == nullptr || (before->kind != NetKind::kConvolution && before->kind != NetKind::kSum)) return false;
    before->posts.push_back(function.posts[0]);
    if (before->kind == NetKind::kConvolution) joined_.functions++;
    goes_on(*before, function.y);
    return true;
  }

  // By the later one of what makes the operands: the other is there by then.
  bool join_sum(const NetStep& sum) {
    if (sum.kind != NetKind::kSum || sum.x == sum.other) return false;
    uint32_t value = sum.x, other = sum.other;
    auto place = [&](uint32_t v) { return maker_[v] == kNobody ? -1 : static_cast<int64_t>(maker_[v]); };
    if (place(other) > place(value)) std::swap(value, other);
    NetStep* conv = open(value);
    if (conv == nullptr || conv->kind != NetKind::kConvolution || conv->sums()) return false;
    conv->posts.push_back({true, {}});
    conv->other = other;
    joined_.sums++;
    goes_on(*conv, sum.y);
    return true;
  }

  const Region& piece_;
  std::vector<uint32_t> reads_;
  std::vector<size_t> maker_;  // steps, by value
  NetSteps joined_;
};

}  // namespace

NetSteps join_net_steps(const Region& piece) { return Joiner(piece).join(); }

}  // namespace pg::cpu
