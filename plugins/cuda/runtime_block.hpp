// SPDX-License-Identifier: Apache-2.0
// Numbers of captured launches. What a kernel makes of its run-time attributes it computes on the host, as the fields
// of a functor; a captured launch reads that functor from a block on the device instead (pg.capture/0). Before the plan
// is launched again, Kernel::runtime takes the same way through run() once more, in which nothing is launched and
// functors are written to the block's image.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "perigee/kernel.hpp"

namespace cuda {

// What comes first in the block, for the host alone: which work was captured.
struct BlockHead {
  uint64_t work = 0, bytes = 0;
};

struct RuntimeBlock {
  char* device = nullptr;  // of a launch that is captured; NULL: a dry run
  char* image = nullptr;   // that a dry run writes to, up to `room`
  uint64_t room = 0;
  uint64_t bytes = sizeof(BlockHead);  // so far
  uint64_t work = 0xcbf29ce484222325;

  bool dry() const { return device == nullptr; }
  void note(uint64_t value) { work = (work ^ value) * 0x100000001b3; }
};

// Of the thread while it is in such a launch.
inline constinit thread_local RuntimeBlock* runtime_block = nullptr;

// nullptr: what is launched now reads nothing of the block that the thread was in.
class InBlock {
 public:
  explicit InBlock(RuntimeBlock* block) : before_(runtime_block) { runtime_block = block; }
  InBlock(const InBlock&) = delete;
  ~InBlock() { runtime_block = before_; }

 private:
  RuntimeBlock* before_;
};

// True: work of this kind would be launched now, and is not to be. `work`: a kernel, or a function that launches some.
template <class... Sizes>
bool is_dry(const void* work, Sizes... sizes) {
  if (runtime_block == nullptr || !runtime_block->dry()) return false;
  runtime_block->note(reinterpret_cast<uint64_t>(work));
  (runtime_block->note(static_cast<uint64_t>(sizes)), ...);
  return true;
}

// True: what is to be launched is the kernel's instantiation that finds `functor` on the device, at
// `at_device`. False: the one that is given it.
template <class F>
bool is_renewed(const F& functor, const F*& at_device) {
  static_assert(std::is_trivially_copyable_v<F> && alignof(F) <= 16);
  if (runtime_block == nullptr) return false;
  RuntimeBlock& block = *runtime_block;
  if constexpr (requires { functor.op; }) block.note(static_cast<uint64_t>(functor.op));
  const uint64_t at = block.bytes;
  block.bytes = (at + sizeof(F) + 15) / 16 * 16;
  if (!block.dry())
    at_device = reinterpret_cast<const F*>(block.device + at);
  else if (block.bytes <= block.room)
    std::memcpy(block.image + at, static_cast<const void*>(&functor), sizeof(F));
  return true;
}
// For launches that cannot take it from there.
inline void refuse_renewal() {
  if (runtime_block != nullptr) pg::fail(PG_E_INTERNAL, "a captured launch keeps a number that it is to renew");
}

#if defined(__CUDACC__) || defined(PERIGEE_CUDA_EMULATED)
// In a kernel: what it was given, or what stands in the block now. What is not captured stays in constant memory so.
template <class F>
__device__ __forceinline__ const F& functor_of(const F& given) {
  return given;
}
template <class F>
__device__ __forceinline__ F functor_of(const F* renewed) {
  return *renewed;
}
#endif

}  // namespace cuda
