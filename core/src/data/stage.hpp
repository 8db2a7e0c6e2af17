// SPDX-License-Identifier: Apache-2.0
// Stages of pipelines over sources with random access: element i is a function of i.
#pragma once

#include <memory>
#include <vector>

#include "data/element.hpp"

namespace perigee {

class Stage;
using StageRef = std::shared_ptr<const Stage>;

// Thread-safe. Positions count from 0 and are in range.
class Stage {
 public:
  explicit Stage(int64_t elements) : count(elements) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const int64_t count;
  virtual Element get(int64_t i) const = 0;
  // Elements as one batch; `first`: the number of the first, from 1, for messages.
  virtual Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const;
};

// Slices along the first axis of tensors in the processor's memory, which are not copied before a batch is.
StageRef slices_stage(LayoutRef layout, std::vector<TensorRef> tensors);
StageRef range_stage(int64_t count);  // { value = i }
// Element k is the parent's k % modulo * step + offset.
StageRef window_stage(StageRef parent, int64_t count, int64_t modulo, int64_t step, int64_t offset);
StageRef order_stage(StageRef parent, std::vector<int64_t> positions);  // these of the parent's, from 0
StageRef zip_stage(std::vector<StageRef> parents);                      // lists of an element each
StageRef batch_stage(StageRef parent, int64_t size, bool drop_last, uint32_t number_dtype);
// The front end's function of that number, on a worker. Its random draws come from (seed, epoch, i) alone.
StageRef map_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch);
// Tensors on a device, copied on a stream of their own.
StageRef device_stage(StageRef parent, Device& device);

// Positions 1 .. n in a random order (Fisher and Yates) drawn from (seed, epoch). Position i of the result comes from
// the first i + buffer, as if elements passed through a buffer of that size.
void draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions);

}  // namespace perigee
