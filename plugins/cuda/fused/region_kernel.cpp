// SPDX-License-Identifier: Apache-2.0
#include "region_kernel.hpp"

#include <algorithm>

#include "../activity.hpp"
#include "library.hpp"

namespace cuda::fused {

GeneratedKernel::GeneratedKernel(uint32_t device, Source source) : source_(std::move(source)), device_(device) {
  kernel_ = find_kernel(device_, source_.complete(false));
}

// Compiled when a plan first asks what it will read, so before anything is captured.
cudaKernel_t GeneratedKernel::renewed() {
  std::call_once(wanted_, [&] { renewed_ = find_kernel(device_, source_.complete(true)); });
  return renewed_;
}

uint64_t* GeneratedKernel::put_operands(const Launch& launch, uint64_t* next, uint64_t& aligned) {
  aligned = 0;
  for (size_t k = 0; k < source_.operands.size(); k++) {
    const Operand& o = source_.operands[k];
    const pg_address at =
        k < launch.raw.input_count ? launch.raw.input[k] : launch.raw.output[k - launch.raw.input_count];
    const uint64_t address = at.buffer + at.offset;
    const auto packet = static_cast<uint64_t>(pg::dtype_bytes(o.dtype) * source_.width);
    if (!o.ragged && address % packet == 0) aligned |= uint64_t{1} << k;
    *next++ = address;
  }
  uint64_t* const numbers = next;
  for (const KernelNumber& number : source_.numbers) *next++ = number_word(number, launch.raw);
  if (source_.numbers.empty()) *next++ = 0;
  if (runtime_block != nullptr) {
    const uint64_t at = runtime_block->bytes, bytes = source_.numbers.size() * sizeof(uint64_t);
    runtime_block->bytes = (at + bytes + 15) / 16 * 16;
    if (!runtime_block->dry())
      numbers[0] = reinterpret_cast<uint64_t>(runtime_block->device + at);
    else if (runtime_block->bytes <= runtime_block->room)
      std::memcpy(runtime_block->image + at, numbers, bytes);
  }
  next = std::copy(source_.axes.begin(), source_.axes.end(), next);
  return std::copy(source_.strides.begin(), source_.strides.end(), next);
}

void GeneratedKernel::start(const Launch& launch, const Grid& grid, uint64_t* words) {
  cudaKernel_t kernel = runtime_block != nullptr ? renewed() : kernel_;
  if (is_dry(kernel, grid.x, grid.y)) return;
  void* arguments[] = {words};
  TimedWork timed(launch.stream(), PG_ACTIVITY_KERNEL, {launch.raw.stream, launch.raw.sequence});
  PG_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.x, grid.y), dim3(grid.threads), arguments,
                           grid.shared, launch.native()));
}

void RegionKernel::run(const Launch& launch) {
  uint64_t words[kMostArguments / 8];
  words[0] = static_cast<uint64_t>(source_.count), words[1] = static_cast<uint64_t>(source_.items);
  uint64_t* next = put_operands(launch, words + 3, words[2]);
  if (source_.faulty) {
    const FaultSite site = launch.fault_site(FaultKind::kNone, 0, *launch.raw.outputs[0]);
    std::memcpy(next, &site, sizeof site);
  }
  start(launch, grid_for(source_.items), words);
}

void LineKernel::run(const Launch& launch) {
  uint64_t words[kMostArguments / 8];
  const int64_t lines = source_.count / length_;
  words[0] = static_cast<uint64_t>(lines), words[1] = static_cast<uint64_t>(length_);
  words[2] = static_cast<uint64_t>(tile_), words[3] = static_cast<uint64_t>(length_ / source_.width);
  std::copy(tail_.begin(), tail_.end(), put_operands(launch, words + 5, words[4]));
  Grid grid;
  grid.x = static_cast<uint32_t>(std::min(divide_up(lines, tile_), kMaxBlocks));
  grid.shared = shared_;
  start(launch, grid, words);
}

void StreamKernel::run(const Launch& launch) {
  uint64_t words[kMostArguments / 8];
  const LineAxes& axes = made_.axes;
  words[0] = static_cast<uint64_t>(axes.lines()), words[1] = static_cast<uint64_t>(axes.length);
  words[2] = static_cast<uint64_t>(axes.inner), words[3] = static_cast<uint64_t>(made_.tiles);
  uint64_t* next = put_operands(launch, words + 5, words[4]);
  *next++ = static_cast<uint64_t>(made_.lanes), *next++ = static_cast<uint64_t>(made_.per_part);
  *next++ = static_cast<uint64_t>(made_.parts), *next++ = static_cast<uint64_t>(made_.end_lanes);
  uint64_t& second = *next++;
  second = 0;
  const auto states = reinterpret_cast<uint64_t>(launch.workspace());
  for (uint32_t r = 0; r < made_.reductions; r++) *next++ = states + r * made_.state_bytes();
  start(launch, made_.grid, words);
  if (made_.parts == 1) return;
  second = 1;
  start(launch, made_.end_grid, words);
}

}  // namespace cuda::fused
