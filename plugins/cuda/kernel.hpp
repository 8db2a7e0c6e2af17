// SPDX-License-Identifier: Apache-2.0
// How kernels of this plugin are written: as perigee/kernel.hpp says, but over cuda::Kernel, whose run() finds the
// device current and the addresses and the stream at hand.
#pragma once

#include <optional>

#include "dtypes.hpp"
#include "launch.hpp"
#include "perigee/capture.hpp"
#include "perigee/kernel.hpp"
#include "stream.hpp"

namespace cuda {

class Launch {
 public:
  explicit Launch(const pg_launch& raw) : raw(raw) {}
  Launch(const Launch&) = delete;
  const pg_launch& raw;

  Stream& stream() const { return stream_of(raw.stream); }
  cudaStream_t native() const { return stream().native; }
  bool has(uint32_t i) const { return i < raw.input_count && raw.input[i].buffer != 0; }
  template <class T = void>
  const T* in(uint32_t i) const {
    return pointer<const T>(raw.input[i]);
  }
  template <class T = void>
  T* out(uint32_t i) const {
    return pointer<T>(raw.output[i]);
  }
  // An input that the operator MUTATES.
  template <class T = void>
  T* mutated(uint32_t i) const {
    return pointer<T>(raw.input[i]);
  }
  template <class T = void>
  T* workspace() const {
    return pointer<T>(raw.workspace);
  }
  // Runs a kernel on the stream.
  template <class... P, class... A>
  void operator()(const Grid& grid, void (*kernel)(P...), A&&... arguments) const {
    launch(native(), grid, kernel, std::forward<A>(arguments)...);
  }
  // For kernels that are launched with it, before this object goes. axis: from 1, whose index it is that may be out of
  // range.
  FaultSite fault_site(FaultKind kind, int64_t limit, const pg_tensor& positions, uint32_t axis = 0) const {
    if (runtime_block != nullptr) pg::fail(PG_E_INTERNAL, "a launch that notes faults says that it renews its numbers");
    Stream& own = stream();
    if (own.is_capturing())
      own.captured_faulty = true;
    else if (!watched_)
      watched_.emplace(*own.watch);
    FaultSite site = own.fault_site(kind, raw.sequence, limit, positions);
    site.axis = axis;
    return site;
  }

 private:
  template <class T>
  static T* pointer(pg_address at) {
    return at.buffer == 0 ? nullptr : reinterpret_cast<T*>(at.buffer + at.offset);
  }
  mutable std::optional<FaultWatched> watched_;
};

class Kernel : public pg::CapturedKernel {
 public:
  void launch(const pg_launch& call) final {
    use_device(call.device);
    run(Launch(call));
  }
  // It queues work and does nothing else (README.md), so it can be captured.
  void launch_captured(const pg_launch& call, pg_address at) final {
    if (at.buffer == 0) return launch(call);
    RuntimeBlock block;
    block.device = reinterpret_cast<char*>(at.buffer + at.offset);
    InBlock in(&block);
    launch(call);
  }
  uint64_t runtime(const pg_launch& call, void* image) final {
    if (!renews()) return 0;
    use_device(call.device);
    BlockHead head;
    if (image != nullptr) std::memcpy(&head, image, sizeof head);
    if (head.bytes == 0) {  // so much is wanted, and nothing is written yet
      RuntimeBlock size = dry_run(call, nullptr, 0);
      if (image == nullptr) return size.bytes;
      head = {size.work, size.bytes};
    }
    RuntimeBlock block = dry_run(call, static_cast<char*>(image), head.bytes);
    if (block.work != head.work || block.bytes != head.bytes)
      pg::fail(PG_E_FAILED_PRECONDITION, "other kernels compute with these numbers than those that were captured");
    std::memcpy(image, &head, sizeof head);
    return block.bytes;
  }
  virtual void run(const Launch& launch) = 0;
  // Whether all that run() makes of run-time attributes is in functors that kernels find renewed (runtime_block.hpp).
  // It does nothing then but launch kernels, copy_tensor and fill_tensor, and notes no faults. Others are captured with
  // the numbers that they have.
  virtual bool renews() const { return false; }

 private:
  RuntimeBlock dry_run(const pg_launch& call, char* image, uint64_t room) {
    RuntimeBlock block;
    block.image = image;
    block.room = room;
    InBlock in(&block);
    run(Launch(call));
    return block;
  }
};

// What the inputs and outputs of a kernel may be; for supports().
constexpr uint32_t kFloats = PG_M_FLOAT, kNumbers = PG_M_FLOAT | PG_M_INT, kAny = kNumbers | PG_M_BOOL;

// Throws PG_E_NOT_SUPPORTED for other dtypes, and for tensors that strides do not describe.
inline void check_dtypes(const pg::KernelCall& call, uint32_t mask) {
  auto check = [&](const pg_tensor& t) {
    if ((pg::dtype_class(pg::dtype_of(t)) & mask) == 0) {
      pg::fail_support(pg::format("CUDA has no %s for %s", call.op(), pg::dtype_name(pg::dtype_of(t))));
    }
    if (t.layout != 0 || t.class_id != PG_CLASS_DENSE) pg::fail_support("tensors of a private layout are not read");
  };
  for (uint32_t i = 0; i < call.input_count(); i++) {
    if (call.has(i)) check(call.in(i));
  }
  for (uint32_t i = 0; i < call.output_count(); i++) {
    if (call.has_output(i)) check(call.out(i));
  }
}

}  // namespace cuda
