// SPDX-License-Identifier: Apache-2.0
// Batches of elements: made of all at once, or begun with the first so that what follows is written where it stays.
#pragma once

#include <string>
#include <vector>

#include "data/element.hpp"

namespace perigee {

// Samples as one batch: tensors are stacked; numbers become a tensor of `number_dtype`, booleans one of bools; tables
// of names, and the sample itself, are batched entry by entry; the rest becomes a list. `first`: the number of the
// first sample, from 1, for messages. Thread-safe.
Element collate(std::vector<Element>& samples, uint32_t number_dtype, int64_t first);

// A batch of at most `count` samples that are made one after the other. The first says how the others look; of one that
// looks otherwise, collate's messages tell, or copies are made. A batch of more than `most_bytes` is not begun but made
// of all: for who does not know whether so many samples come. One thread at a time.
class Landing {
 public:
  explicit Landing(int64_t count, int64_t most_bytes = INT64_MAX) : count_(count), most_bytes_(most_bytes) {}
  // Where a tensor of the sample that is being made, under a key of its layout, is to be written; null: anywhere.
  TensorRef place(const std::string& key, const Meta& meta) const;
  // Moves what the sample holds into the batch, as far as it is not there, and goes on to the next. Of tensors that are
  // moved the sample keeps the description.
  void land(Element& sample);
  // Of all that landed.
  Element batch(std::vector<Element>& samples, uint32_t number_dtype, int64_t first) const;
  // The one, of `samples`, that leaf `leaf` of the first sample landed in; null: it did not.
  TensorRef batch(size_t leaf, int64_t samples) const;

 private:
  void begin(const Element& first);
  bool fits(size_t leaf, const Meta& meta) const;
  const int64_t count_, most_bytes_;
  int64_t next_ = 0;
  LayoutRef layout_;               // of the first; null before it
  std::vector<TensorRef> pieces_;  // by leaf: how a piece looks; null: it is not stacked
  std::vector<TensorRef> batches_;
};

}  // namespace perigee
