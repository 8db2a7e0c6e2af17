// SPDX-License-Identifier: Apache-2.0
// How kernels of the simulated accelerator are written: a function over host operands, run later by a stream's thread.
//
//   void softmax(const Work& work) { reference::softmax(work.in(0), work.axis("axis", 0), work.out(0)); }
//   PG_SIM_KERNEL("softmax", softmax, kFloats);
//
// launch copies all that the function will need, since a pg_launch and its kernel may be gone when the thread gets
// there.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "memory.hpp"
#include "perigee/capture.hpp"
#include "perigee/kernel.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace sim {

using pg::reference::Operand;

// What the inputs and outputs of a kernel may be; complex never.
constexpr uint32_t kFloats = PG_M_FLOAT, kNumbers = PG_M_FLOAT | PG_M_INT, kAny = kNumbers | PG_M_BOOL,
                   kStored = kAny | PG_M_FLOAT8;

class Work {
 public:
  Work(const pg_op_info* op, const pg_launch& launch, pg_address runtime);

  // By flat position; absent and empty ones have no data, absent ones are false.
  const Operand& in(size_t i) const { return in_[i]; }
  const Operand& out(size_t i) const { return out_[i]; }
  // By declared position: the tensors of a variadic input, or one or none; absent where there is none.
  std::vector<Operand> group(uint32_t declared) const;
  Operand input(uint32_t declared) const;
  const std::vector<Operand>& outputs() const { return out_; }
  Operand output(size_t i) const { return i < out_.size() ? out_[i] : Operand(); }

  template <class T>
  T attr(const char* name) const {
    const pg_attr_info& info = pg::find_attr(*op_, name);
    return pg::read_attr<T>(attrs_.data(), info.kind, info.offset);
  }
  bool has_attr(const char* name) const;
  std::string choice(const char* name) const;  // the chosen name
  int64_t axis(const char* name, int64_t rank) const;
  uint32_t axes(const char* name, int64_t rank) const;  // a mask; an empty list names all
  std::vector<int64_t> list(const char* name) const;
  pg_scalar scalar() const;  // the number that stands in for an input
  pg_number scalar_value() const;

  // What attributes are read from. Of a captured launch the run-time part is there once `renew` has read it from the
  // device, as the work has to do each time that it runs.
  const void* attrs() const { return attrs_.data(); }
  void renew();
  const char* op() const { return op_->name; }
  std::vector<Touch> touches() const;                                         // of the bytes that it reads and writes
  void publish(size_t output, std::initializer_list<int64_t> extents) const;  // of a dynamic output

 private:
  const pg_op_info* op_;
  std::vector<Operand> in_, out_;
  std::vector<uint32_t> groups_;
  std::vector<std::byte> attrs_;
  int64_t* extents_;
  std::vector<Use> uses_;        // of inputs, then of outputs; what a captured launch reads of its attributes is last
  std::vector<uint8_t> writes_;  // by use
  bool captured_ = false;
};

void check_dtypes(const pg::KernelCall& call, uint32_t dtypes);
// runtime: of a captured launch, where it finds its run-time attributes; else buffer 0.
void launch(const pg_op_info* op, const pg_launch& launch, pg_address runtime, std::function<void(const Work&)> run);
// What a captured launch reads: the run-time attributes as they are.
uint64_t put_runtime(const pg_op_info& op, const pg_launch& launch, void* block);

// `also`: a kernel's own conditions, thrown as pg::Error.
template <void (*Run)(const Work&), uint32_t Dtypes, void (*Also)(const pg::KernelCall&) = nullptr>
class SimKernel : public pg::CapturedKernel {
 public:
  static void supports(const pg::KernelCall& call) {
    check_dtypes(call, Dtypes);
    if constexpr (Also != nullptr) Also(call);
  }
  SimKernel(const pg::KernelCall& call, pg::Plan&) : op_(call.raw->op) {}
  void launch(const pg_launch& call) override { sim::launch(op_, call, {0, 0}, Run); }
  void launch_captured(const pg_launch& call, pg_address block) override { sim::launch(op_, call, block, Run); }
  uint64_t runtime(const pg_launch& call, void* block) override { return put_runtime(*op_, call, block); }

 private:
  const pg_op_info* op_;  // lives as long as the process
};

}  // namespace sim

// `spares`: the mask of hidden outputs that the kernel can leave out.
#define PG_SIM_SPARING_KERNEL(op, spares, ...)                           \
  [[maybe_unused]] static const int PG_CONCAT(pg_kernel_, __COUNTER__) = \
      pg::add_kernel<sim::SimKernel<__VA_ARGS__>>(op, 0, 0, spares)
#define PG_SIM_KERNEL(op, ...) PG_SIM_SPARING_KERNEL(op, 0, __VA_ARGS__)
