// SPDX-License-Identifier: Apache-2.0
// Both gradients of a convolution and that of its bias, part by part of the batch: dy, where there is a ReLU behind the
// convolution, is masked and brought to oneDNN's layout once for all of them, and stays in the caches meanwhile.
#pragma once

#include "conv/whole_convolution.hpp"

namespace pg::cpu {

class ConvGradients {
 public:
  struct Data {
    const void *dy, *x, *weight, *y;  // y: of a ReLU behind the convolution, or NULL
    void *dx, *dweight, *dbias;       // NULL for what is not asked for
    void* workspace;
    const void* packed_weight;  // as pack() wrote it, or NULL
  };
  // `weight`: a weight gradient, with `bias` where that one's is asked for too. NULL where parts do not pay or oneDNN
  // lacks a kernel: then the gradients are worth computing one by one.
  static std::unique_ptr<ConvGradients> make(const ConvShape& weight, bool with_dx, bool behind_relu);

  void run(const Data& data);
  uint64_t workspace() const;
  uint64_t packed_bytes() const { return with_dx() ? slots_[0].x->packed_bytes() : 0; }
  void pack(const void* weight, void* target) { slots_[0].x->pack(weight, target); }

 private:
  struct Slot {  // a thread's primitives: their arguments serve one call at a time
    std::unique_ptr<WholeConvolution> x, weight;
  };
  struct Room {  // a thread's, of the workspace
    void *inner, *dy, *plain;
    float* more;
  };
  struct Rooms {
    void* filters;
    float* sums;  // by group: dweight, then dbias
    std::vector<Room> threads;
  };
  ConvGradients(const ConvShape& weight, int64_t images, bool behind_relu, std::vector<Slot> slots);
  bool with_dx() const { return slots_[0].x != nullptr; }
  Rooms reserve(Scratch& scratch) const;
  void run_group(const Data& data, const Rooms& rooms, size_t slot, int64_t group);
  void run_part(const Data& data, const Rooms& rooms, size_t slot, int64_t part, float* sums);

  std::vector<Slot> slots_;
  uint32_t dtype_;
  int64_t parts_, groups_, weight_, channels_, dbias_at_, sums_;  // numbers of a group's sums
  int64_t x_bytes_, y_count_;                                     // of a part
  bool one_dy_;                                                   // both primitives want dy in the same layout
  bool plain_;  // y's mask takes a pass of its own, before the copy to that layout
};

}  // namespace pg::cpu
