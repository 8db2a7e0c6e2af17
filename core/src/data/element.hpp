// SPDX-License-Identifier: Apache-2.0
// What flows through pipelines: the structure of a value, shared by all of its kind, and its leaves.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "tensor/tensor.hpp"

namespace perigee {

struct Layout;
using LayoutRef = std::shared_ptr<const Layout>;

// As text: T (tensor), N (number), B (boolean), S (text), or a table: "{" keys, each with its value, "}"; a key is
// "s5:value" or "i3;". So {x = tensor, ids = {1, 2}} is "{s3:ids{i1;Ni2;N}s1:xT}".
struct Layout {
  struct Entry {
    std::string key;  // as in the text
    LayoutRef value;
  };
  uint64_t id;  // no other layout of the process has had it
  char kind;    // T N B S {
  uint32_t leaves;
  bool named;  // a table whose keys are all names
  std::vector<Entry> entries;
  std::string text;
};

LayoutRef parse_layout(const std::string& text);  // throws PG_E_INVALID_ARGUMENT

struct Leaf {
  TensorRef tensor;
  double number = 0;
  std::string text;
};

struct Element {
  LayoutRef layout;
  std::vector<Leaf> leaves;  // in the order of the layout's text
};

// An element, or why there is none.
struct Made {
  Element element;
  std::exception_ptr error;
};

// A tensor [count, shape...] where `like` is, to be filled piece by piece.
TensorRef make_batch(const Tensor& like, int64_t count);
void put_piece(Tensor& batch, int64_t index, Tensor& piece);

}  // namespace perigee
