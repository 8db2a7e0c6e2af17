// SPDX-License-Identifier: Apache-2.0
#include "onednn/adapted.hpp"

namespace pg::cpu::onednn {

Adapted::Adapted(const dnnl::primitive& primitive, std::vector<Operand> operands, const Desc& scratchpad)
    : operands_(std::move(operands)), copies_(operands_.size()), scratchpad_(scratchpad.get_size()) {
  std::vector<Step::Argument> arguments;
  for (size_t i = 0; i < operands_.size(); i++) {
    const Operand& o = operands_[i];
    arguments.push_back({o.id, o.wanted});
    if (moves(i)) copies_[i] = o.output ? Copy(o.wanted, o.given, o.relu, o.past) : Copy(o.given, o.wanted);
    scratchpad_ = std::max(scratchpad_, copies_[i].workspace());
  }
  arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad});
  step_ = Step(primitive, arguments);
}

uint64_t Adapted::workspace() const {
  Scratch scratch;
  scratch.take(scratchpad_);
  for (size_t i = 0; i < operands_.size(); i++) {
    if (moves(i)) scratch.take(operands_[i].wanted.get_size());
  }
  return scratch.bytes();
}

void Adapted::pack(size_t i, const void* from, void* to, const void* where) {
  auto scratch = std::make_unique<std::byte[]>(copies_[i].workspace());
  copies_[i].run(from, to, scratch.get(), where);
}

void Adapted::run(std::vector<void*> addresses, const std::vector<const void*>& packed, void* workspace) {
  Scratch scratch(workspace);
  void* scratchpad = scratch.take(scratchpad_);
  std::vector<void*> used = addresses;
  for (size_t i = 0; i < operands_.size(); i++) {
    if (!moves(i)) continue;
    used[i] = scratch.take(operands_[i].wanted.get_size());
    if (i < packed.size() && packed[i] != nullptr) {
      used[i] = const_cast<void*>(packed[i]);
    } else if (!operands_[i].output) {
      copies_[i].run(addresses[i], used[i], scratchpad);
    }
  }
  used.push_back(scratchpad);
  step_.run(used);
  for (size_t i = 0; i < operands_.size(); i++) {
    if (moves(i) && operands_[i].output) copies_[i].run(used[i], addresses[i], scratchpad);
  }
}

}  // namespace pg::cpu::onednn
