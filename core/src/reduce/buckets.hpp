// SPDX-License-Identifier: Apache-2.0
// Which gradients are summed together, and where they lie meanwhile.
#pragma once

#include <vector>

#include "tensor/tensor.hpp"

namespace perigee {

struct BucketSizes {
  uint64_t first;   // most bytes of the first bucket, which starts when little has been computed
  uint64_t others;  // of those behind it
  uint64_t direct;  // of a gradient of the last bucket that is worth a message of its own, and is not copied
};

// What one member has of a bucket in a step: memory of this step only, whose parts become the gradients.
struct Share {
  TensorRef flat;                // 1-d
  std::vector<TensorRef> parts;  // row-major, by parameter
  uint32_t waiting = 0;          // how many parts have not been given
  bool scaled = false;           // all have, and it is what this member adds
};

// Dense gradients of one dtype and device behind each other, for each member. One parameter that has more than the most
// has a bucket of its own.
struct Bucket {
  Bucket(uint32_t of, Device* on) : dtype(of), device(on) {}
  uint32_t dtype;
  Device* device;                // the first member's
  uint64_t bytes = 0;            // of gradients alone
  int64_t extent = 0;            // bytes of all; each begins where a kernel likes it to
  std::vector<uint32_t> index;   // its parameters, the last ones first
  std::vector<int64_t> offsets;  // bytes, of each
  // ---- of a step ----
  std::vector<Share> shares;  // by member
  uint64_t request = 0;       // of the sum that has begun
  bool over = false;
};

struct BucketLayout {
  std::vector<Bucket> buckets;
  std::vector<uint32_t> direct;  // parameters that are in none
};

// The same parameters of each member, which are replicas in this process.
using Members = std::vector<std::vector<TensorRef>>;

// Of the parameters that have a gradient somewhere, the last ones first, since theirs are computed first.
BucketLayout lay_out(const Members& members, const std::vector<uint8_t>& any, const BucketSizes& sizes);

// Takes a member's memory for a step; once.
void open_share(Bucket& bucket, size_t member, const std::vector<TensorRef>& params);
void forget_step(Bucket& bucket);
void fill_with_zeros(Tensor& x);
// Elements of a tensor of the same shape and dtype.
void copy_elements(Tensor& into, Tensor& from);

}  // namespace perigee
