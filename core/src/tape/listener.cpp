// SPDX-License-Identifier: Apache-2.0
#include "tape/listener.hpp"

#include <algorithm>

namespace perigee {
namespace {

std::atomic<uint64_t> listened_to{0};

}  // namespace

void listen_to(Node& leaf, GradientListener& who, uint32_t number) {
  rare_of(leaf).listeners.push_back({&who, number});
  listened_to.fetch_add(1, std::memory_order_relaxed);
}

void end_listening(Node& leaf, GradientListener& who) {
  if (!leaf.rare) return;
  auto& list = leaf.rare->listeners;
  const auto gone = std::remove_if(list.begin(), list.end(), [&](const Node::Listener& l) { return l.who == &who; });
  listened_to.fetch_sub(static_cast<uint64_t>(list.end() - gone), std::memory_order_relaxed);
  list.erase(gone, list.end());
}

bool has_listeners() { return listened_to.load(std::memory_order_relaxed) > 0; }

}  // namespace perigee
