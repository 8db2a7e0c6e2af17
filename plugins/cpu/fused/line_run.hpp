// SPDX-License-Identifier: Apache-2.0
// What the ways to run a LineRegion share.
#pragma once

#include "../lines.hpp"
#include "../rooms.hpp"
#include "line_region.hpp"

namespace cpu {

// An address that is only added to: where memory would begin of which there is a part.
template <class T>
T* before(T* at, int64_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(at) - static_cast<uintptr_t>(bytes));
}

// What all threads of a launch read.
struct LineRegion::Shared {
  explicit Shared(const LineRegion& region, const pg_launch& launch)
      : launch(launch),
        bytes(bytes_of(region)),
        bases(std::make_unique_for_overwrite<RegionKernel::Bases[]>(region.stages_.size())),
        rooms(region.stages_.size()),
        rooms_of_threads(region.rooms_ > 0 ? pg::host_pointer(launch.workspace) : nullptr, region.rooms_,
                         region.rooms_ > 0 ? region.thread_bytes() : 0) {
    for (size_t s = 0; s < region.stages_.size(); s++) {
      const Stage& stage = region.stages_[s];
      if (stage.program != nullptr) {
        stage.program->put_numbers(launch, bytes, bases[s]);
        bases[s].past = stage.written >= (region.has_product() ? kStreamBytes * 4 : kStreamBytes);
        continue;
      }
      const auto room = static_cast<int64_t>(stage.lines->shared_bytes());
      if (room == 0) continue;
      rooms[s] = bytes.take(room + 64);
      std::vector<pg_address> in(stage.inputs.size(), pg_address{0, 0});
      for (size_t i = 0; i < in.size(); i++)
        if (stage.inputs[i] != PG_VALUE_NONE && region.values_[stage.inputs[i]].kind == Value::kInput)
          in[i] = launch.input[region.values_[stage.inputs[i]].index];
      pg_launch of_node = node_launch(stage);
      of_node.input = in.data();
      of_node.input_count = static_cast<uint32_t>(in.size());
      stage.lines->share(of_node, rooms[s]);
    }
  }
  static int64_t bytes_of(const LineRegion& region) {
    int64_t bytes = region.shared_bytes_;
    for (const Stage& s : region.stages_) bytes += s.program != nullptr ? s.program->number_bytes() : 0;
    return bytes;
  }
  pg_launch node_launch(const Stage& stage) const {
    pg_launch of_node = launch;
    of_node.attrs = static_cast<const char*>(launch.attrs) + stage.attrs;
    return of_node;
  }
  const pg_launch& launch;
  RegionBytes bytes;
  std::unique_ptr<RegionKernel::Bases[]> bases;  // by stage, without lanes
  std::vector<char*> rooms;
  mutable Rooms rooms_of_threads;
};

// The programs of stages, for one thread.
struct LineRegion::Programs {
  Programs(const LineRegion& region, const Shared& shared, RegionBytes& room)
      : bases(std::make_unique_for_overwrite<RegionKernel::Bases[]>(region.stages_.size())),
        workers(region.stages_.size()) {
    for (size_t s = 0; s < workers.size(); s++) {
      const Stage& stage = region.stages_[s];
      if (stage.program == nullptr) continue;
      bases[s].numbers = shared.bases[s].numbers;
      bases[s].parameters = shared.bases[s].parameters;
      bases[s].past = shared.bases[s].past;
      workers[s] = std::make_unique<RegionKernel::Worker>(*stage.program, bases[s], room);
    }
  }
  static int64_t room(const LineRegion& region) {
    int64_t bytes = 0;
    for (const Stage& s : region.stages_) bytes += s.program != nullptr ? s.program->worker_bytes() : 0;
    return bytes;
  }
  // base(v): where all of a value would begin.
  template <class Base>
  void run(size_t s, const Stage& stage, int64_t begin, int64_t end, const Base& base) {
    char** lane = bases[s].lane;
    for (uint32_t v : stage.inputs) *lane++ = base(v);
    for (uint32_t v : stage.outputs) *lane++ = base(v);
    workers[s]->run(begin, end);
  }
  std::unique_ptr<RegionKernel::Bases[]> bases;
  std::vector<std::unique_ptr<RegionKernel::Worker>> workers;
};

// What is common to ways that fold: inputs and outputs lie where they are, numbers a line in one place of all threads,
// other buffers in a thread's room.
class LineRegion::Folds {
 public:
  Folds(const LineRegion& region, const Shared& shared)
      : r_(region), shared_(shared), numbers_(region.lines_ * region.number_bytes_ + 64) {
    room_ = numbers_.take(r_.lines_ * r_.number_bytes_);
    for (size_t s = 0; s < r_.stages_.size(); s++)
      if (r_.stages_[s].lines != nullptr) folds_.push_back(s);
  }

 protected:
  // Where all of a value would begin, where a thread's room for `most` elements of each buffer holds those from `first`
  // on.
  char* base(uint32_t v, char* near, int64_t most, int64_t first) const {
    if (v == PG_VALUE_NONE) return nullptr;
    const Value& value = r_.values_[v];
    switch (value.kind) {
      case Value::kInput: return pg::host_pointer<char>(shared_.launch.input[value.index]);
      case Value::kOutput: return pg::host_pointer<char>(shared_.launch.output[value.index]);
      default:
        if (value.numbers) return room_ + r_.lines_ * value.offset;
        return before(near + most * value.offset, first * element_bytes(v));
    }
  }
  char* numbers(uint32_t v) const { return base(v, nullptr, 0, 0); }
  int64_t element_bytes(uint32_t v) const { return r_.values_[v].bytes / r_.length_; }  // of a full value

  // What is made of the numbers, when all are known.
  void make_numbers() const {
    for (size_t s = 0; s < r_.stages_.size(); s++) {
      const Stage& stage = r_.stages_[s];
      if (stage.program == nullptr || !stage.of_numbers) continue;
      RegionBytes room(Programs::room(r_));
      Programs(r_, shared_, room).run(s, stage, 0, r_.lines_, [&](uint32_t v) { return numbers(v); });
      simd->stream_fence();
    }
  }

  const LineRegion& r_;
  const Shared& shared_;
  std::vector<size_t> folds_;  // stages

 private:
  RegionBytes numbers_;
  char* room_;
};

}  // namespace cpu
