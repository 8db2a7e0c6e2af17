// SPDX-License-Identifier: Apache-2.0
#include "region_kernel.hpp"

#include <algorithm>

#include "../activity.hpp"
#include "library.hpp"

namespace cuda::fused {

RegionKernel::RegionKernel(const pg::Region& piece) : source_(write_source(piece)), device_(piece.raw->device) {
  kernel_ = find_kernel(device_, source_.complete(false));
}

// Compiled when a plan first asks what it will read, so before anything is captured.
cudaKernel_t RegionKernel::renewed() {
  std::call_once(wanted_, [&] { renewed_ = find_kernel(device_, source_.complete(true)); });
  return renewed_;
}

void RegionKernel::run(const Launch& launch) {
  uint64_t words[kMostArguments / 8];
  uint64_t* next = words;
  *next++ = static_cast<uint64_t>(source_.count);
  *next++ = static_cast<uint64_t>(source_.items);
  uint64_t& aligned = *next++;
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
  next = std::copy(source_.axes.begin(), source_.axes.end(), next);
  std::copy(source_.strides.begin(), source_.strides.end(), next);
  const Grid grid = grid_for(source_.items);
  cudaKernel_t kernel = kernel_;
  if (runtime_block != nullptr) {
    kernel = renewed();
    const uint64_t at = runtime_block->bytes, bytes = source_.numbers.size() * sizeof(uint64_t);
    runtime_block->bytes = (at + bytes + 15) / 16 * 16;
    if (is_dry(kernel, grid.x)) {
      if (runtime_block->bytes <= runtime_block->room) std::memcpy(runtime_block->image + at, numbers, bytes);
      return;
    }
    numbers[0] = reinterpret_cast<uint64_t>(runtime_block->device + at);
  }
  void* arguments[] = {words};
  TimedWork timed(launch.stream(), PG_ACTIVITY_KERNEL, {launch.raw.stream, launch.raw.sequence});
  PG_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.x), dim3(grid.threads), arguments, 0,
                           launch.native()));
}

}  // namespace cuda::fused
