// SPDX-License-Identifier: Apache-2.0
#include "region_kernel.hpp"

#include <algorithm>
#include <memory>

#include "../block_loop.hpp"

namespace cpu {

namespace {

constexpr int64_t kLongBlock = 32768;  // elements, where operands are used as they lie
constexpr int64_t kLongRow = 256;

}  // namespace

RegionKernel::RegionKernel(const pg::Region& piece) : program_(assemble(piece)) {
  const pg_region& raw = *piece.raw;
  const pg_tensor& like = piece.value(raw.outputs[0]);
  inputs_ = raw.input_count;
  auto add = [&](uint32_t value) {
    const pg_tensor& t = piece.value(value);
    Lane& lane = lanes_.emplace_back();
    lane.storage = storage_of(t);
    pg::broadcast_strides(t, like.rank, lane.stride);
  };
  for (uint32_t i = 0; i < raw.input_count; i++) add(raw.inputs[i]);
  for (uint32_t i = 0; i < raw.output_count; i++) add(raw.outputs[i]);
  merge_axes(like);
  for (Lane& lane : lanes_) {
    int64_t expected = 1;
    lane.linear = lane.constant = true;
    for (int i = rank_ - 1; i >= 0; expected *= shape_[i--]) {
      lane.linear = lane.linear && lane.stride[i] == expected;
      lane.constant = lane.constant && lane.stride[i] == 0;
    }
    lane.linear = lane.linear || count_ <= 1;
    lane.constant = lane.constant && !lane.linear;
    plain_ = plain_ && (lane.linear || lane.constant);
  }
  rows_ = !plain_ && rank_ > 1 && shape_[rank_ - 1] >= kLongRow;
  tile_ = threaded().tile[program_.width];
  operand_of_.resize(lanes_.size());
  for (uint32_t i = 0; i < program_.operands.size(); i++) {
    const ProgramOperand& o = program_.operands[i];
    if (o.kind == ProgramOperand::kInput) operand_of_[o.index] = i;
    if (o.kind == ProgramOperand::kOutput) operand_of_[inputs_ + o.index] = i;
    slots_ += o.kind == ProgramOperand::kSlot;
  }
  grain_ = std::max<int64_t>(kGrain * 2 / (2 + program_.cost), 2048);
}

// Axes of one element are dropped, the others put in the order in which the results lie, neighbours merged where all
// tensors allow it.
void RegionKernel::merge_axes(const pg_tensor& like) {
  std::vector<Lane> given(lanes_);
  int order[PG_MAX_RANK];
  for (int k = pg::axes_by_stride(like, order); k-- > 0;) {
    const int axis = order[k];
    const int64_t size = like.shape[axis];
    count_ *= size;
    bool merge = rank_ > 0;
    for (size_t i = 0; i < given.size(); i++)
      merge = merge && lanes_[i].stride[rank_ - 1] == given[i].stride[axis] * size;
    const int to = merge ? rank_ - 1 : rank_++;
    shape_[to] = merge ? shape_[to] * size : size;
    for (size_t i = 0; i < given.size(); i++) lanes_[i].stride[to] = given[i].stride[axis];
  }
}

void RegionKernel::put_numbers(const pg_launch& launch, RegionBytes& bytes, Bases& bases) const {
  char* numbers = bytes.take(static_cast<int64_t>(program_.numbers.size()) * kTileMost);
  char* parameters = bytes.take(program_.parameter_bytes + 64);
  const char* attrs = static_cast<const char*>(launch.attrs);
  for (size_t i = 0; i < program_.numbers.size(); i++) {
    const ProgramNumber& n = program_.numbers[i];
    const pg_number value = n.value(attrs + n.attrs);
    alignas(8) char word[8], stored[8];
    if (n.moved) {
      put_number(n.dtype, value, stored);
      convert(n.dtype, n.word, stored, word, 1);
    } else {
      put_number(n.word, value, word);
    }
    fill_elements(numbers + static_cast<int64_t>(i) * kTileMost, word, kStorageBytes[n.word], tile_);
  }
  pg_launch of_node = launch;
  for (const ProgramParameters& p : program_.parameters) {
    of_node.attrs = attrs + p.attrs;
    const ParameterBlock::Packed packed = p.block(of_node);
    std::memcpy(parameters + p.offset, packed.bytes, sizeof packed.bytes);
  }
  bases.numbers = numbers;
  bases.parameters = parameters;
}

void RegionKernel::keep_near(uint32_t output) {
  const uint32_t operand = operand_of_[inputs_ + output];
  for (size_t i = 0; i < program_.steps.size(); i++)
    if (program_.past[i].run != program_.steps[i].run && program_.steps[i].a == operand)
      program_.past[i] = program_.steps[i];
}

// ---- on one thread ----

RegionKernel::Worker::Worker(const RegionKernel& kernel, const Bases& bases, RegionBytes& room)
    : k_(kernel), bases_(bases) {
  const auto& operands = k_.program_.operands;
  for (size_t i = 0; i < k_.lanes_.size(); i++) {
    pads_[i] = room.take(kTileMost);
    blocks_[i] = k_.lanes_[i].linear || k_.lanes_[i].constant ? nullptr : room.take(kBlock * 8);
  }
  frame_.parameters = bases.parameters;
  for (size_t i = 0; i < operands.size(); i++) {
    const ProgramOperand& o = operands[i];
    frame_.operand[i] = {nullptr, 0};
    if (o.kind == ProgramOperand::kSlot) frame_.operand[i].at = room.take(kTileMost);
    if (o.kind == ProgramOperand::kNumber)
      frame_.operand[i].at = const_cast<char*>(bases.numbers) + static_cast<int64_t>(o.index) * kTileMost;
  }
}

void RegionKernel::Worker::run(int64_t begin, int64_t end) {
  for (size_t i = 0; i < k_.lanes_.size(); i++)
    if (k_.lanes_[i].constant) repeat(i, bases_.lane[i]);
  const TileStep* program = (bases_.past ? k_.program_.past : k_.program_.steps).data();
  const int64_t longest = k_.plain_ || k_.rows_ ? kLongBlock : kBlock;
  for (int64_t p = begin, n = 0; p < end; p += n) {
    n = std::min(end - p, longest);
    if (k_.rows_) n = std::min({n, k_.shape_[k_.rank_ - 1] - p % k_.shape_[k_.rank_ - 1], longest_of_rows()});
    for (size_t i = 0; i < k_.lanes_.size(); i++) place(i, p, n);
    const int64_t whole = n / k_.tile_;
    if (whole > 0) threaded().run(program, &frame_, whole, k_.tile_);
    if (whole * k_.tile_ < n) rest(whole * k_.tile_, n);
  }
}

int64_t RegionKernel::Worker::longest_of_rows() const { return k_.gathered() > 0 ? kBlock : kLongBlock; }

void RegionKernel::Worker::repeat(size_t i, const char* element) {
  fill_elements(pads_[i], element, kStorageBytes[k_.lanes_[i].storage], k_.tile_);
  operand(i) = {pads_[i], 0};
}

// Where the block's elements [p, p + n) of a tensor are.
void RegionKernel::Worker::place(size_t i, int64_t p, int64_t n) {
  const Lane& lane = k_.lanes_[i];
  if (lane.constant) return;
  const int64_t bytes = kStorageBytes[lane.storage];
  if (lane.linear) {
    operand(i) = {bases_.lane[i] + p * bytes, bytes};
    return;
  }
  const int64_t step = lane.stride[k_.rank_ - 1];
  if (k_.rows_ && step <= 1) {
    int64_t at = 0;
    for (int64_t axis = k_.rank_ - 1, rest = p; axis >= 0; axis--) {
      at += rest % k_.shape_[axis] * lane.stride[axis];
      rest /= k_.shape_[axis];
    }
    char* from = bases_.lane[i] + at * bytes;
    if (step == 0) return repeat(i, from);
    operand(i) = {from, bytes};
    return;
  }
  gather(bases_.lane[i], static_cast<int>(bytes), k_.rank_, k_.shape_, lane.stride, p, n, blocks_[i]);
  operand(i) = {blocks_[i], bytes};
}

// Less than a tile at the end of a block: through tiles of its own.
void RegionKernel::Worker::rest(int64_t from, int64_t end) {
  size_t backs = 0;
  Back back[kTileOperands];
  for (size_t i = 0; i < k_.lanes_.size(); i++) {
    TileOperand& o = operand(i);
    if (o.step == 0) continue;
    char* at = o.at + from * o.step;
    const int64_t bytes = (end - from) * o.step;
    if (i < k_.inputs_) {
      std::memset(pads_[i], 0, kTileMost);
      std::memcpy(pads_[i], at, static_cast<size_t>(bytes));
    } else {
      back[backs++] = {at, pads_[i], bytes};
    }
    o = {pads_[i], 0};
  }
  threaded().run(k_.program_.steps.data(), &frame_, 1, k_.tile_);
  for (size_t i = 0; i < backs; i++) std::memcpy(back[i].to, back[i].pad, static_cast<size_t>(back[i].bytes));
}

// ---- alone ----

void RegionKernel::launch(const pg_launch& launch) {
  RegionBytes bytes(number_bytes());
  Bases bases;
  put_numbers(launch, bytes, bases);
  bases.past = true;
  int64_t written = 0;
  for (uint32_t i = 0; i < launch.input_count; i++) bases.lane[i] = pg::host_pointer<char>(launch.input[i]);
  for (uint32_t i = 0; i < launch.output_count; i++) {
    char* at = pg::host_pointer<char>(launch.output[i]);
    written += count_ * kStorageBytes[lanes_[inputs_ + i].storage];
    for (uint32_t j = 0; j < launch.input_count; j++) bases.past = bases.past && bases.lane[j] != at;
    bases.lane[inputs_ + i] = at;
  }
  bases.past = bases.past && written >= kStreamBytes;
  auto piece = [&](int64_t begin, int64_t end) {
    RegionBytes room(worker_bytes());
    Worker(*this, bases, room).run(begin, end);
  };
  if (count_ <= grain_) return piece(0, count_);
  const int64_t groups = (count_ + tile_ - 1) / tile_;  // threads part at whole tiles
  pg::parallel_for(groups, std::max<int64_t>(grain_ / tile_, 1), [&](int64_t begin, int64_t end) {
    piece(begin * tile_, std::min(end * tile_, count_));
    if (bases.past) simd->stream_fence();
  });
}

}  // namespace cpu
