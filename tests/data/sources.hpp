// SPDX-License-Identifier: Apache-2.0
// Sources of these tests: numbers from 0 on, and texts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/stage.hpp"

namespace perigee {

class Range : public Stage {
 public:
  explicit Range(int64_t n) : Stage({n}), layout_(parse_layout("{s5:valueN}")) {}
  Element get(int64_t i) const override {
    Element made{layout_, std::vector<Leaf>(1)};
    made.leaves[0].number = static_cast<double>(i);
    return made;
  }

 private:
  const LayoutRef layout_;
};

class Texts : public Stage {
 public:
  Texts(const std::string& name, std::vector<std::string> texts)
      : Stage({static_cast<int64_t>(texts.size())}),
        layout_(parse_layout("{s" + std::to_string(name.size()) + ":" + name + "S}")),
        texts_(std::move(texts)) {}
  Element get(int64_t i) const override {
    Element made{layout_, std::vector<Leaf>(1)};
    made.leaves[0].text = texts_[static_cast<size_t>(i)];
    return made;
  }

 private:
  const LayoutRef layout_;
  const std::vector<std::string> texts_;
};

inline StageRef range_stage(int64_t count) { return std::make_shared<Range>(count); }   // { value = i }
inline StageRef texts_stage(const std::string& name, std::vector<std::string> texts) {  // { name = text }
  return std::make_shared<Texts>(name, std::move(texts));
}

}  // namespace perigee
