// SPDX-License-Identifier: Apache-2.0
// Regions as generated kernels. In a captured plan another kernel of the same source is launched, which finds the
// numbers of the call in a block on the device (runtime_block.hpp).
#pragma once

#include <mutex>

#include "../kernel.hpp"
#include "line_source.hpp"
#include "source.hpp"
#include "stream_source.hpp"

namespace cuda::fused {

class GeneratedKernel : public Kernel {
 public:
  bool renews() const final { return !source_.numbers.empty() && !source_.faulty; }

 protected:
  GeneratedKernel(uint32_t device, Source source);
  // Fills in addresses, numbers, axes and strides, from `next` on, and which operands are aligned. Returns what
  // follows.
  uint64_t* put_operands(const Launch& launch, uint64_t* next, uint64_t& aligned);
  // Launches with these arguments, after put_operands.
  void start(const Launch& launch, const Grid& grid, uint64_t* arguments);

  Source source_;

 private:
  cudaKernel_t renewed();

  uint32_t device_;
  cudaKernel_t kernel_ = nullptr, renewed_ = nullptr;
  std::once_flag wanted_;
};

// Of elements.
class RegionKernel final : public GeneratedKernel {
 public:
  explicit RegionKernel(const pg::Region& piece) : GeneratedKernel(piece.raw->device, write_source(piece)) {}
  void run(const Launch& launch) override;
};

// Of lines.
class LineKernel final : public GeneratedKernel {
 public:
  explicit LineKernel(const pg::Region& piece) : LineKernel(piece, write_lines(piece)) {}
  void run(const Launch& launch) override;

 private:
  LineKernel(const pg::Region& piece, LineSource made)
      : GeneratedKernel(piece.raw->device, std::move(made.source)),
        length_(made.length),
        tile_(made.tile),
        tail_(std::move(made.tail)),
        shared_(made.shared) {}

  int64_t length_, tile_;
  std::vector<uint64_t> tail_;
  uint32_t shared_;
};

// Of lines that are streamed: one launch, or two where lines have parts.
class StreamKernel final : public GeneratedKernel {
 public:
  StreamKernel(const pg::Region& piece, pg::Plan& plan) : StreamKernel(piece, write_streams(piece)) {
    plan.workspace = made_.workspace();
  }
  void run(const Launch& launch) override;

 private:
  StreamKernel(const pg::Region& piece, StreamSource made)
      : GeneratedKernel(piece.raw->device, made.source), made_(std::move(made)) {}

  StreamSource made_;
};

}  // namespace cuda::fused
