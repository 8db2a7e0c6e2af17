// SPDX-License-Identifier: Apache-2.0
// Opens the plugin the way a host does, and runs kernels over made-up schemas.
#pragma once

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace test {

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

struct Tensor {
  uint32_t dtype = PG_F32;
  Shape shape;
  Values values;  // row-major
};

inline Tensor f32(Shape shape, Values values) { return {PG_F32, std::move(shape), std::move(values)}; }
inline Tensor i64(Shape shape, Values values) { return {PG_I64, std::move(shape), std::move(values)}; }
inline Tensor out(uint32_t dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

struct Attr {
  std::string name;
  uint32_t kind;
  double number = 0;
  Shape list;
  std::vector<const char*> choices;
};

inline Attr integer(const char* name, int64_t value) { return {name, PG_ATTR_INT, static_cast<double>(value), {}, {}}; }
inline Attr real(const char* name, double value) { return {name, PG_ATTR_FLOAT, value, {}, {}}; }
inline Attr flag(const char* name, bool value) { return {name, PG_ATTR_BOOL, value ? 1.0 : 0.0, {}, {}}; }
inline Attr axis(const char* name, int64_t value) { return {name, PG_ATTR_AXIS, static_cast<double>(value), {}, {}}; }
inline Attr list(const char* name, Shape values) { return {name, PG_ATTR_INTS, 0, std::move(values), {}}; }
inline Attr choice(const char* name, std::vector<const char*> names, int index) {
  return {name, PG_ATTR_CHOICE, static_cast<double>(index), {}, std::move(names)};
}

// One operator call. Inputs come in groups; `dynamic` outputs publish extents.
struct Operation {
  std::string op;
  std::vector<std::vector<Tensor>> inputs;
  std::vector<Attr> attrs;
  std::vector<Tensor> outputs;
  bool dynamic = false;
  bool writes_inputs = false;  // results are the inputs afterwards
  uint32_t meta_input = 99;    // declared position of an input that only gives its shape
};

struct Code {  // of a table call
  int32_t code;
  pg_error error;
  std::string message() const { return error.message; }
};

struct Setting {  // "JITTER" stands for PERIGEE_SIM_JITTER
  const char *name, *value;
};

class Sim {
 public:
  explicit Sim(std::initializer_list<Setting> settings = {});
  Sim(const Sim&) = delete;
  ~Sim();

  template <class F, class... A>
  Code call(F function, A... arguments) {
    Code out{0, pg::make_error()};
    out.code = function(self, arguments..., &out.error);
    return out;
  }
  // As above; fails the test unless PG_OK.
  template <class F, class... A>
  void ok(F function, A... arguments) {
    Code out = call(function, arguments...);
    INFO(out.message());
    REQUIRE(out.code == PG_OK);
  }

  uint64_t alloc(uint64_t bytes, uint32_t on = 0);
  uint64_t stream(uint32_t on = 0);
  uint64_t event(uint32_t on = 0);
  void upload(uint64_t buffer, const void* from, uint64_t bytes, uint64_t stream, uint32_t on = 0);
  void download(void* to, uint64_t buffer, uint64_t bytes, uint64_t stream, uint32_t on = 0);
  // Keeps a stream occupied for some milliseconds.
  void occupy(uint64_t stream, uint32_t on = 0);

  int kernel(const std::string& op) const;  // its index, or -1
  // Runs on a stream of its own and waits; results hold values (extents cut dynamic outputs).
  std::vector<Tensor> run(const Operation& operation);
  // The same; what failed, at once or at the synchronisation.
  Code try_run(const Operation& operation, std::vector<Tensor>* results = nullptr);

  void* self = nullptr;
  const pg_device* device = nullptr;
  const pg_kernels* kernels = nullptr;
  uint64_t sequence = 0;

 private:
  std::vector<std::pair<uint32_t, uint64_t>> buffers_, streams_, events_;
};

const pg_plugin& library();  // the plugin's entry
const pg_host& fake_host();

// One result, compared with tolerance.
void check(const Tensor& result, const Values& expected, double tolerance = 1e-6);

}  // namespace test
