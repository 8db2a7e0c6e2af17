// SPDX-License-Identifier: Apache-2.0
#include "tensor/node.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

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
  std::unordered_map<uint64_t, Node*> hooked;  // by a hook's number
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
    if (last->rare) drop_hooks(*last);
    delete last;
  }
  g.busy = false;
}

uint64_t custom_number(const Node& node) {
  uint64_t number;
  std::memcpy(&number, node.attrs.data(), sizeof number);
  return number;
}

void forget_custom(const Node& node) { forget_custom(custom_number(node)); }

void forget_custom(uint64_t number) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  list.numbers.push_back(number);
}

uint32_t take_forgotten(uint64_t* numbers, uint32_t room) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  size_t count = std::min<size_t>(room, list.numbers.size());
  std::copy(list.numbers.end() - static_cast<ptrdiff_t>(count), list.numbers.end(), numbers);
  list.numbers.resize(list.numbers.size() - count);
  return static_cast<uint32_t>(count);
}

Node::Rare& rare_of(Node& node) {
  if (!node.rare) node.rare = std::make_unique<Node::Rare>();
  return *node.rare;
}

void add_hook(Node& node, uint32_t output, uint64_t number) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  rare_of(node).hooks.push_back({number, output});
  list.hooked[number] = &node;
}

void remove_hook(uint64_t number) {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  auto it = list.hooked.find(number);
  if (it == list.hooked.end()) return;
  auto& hooks = it->second->rare->hooks;
  hooks.erase(std::find_if(hooks.begin(), hooks.end(), [&](const Node::Hook& h) { return h.number == number; }));
  list.hooked.erase(it);
  list.numbers.push_back(number);
}

bool has_hooks() {
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  return !list.hooked.empty();
}

void drop_hooks(Node& node) {
  if (!node.rare || node.rare->hooks.empty()) return;
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  for (const Node::Hook& hook : node.rare->hooks) {
    list.hooked.erase(hook.number);
    list.numbers.push_back(hook.number);
  }
  node.rare->hooks.clear();
}

void move_hooks(Node& from, Node& to) {
  if (!from.rare || from.rare->hooks.empty()) return;
  Forgotten& list = forgotten();
  std::lock_guard lock(list.mutex);
  for (const Node::Hook& hook : from.rare->hooks) {
    rare_of(to).hooks.push_back(hook);
    list.hooked[hook.number] = &to;
  }
  from.rare->hooks.clear();
}

}  // namespace perigee
