// SPDX-License-Identifier: Apache-2.0
// Opens a plugin as a host does, and asks it everything through its tables. Operators are those of the ops plugin.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perigee/kernels/reference/operand.hpp"
#include "perigee/plugin.hpp"

namespace contract {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

struct Code {  // of a table call
  int32_t code = PG_OK;
  pg_error error = pg::make_error();
  std::string message() const { return error.message; }
};

const pg_host& host();
// Receives what plugins log; NULL: nobody does.
inline void (*on_log)(int32_t level, const char* message) = nullptr;
// The entry of a library; throws with the loader's reason.
const pg_plugin& load(const std::string& path);
const pg_op_info* find_op(const std::string& name);  // NULL: there is none
const std::vector<const pg_op_info*>& all_ops();

// A tensor as numbers and a description. Strides may leave gaps; 0 where broadcast.
struct Tensor {
  uint32_t dtype = 0;  // 0: absent
  Shape shape, stride;
  Values values;       // row-major
  int64_t offset = 0;  // elements in front
  bool kept = false;   // written into: what it holds afterwards counts

  Tensor() = default;
  Tensor(uint32_t dtype, Shape shape, Values values = {})
      : dtype(dtype), shape(std::move(shape)), stride(pg::reference::dense(this->shape)), values(std::move(values)) {}
  int64_t count() const { return pg::reference::product(shape); }
  int64_t span() const;  // elements from the buffer's start to behind the last
};

struct Call {
  const pg_op_info* op = nullptr;
  std::vector<Tensor> inputs;    // flat
  std::vector<uint32_t> groups;  // empty: one each
  std::vector<char> attrs;
  bool lean = false;      // without the hidden outputs that the kernel spares
  bool captured = false;  // as a plan: recorded first, then launched

  explicit Call(const std::string& name);
  Call& in(Tensor tensor);
  Call& set(const char* name, double value);
  Call& set(const char* name, const Shape& list);
};

class Plugin {
 public:
  explicit Plugin(const std::string& path);
  Plugin(const Plugin&) = delete;
  ~Plugin();  // destroys what the methods below made, and closes; fails the test if that fails

  template <class F, class... A>
  Code call(F function, A... arguments) {
    Code out;
    out.code = function(self, arguments..., &out.error);
    return out;
  }
  // As above; fails the test unless PG_OK.
  template <class F, class... A>
  void ok(F function, A... arguments) {
    Code out = call(function, arguments...);
    INFO(out.error.where << ": " << out.message());
    REQUIRE(out.code == PG_OK);
  }
  uint32_t count(std::string* reason = nullptr);
  uint64_t alloc(uint64_t bytes, uint32_t on = 0);
  uint64_t stream(uint32_t on = 0);
  uint64_t event(uint32_t on = 0);
  void upload(uint64_t buffer, const void* from, uint64_t bytes, uint64_t stream, uint32_t on = 0);
  void download(void* to, uint64_t buffer, uint64_t bytes, uint64_t stream, uint32_t on = 0);
  void sync(uint64_t stream, uint32_t on = 0) { ok(device->stream_sync, on, stream); }
  void free(uint64_t buffer, uint32_t on = 0);
  bool synchronous();  // everything has happened when a call returns
  bool captures() const { return PG_HAS(device, pg_device, plan_destroy) && device->capture_begin != nullptr; }

  int kernel(const std::string& op) const;                   // its index, or -1
  bool spares(const pg_op_info& op, uint32_t output) const;  // whether its kernel can leave a hidden output out
  // Runs on a stream of its own and waits. Results: the outputs, or the inputs that are `kept`. What failed first.
  Code try_run(const Call& call, std::vector<Tensor>* results = nullptr);
  std::vector<Tensor> run(const Call& call);

  void* self = nullptr;
  const pg_device* device = nullptr;
  const pg_kernels* kernels = nullptr;
  uint64_t sequence = 0;

 private:
  Code launch(const Call& call, uint32_t kernel, void* prepared, const pg_launch& launch);
  const pg_plugin& entry_;
  std::vector<std::pair<uint32_t, uint64_t>> buffers_, streams_, events_;
};

// A tensor's description over its own shape and strides.
pg_tensor describe(const Tensor& tensor, uint64_t buffer = 0);
// Numbers as the dtype holds them, and back.
std::vector<char> to_bytes(const Tensor& tensor);
Values from_bytes(const Tensor& tensor, const std::vector<char>& bytes);

}  // namespace contract
