// SPDX-License-Identifier: Apache-2.0
#include "tensor/node.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace perigee {
namespace {

// A long chain of nodes must not be destroyed by recursion.
struct Graveyard {
  std::vector<Node*> waiting;
  bool busy = false;
};
Graveyard& graveyard() {
  thread_local Graveyard instance;
  return instance;
}

// Never destroyed: nodes may die while the process ends.
struct Forgotten {
  std::mutex mutex;
  std::vector<uint64_t> numbers;
};
Forgotten& forgotten() {
  static auto& list = *new Forgotten;
  return list;
}

}  // namespace

void Node::destroy(Node* node) {
  Graveyard& g = graveyard();
  g.waiting.push_back(node);
  if (g.busy) return;
  g.busy = true;
  while (!g.waiting.empty()) {
    Node* last = g.waiting.back();
    g.waiting.pop_back();
    if (last->kind == NodeKind::custom) forget_custom(*last);
    delete last;
  }
  g.busy = false;
}

uint64_t custom_number(const Node& node) {
  uint64_t number;
  std::memcpy(&number, node.attrs.data(), sizeof number);
  return number;
}

void forget_custom(const Node& node) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  list.numbers.push_back(custom_number(node));
}

uint32_t take_forgotten(uint64_t* numbers, uint32_t room) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  size_t count = std::min<size_t>(room, list.numbers.size());
  std::copy(list.numbers.end() - static_cast<ptrdiff_t>(count), list.numbers.end(), numbers);
  list.numbers.resize(list.numbers.size() - count);
  return static_cast<uint32_t>(count);
}

}  // namespace perigee
