// SPDX-License-Identifier: Apache-2.0
// In which order threads and blocks go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

namespace emulator {

class Order {
 public:
  // "forward", "backward", "shuffle:SEED"
  explicit Order(const std::string& text = "") {
    if (text == "backward") kind_ = kBackward;
    if (text.rfind("shuffle", 0) == 0) {
      kind_ = kShuffle;
      if (text.size() > 8) state_ += std::stoull(text.substr(8));
    }
  }
  bool forward() const { return kind_ == kForward; }
  void arrange(uint32_t* begin, uint32_t* end) {
    if (kind_ == kBackward) std::reverse(begin, end);
    if (kind_ != kShuffle) return;
    for (auto left = static_cast<uint64_t>(end - begin); left > 1; left--)
      std::swap(begin[left - 1], begin[next() % left]);
  }
  // Steps through `count` blocks, each once: the i-th is (first + i * step) % count.
  void steps(uint64_t count, uint64_t& first, uint64_t& step) {
    first = 0, step = 1;
    if (kind_ == kBackward) first = count - 1, step = count - 1;
    if (kind_ != kShuffle) return;
    first = next() % count;
    for (step = next() % count + 1; std::gcd(step, count) != 1;) step++;
  }

 private:
  enum Kind { kForward, kBackward, kShuffle };
  uint64_t next() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  Kind kind_ = kForward;
  uint64_t state_ = 0;
};

}  // namespace emulator
