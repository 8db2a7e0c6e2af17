// SPDX-License-Identifier: Apache-2.0
#include "operand_walk.hpp"

#include <algorithm>

#include "../walk.hpp"
#include "expression.hpp"
#include "perigee/kernels/strided.hpp"

namespace cuda::fused {
namespace {

int64_t divide(int64_t a, int64_t b) { return a / b + (a % b != 0); }

}  // namespace

OperandWalk::OperandWalk(const pg_tensor& like, const std::vector<const pg_tensor*>& tensors, Source& source,
                         int64_t length, int64_t widest)
    : source_(source), length_(length), widest_(widest) {
  std::vector<std::vector<int64_t>> given;
  for (const pg_tensor* t : tensors) {
    if (t->rank > like.rank) pg::fail_support("an operand of more axes than the result");
    std::vector<int64_t> stride(PG_MAX_RANK);
    pg::broadcast_strides(*t, like.rank, stride.data());
    given.push_back(std::move(stride));
    source.operands.push_back({pg::dtype_of(*t)});
  }
  source.count = pg::element_count(like);
  merge(like, given);
  for (size_t k = 0; k < given.size(); k++) {
    auto known = std::find(layouts_.begin(), layouts_.end(), lanes_[k]);
    source.operands[k].layout = static_cast<uint32_t>(known - layouts_.begin());
    if (known == layouts_.end()) layouts_.push_back(lanes_[k]);
  }
  choose_width();
  describe();
}

bool OperandWalk::linear() const {
  return rank() == 0 || (rank() == 1 && std::all_of(layouts_.begin(), layouts_.end(),
                                                    [](const auto& lane) { return lane[0] == 0 || lane[0] == 1; }));
}

std::string OperandWalk::members() const {
  if (linear()) return "";
  return pg::format("  Axis axis[%zu];\n  int64_t stride[%zu][%zu];\n", rank(), layouts(), rank());
}

std::string OperandWalk::locate(const char* item) const {
  if (linear()) return "";
  return pg::format("    int64_t offset[%zu];\n    cuda::fused::locate<%s, %zu, %zu>(%s, a.axis, a.stride, offset);\n",
                    layouts(), wide() ? "true" : "false", rank(), layouts(), item);
}

std::string OperandWalk::place(uint32_t k) const {
  const Operand& o = source_.operands[k];
  if (!linear()) return pg::format("offset[%u]", o.layout);
  return o.splat ? "0" : "at";
}

std::string OperandWalk::whole(uint32_t k, const char* count) const {
  if (source_.width == 1) return "true";
  const std::string all = linear() && *count != '\0' ? pg::format(" && %s == %d", count, source_.width) : "";
  return pg::format("(a.aligned >> %u & 1) != 0", k) + all;
}

void OperandWalk::merge(const pg_tensor& like, const std::vector<std::vector<int64_t>>& given) {
  lanes_.resize(given.size());
  int order[PG_MAX_RANK];
  for (int k = pg::axes_by_stride(like, order); k-- > 0;) {
    const auto axis = static_cast<size_t>(order[k]);
    const int64_t size = like.shape[axis];
    bool joins = !shape_.empty();
    for (size_t i = 0; i < given.size() && joins; i++) joins = lanes_[i].back() == given[i][axis] * size;
    if (joins)
      shape_.back() *= size;
    else
      shape_.push_back(size);
    for (size_t i = 0; i < given.size(); i++) {
      if (!joins) lanes_[i].push_back(0);
      lanes_[i].back() = given[i][axis];
    }
  }
}

// Up to 16 bytes an operand, and no more registers than a thread has for all of them.
void OperandWalk::choose_width() {
  if (shape_.empty()) return;
  int64_t largest = widest_;
  for (const Operand& o : source_.operands) largest = std::max(largest, pg::dtype_bytes(o.dtype));
  int64_t width = std::min<int64_t>(16 / largest, 8);
  if (source_.operands.size() > 24) width = 1;
  for (const auto& lane : layouts_)
    if (lane.back() != 0 && lane.back() != 1) width = 1;
  auto crosses = [&](int64_t packet) {
    return (length_ > 0 && length_ % packet != 0) || (!linear() && shape_.back() % packet != 0);
  };
  while (width > 1 && (source_.count < 2 * width || crosses(width))) width /= 2;
  source_.width = static_cast<int>(width);
}

void OperandWalk::describe() {
  const int64_t width = source_.width;
  source_.items = divide(source_.count, width);
  wide_ = source_.count > INT32_MAX;
  for (Operand& o : source_.operands) {
    const auto& lane = layouts_[o.layout];
    o.splat = lane.empty() || lane.back() == 0;
    for (size_t i = 0; i + 1 < lane.size(); i++) o.ragged = o.ragged || lane[i] % width != 0;
  }
  if (linear()) return;
  for (size_t i = 0; i < rank(); i++) {
    const int64_t size = i + 1 == rank() ? shape_[i] / width : shape_[i];
    const Divider divider(wide_ ? 1 : size);
    source_.axes.push_back(static_cast<uint64_t>(size));
    source_.axes.push_back(divider.multiplier | static_cast<uint64_t>(divider.shift) << 32);
  }
  for (const auto& lane : layouts_)
    for (size_t i = 0; i < rank(); i++)
      source_.strides.push_back(static_cast<uint64_t>(i + 1 == rank() ? lane[i] * width : lane[i]));
}

}  // namespace cuda::fused
