// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <algorithm>
#include <memory>

#include "plugin.hpp"

namespace sim {

Work::Work(const pg_op_info* op, const pg_launch& launch, pg_address runtime) : op_(op), extents_(launch.extents) {
  auto take = [&](const pg_tensor* tensor, pg_address address, bool contents, bool writes, std::vector<Operand>& to) {
    if (tensor == nullptr) return to.push_back(Operand());
    Use use = contents ? plugin->device().use(launch.device, *tensor, address, op->name) : Use();
    to.push_back(Operand(*tensor, use.data()));
    uses_.push_back(std::move(use));
    writes_.push_back(writes);
  };
  for (uint32_t declared = 0, i = 0; declared < op->input_count; declared++) {
    groups_.push_back(launch.groups == nullptr ? 1 : launch.groups[declared]);
    const uint32_t flags = op->inputs[declared]->flags;
    const bool contents = !(flags & PG_INPUT_META), writes = (flags & PG_INPUT_MUTATES) != 0;
    for (uint32_t end = i + groups_.back(); i < end; i++)
      take(launch.inputs[i], launch.input[i], contents, writes, in_);
  }
  for (uint32_t i = 0; i < launch.output_count; i++) take(launch.outputs[i], launch.output[i], true, true, out_);
  if (op->attr_size > 0) {
    const auto* from = static_cast<const std::byte*>(launch.attrs == nullptr ? op->defaults : launch.attrs);
    attrs_.assign(from, from + op->attr_size);
  }
  if (const uint64_t bytes = op->attr_size - op->static_size; bytes > 0 && runtime.buffer != 0) {
    captured_ = true;
    std::fill(attrs_.begin() + op->static_size, attrs_.end(), std::byte{0xff});  // of this launch alone: nobody's
    uses_.push_back(plugin->device().use_bytes(launch.device, runtime, bytes, op->name));
    writes_.push_back(false);
  }
}

void Work::renew() {
  if (captured_) std::memcpy(attrs_.data() + op_->static_size, uses_.back().data(), attrs_.size() - op_->static_size);
}

std::vector<Touch> Work::touches() const {
  std::vector<Touch> list;
  for (size_t i = 0; i < uses_.size(); i++)
    if (uses_[i].data() != nullptr) list.push_back(uses_[i].touch(writes_[i] != 0));
  return list;
}

std::vector<Operand> Work::group(uint32_t declared) const {
  size_t begin = 0;
  for (uint32_t i = 0; i < declared; i++) begin += groups_[i];
  size_t count = declared < groups_.size() ? groups_[declared] : 0;
  return {in_.begin() + static_cast<ptrdiff_t>(begin), in_.begin() + static_cast<ptrdiff_t>(begin + count)};
}

Operand Work::input(uint32_t declared) const {
  std::vector<Operand> found = group(declared);
  return found.empty() ? Operand() : found[0];
}

bool Work::has_attr(const char* name) const {
  for (uint32_t i = 0; i < op_->attr_count; i++) {
    if (std::strcmp(op_->attrs[i]->name, name) == 0) return true;
  }
  return false;
}

std::string Work::choice(const char* name) const {
  const pg_attr_info& info = pg::find_attr(*op_, name);
  auto index = static_cast<uint32_t>(pg::read_attr<int32_t>(attrs_.data(), info.kind, info.offset));
  if (index >= info.choice_count) pg::fail(PG_E_INTERNAL, pg::format("%s: no choice %u", name, index));
  return info.choices[index];
}

int64_t Work::axis(const char* name, int64_t rank) const {
  int64_t axis = attr<int64_t>(name), dims = std::max<int64_t>(rank, 1);
  if (axis < -dims || axis >= dims) {
    pg::fail_argument(pg::format("axis %lld is out of range for rank %lld", static_cast<long long>(axis),
                                 static_cast<long long>(rank)));
  }
  return axis < 0 ? axis + dims : axis;
}

std::vector<int64_t> Work::list(const char* name) const {
  auto ints = attr<pg_ints>(name);
  return {ints.value, ints.value + ints.count};
}

uint32_t Work::axes(const char* name, int64_t rank) const {
  std::vector<int64_t> named = list(name);
  if (named.empty()) return (1u << rank) - 1;
  uint32_t mask = 0;
  for (int64_t axis : named) {
    if (rank > 0) mask |= 1u << (axis < 0 ? axis + rank : axis);
  }
  return mask;
}

pg_scalar Work::scalar() const {
  for (uint32_t i = 0; i < op_->attr_count; i++) {
    if (op_->attrs[i]->kind == PG_ATTR_SCALAR) return pg::read_at<pg_scalar>(attrs_.data(), op_->attrs[i]->offset);
  }
  return {PG_SCALAR_NONE, -1};
}

pg_number Work::scalar_value() const {
  for (uint32_t i = 0; i < op_->attr_count; i++) {
    if (op_->attrs[i]->kind == PG_ATTR_SCALAR) return pg::read_at<pg_number>(attrs_.data(), op_->attrs[i]->value);
  }
  pg::fail(PG_E_INTERNAL, "the operator takes no number");
}

void Work::publish(size_t output, std::initializer_list<int64_t> extents) const {
  if (extents_ == nullptr) return;
  int64_t* at = extents_;
  for (size_t i = 0; i < output; i++) at += out_[i].rank();
  std::copy(extents.begin(), extents.end(), at);
}

void check_dtypes(const pg::KernelCall& call, uint32_t dtypes) {
  auto check = [&](const pg_tensor* tensor, uint32_t allowed, const char* what, uint32_t i) {
    if (tensor == nullptr) return;
    plugin->device().check_coverage(call.raw->op->name, *tensor);
    uint32_t dtype = pg::dtype_of(*tensor);
    if (tensor->layout != 0 || tensor->class_id != PG_CLASS_DENSE) pg::fail_support("only plain dense tensors");
    if (!(pg::dtype_class(dtype) & allowed)) {
      pg::fail_support(pg::format("%s %u is %s", what, i, pg::dtype_name(dtype)));
    }
    pg::reference::with_storage(dtype, [](auto) {});
  };
  // Masks, indices and conditions stand beside the operands proper, so only the first input is held to the list.
  for (uint32_t i = 0; i < call.input_count(); i++)
    check(call.raw->inputs[i], i == 0 ? dtypes : dtypes | kAny, "input", i);
  for (uint32_t i = 0; i < call.output_count(); i++) check(call.raw->outputs[i], dtypes | kAny, "output", i);
}

void launch(const pg_op_info* op, const pg_launch& call, pg_address runtime, std::function<void(const Work&)> run) {
  auto work = std::make_shared<Work>(op, call, runtime);
  plugin->device().launch(call.device, {call.stream, call.sequence}, op->name, work->touches(),
                          [work, run = std::move(run)] {
                            work->renew();
                            run(*work);
                          });
}

uint64_t put_runtime(const pg_op_info& op, const pg_launch& launch, void* block) {
  if (plugin->device().settings().uncaptured.contains(op.name)) pg::fail_support("PERIGEE_SIM_MISSING says so");
  const uint64_t bytes = op.attr_size - op.static_size;
  if (block != nullptr && bytes > 0)
    std::memcpy(block,
                static_cast<const std::byte*>(launch.attrs == nullptr ? op.defaults : launch.attrs) + op.static_size,
                bytes);
  return bytes;
}

}  // namespace sim
