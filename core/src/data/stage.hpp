// SPDX-License-Identifier: Apache-2.0
// Stages of pipelines: element i is a function of i, whatever thread asks for it.
#pragma once

#include <memory>
#include <vector>

#include "data/batch.hpp"
#include "data/skips.hpp"

namespace perigee {

class Stage;
using StageRef = std::shared_ptr<const Stage>;

constexpr int64_t kUnknown = INT64_MAX;  // as a count: nobody knows before the end is reached

// Thread-safe. Positions count from 0 and are below count.
class Stage : public std::enable_shared_from_this<Stage> {
 public:
  // What stages have of those that they are made of.
  struct Traits {
    int64_t count;
    bool in_order = false;  // each position is to be asked for once, all that are below it being asked for too
    bool fed = false;       // some of it comes from the front end (feed.hpp): `want` is worth calling
  };
  explicit Stage(Traits traits) : count(traits.count), in_order(traits.in_order), fed(traits.fed) {}
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  const int64_t count;
  const bool in_order, fed;
  // One without a layout: there are only i elements or fewer (where the count is unknown).
  virtual Element get(int64_t i) const = 0;
  // The same, whose tensors are wanted there.
  virtual Element get_into(int64_t i, const Landing&) const { return get(i); }
  // Some of them at once, where that is cheaper; a position's error is its own.
  virtual void get_each(const int64_t* positions, size_t many, Made* out) const;
  // Elements as one batch; `first`: the number of the first, from 1, for messages.
  virtual Element gather(const std::vector<int64_t>& positions, uint32_t number_dtype, int64_t first) const;
  // In place of get, where nobody wants the element of a stage in order; whether there is one.
  virtual bool pass(int64_t i) const { return get(i).layout != nullptr; }
  virtual bool batches() const { return false; }  // its elements are made anew, by make_batch
  virtual void want(int64_t) const {}             // get is about to be called
  // The same elements for another time; itself where any position may be asked for again.
  StageRef again() const { return in_order ? remade() : shared_from_this(); }

  Traits traits() const { return {count, in_order, fed}; }
  Traits traits(int64_t other_count) const { return {other_count, in_order, fed}; }

 protected:
  virtual StageRef remade() const { return shared_from_this(); }  // of those that may be in order
};

// Element k is the parent's k % modulo * step + offset. Of a parent in order `modulo` has no effect.
StageRef window_stage(StageRef parent, int64_t count, int64_t modulo, int64_t step, int64_t offset);
StageRef order_stage(StageRef parent, std::vector<int64_t> positions);  // these of the parent's, from 0
// In the order that draw_order draws.
StageRef shuffle_stage(StageRef parent, uint32_t seed, uint32_t epoch, int64_t buffer);
StageRef zip_stage(std::vector<StageRef> parents);  // lists of an element each
StageRef batch_stage(StageRef parent, int64_t size, bool drop_last, uint32_t number_dtype);
// The front end's function of that number, on a worker. Its random draws come from (seed, epoch, i) alone.
StageRef map_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch);
// Elements for which that function answers true, a boolean.
StageRef filter_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch);
// As map_stage, but that an element of which the function fails is left out, and told to `skips`.
StageRef map_or_skip_stage(StageRef parent, uint32_t function, uint64_t seed, uint64_t epoch, SkipsRef skips);
// Elements of a parent by position, but for those that cannot be made, which are told to `skips`.
StageRef or_skip_stage(StageRef parent, SkipsRef skips);
// Elements through a buffer of that size, in the order that draw_order gives to as many.
StageRef mix_stage(StageRef parent, uint32_t seed, uint32_t epoch, int64_t buffer);
StageRef repeat_stage(StageRef parent, int64_t times);  // of a parent in order, or of unknown length
// Tensors on a device, copied on a stream of their own.
StageRef device_stage(StageRef parent, Device& device);

// Positions 1 .. n in a random order (Fisher and Yates) drawn from (seed, epoch). Position i of the result comes from
// the first i + buffer, as if elements passed through a buffer of that size.
void draw_order(int64_t n, uint32_t seed, uint32_t epoch, int64_t buffer, int64_t* positions);
// Step i of it: which of `reach` that are left in the buffer, from 0.
int64_t draw_step(uint32_t seed, uint32_t epoch, int64_t i, int64_t reach);

}  // namespace perigee
