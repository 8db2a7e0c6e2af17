// SPDX-License-Identifier: Apache-2.0
// A primitive whose tensors may lie otherwise in memory than it wants them, or be 16-bit floats where it wants float32:
// they are copied into and out of the host's workspace around it. A constant operand may be packed once instead.
#pragma once

#include "linalg/dense.hpp"
#include "onednn/blocked.hpp"

namespace pg::cpu::onednn {

struct Operand {
  int id;              // DNNL_ARG_*
  Desc given, wanted;  // the tensor's layout and the primitive's
  bool output = false;
  bool relu = false, past = false;  // of an output's copy: where it can, it applies relu, writes past the caches
};

class Adapted {
 public:
  Adapted() = default;
  Adapted(const dnnl::primitive& primitive, std::vector<Operand> operands, const Desc& scratchpad);

  uint64_t workspace() const;
  // Bytes of operand i in the wanted layout; 0 where it is taken as it is.
  uint64_t packed_bytes(size_t i) const { return moves(i) ? operands_[i].wanted.get_size() : 0; }
  // `where`, of what masks(i): what is not above 0 there, in the given layout, becomes 0.
  void pack(size_t i, const void* from, void* to, const void* where = nullptr);
  bool masks(size_t i) const { return copies_[i].masks(); }
  const Desc& wanted(size_t i) const { return operands_[i].wanted; }
  bool activates(size_t i) const { return copies_[i].activates(); }

  // Addresses by operand; packed[i], where not NULL, takes the place of address i.
  void run(std::vector<void*> addresses, const std::vector<const void*>& packed, void* workspace);

 private:
  bool moves(size_t i) const { return operands_[i].given != operands_[i].wanted; }
  std::vector<Operand> operands_;
  std::vector<Copy> copies_;
  uint64_t scratchpad_ = 0;
  Step step_;
};

}  // namespace pg::cpu::onednn
