// SPDX-License-Identifier: Apache-2.0
// What every kernel that uses oneDNN shares: its engine and stream, descriptions of tensors, and a primitive that is
// made once (at prepare) and executed with addresses (at launch).
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg::cpu::onednn {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using DataType = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

const dnnl::engine& engine();

// Turns a status into a pg::Error that names `what`.
void check(dnnl_status_t status, const char* what);

// Calls body() and turns oneDNN's exceptions into pg::Error.
template <class Body>
auto translate(const char* what, Body&& body) {
  try {
    return body();
  } catch (const dnnl::error& e) {
    check(e.status, what);
    throw;
  }
}

DataType data_type(uint32_t dtype);  // undef for what oneDNN does not have

// A tensor's own layout: its shape and strides.
Desc strided(const pg_tensor& t);
// Row-major and channels-last of `dims`.
Desc dense(const Dims& dims, DataType type);
Desc channels_last(const Dims& dims, DataType type);
Desc any(const Dims& dims, DataType type);

// Scratch memory comes from the host, so primitives must not allocate their own.
dnnl::primitive_attr user_scratchpad();

// Whether `pd` is an implementation worth running: oneDNN offers "ref:any" where it has no kernel.
bool is_fast(const dnnl::primitive_desc_base& pd);

// Whether oneDNN's kernels for a dtype use arithmetic that the processor has: where it has none for bfloat16, they
// widen it on the way and take several times as long as float32's.
bool computes(uint32_t dtype);

// Whether this processor has AVX-512 and oneDNN may use it, or PERIGEE_CPU_ISA says so.
bool has_avx512();

// Multiplications that take one thread less time than a second one may take to wake.
constexpr int64_t kSmallWork = int64_t{1} << 19;

// While it lives, what oneDNN is asked for on this thread runs on this thread alone.
class OneThread {
 public:
  explicit OneThread(bool wanted);
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = 0;  // 0: nothing to restore
};

// A primitive and the memory objects of its arguments.
class Step {
 public:
  struct Argument {
    int id;
    Desc desc;
  };
  Step() = default;
  Step(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);
  // Addresses in the order of `arguments`.
  void run(const std::vector<void*>& addresses);

 private:
  // Memory objects, which hold a launch's addresses.
  struct Memories {
    explicit Memories(const std::vector<Argument>& arguments);
    void set(const std::vector<void*>& addresses);
    std::vector<dnnl::memory> list;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  std::unique_ptr<Memories> memories_;
  // Held by the launch that has `memories_`: one that comes meanwhile, from another thread, makes its own. Behind a
  // pointer: a Step is moved into its kernel.
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
};

// Copies from one layout to another by oneDNN.
class Reorder {
 public:
  Reorder() = default;
  Reorder(const Desc& from, const Desc& to);
  uint64_t workspace() const { return scratch_; }
  void run(const void* from, void* to, void* scratch);

 private:
  uint64_t scratch_ = 0;
  Step step_;
};

}  // namespace pg::cpu::onednn
