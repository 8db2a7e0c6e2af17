// SPDX-License-Identifier: Apache-2.0
// Hidden outputs that nobody will read are left out where the kernel can do without them (pg_kernel_info.spares).
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/parallel.hpp"
#include "builder/builder.hpp"
#include "call/signature.hpp"
#include "device/fake_device.hpp"
#include "registry/registry.hpp"
#include "tape/tape.hpp"

using namespace perigee;
using namespace perigee::test;

namespace {
namespace lean_calls {  // files are compiled together

// Which outputs a kernel was given, in order: "1101".
struct Seen {
  std::vector<std::string> prepared, launched;
};
Seen seen;

int32_t infer(const pg_infer* call, pg_error*) {
  const pg_tensor& x = *call->inputs[0];
  for (uint32_t i = 0; i < call->output_count; i++) {
    pg_meta& m = *call->outputs[i];
    m.dtype_code = x.dtype_code, m.dtype_bits = x.dtype_bits, m.rank = x.rank;
    std::copy_n(x.shape, x.rank, m.shape);
  }
  return PG_OK;
}

int32_t supports(void*, uint32_t, const pg_call*, pg_error*) { return PG_OK; }
int32_t prepare(void*, uint32_t, const pg_call* call, pg_prepared*, pg_error*) {
  std::string given;
  for (uint32_t i = 0; i < call->output_count; i++) given += call->outputs[i] != nullptr ? '1' : '0';
  seen.prepared.push_back(given);
  return PG_OK;
}
int32_t launch(void*, uint32_t, void*, const pg_launch* launch, pg_error*) {
  std::string given;
  for (uint32_t i = 0; i < launch->output_count; i++) {
    bool described = launch->outputs[i] != nullptr, placed = launch->output[i].buffer != 0;
    given += described != placed ? '?' : described ? '1' : '0';
  }
  seen.launched.push_back(given);
  return PG_OK;
}
void release(void*, uint32_t, void*) {}

const pg_input_info x_info{PG_SIZE(pg_input_info, doc), 0, PG_M_ANY, 0, "x", "", nullptr};
const pg_input_info more_info{PG_SIZE(pg_input_info, doc), PG_INPUT_VARIADIC, PG_M_ANY, 0, "more", "", nullptr};
const pg_input_info* const inputs[] = {&x_info, &more_info};
const pg_output_info y_info{PG_SIZE(pg_output_info, doc), 0, 0, 0, "y", ""};
const pg_output_info mask_info{PG_SIZE(pg_output_info, doc), PG_OUTPUT_HIDDEN, 0, 0, "mask", ""};
const pg_output_info each_info{PG_SIZE(pg_output_info, doc), PG_OUTPUT_HIDDEN | PG_OUTPUT_VARIADIC, 1, 0, "each", ""};
const pg_output_info last_info{PG_SIZE(pg_output_info, doc), PG_OUTPUT_HIDDEN, 0, 0, "last", ""};
const pg_output_info* const outputs[] = {&y_info, &mask_info, &each_info, &last_info};

pg_op_info schema(const char* name) {
  pg_op_info info{};
  info.size = PG_SIZE(pg_op_info, write_back);
  info.traits = PG_OP_IN_PLACE;
  info.name = name, info.doc = "", info.category = "test";
  info.input_count = 2, info.output_count = 4;
  info.inputs = inputs, info.outputs = outputs;
  info.infer = infer;
  return info;
}

// Operators of x and two more: y, then hidden ones: a mask, one like each of the two, a last one. `lean_variadic` can
// spare the middle two, of which it is asked by declared position, and says so of y too, which means nothing.
struct Plugin {
  Plugin() {
    lean = schema("lean_variadic"), full = schema("lean_never"), varies = schema("lean_varies");
    plugin.name = "lean_call_test";
    plugin.ops = &ops;
    plugin.kernels = &kernels;
    register_tables(&plugin);
    other.name = "lean_call_test_async";
    other.kernels = &others;
    register_tables(&other);
  }
  LoadedPlugin plugin, other;
  pg_op_info lean, full, varies;
  const pg_op_info* list[3] = {&lean, &full, &varies};
  pg_ops ops{PG_SIZE(pg_ops, ops), 3, list};
  const pg_kernel_info lean_info{PG_SIZE(pg_kernel_info, spares), 0, "lean_variadic", 0, 1u << 0 | 1u << 2};
  const pg_kernel_info full_info{PG_SIZE(pg_kernel_info, spares), 0, "lean_never", 0, 0};
  const pg_kernel_info varies_info{PG_SIZE(pg_kernel_info, spares), PG_KERNEL_VARIES, "lean_varies", 0, 0};
  const pg_kernel_info* infos[3] = {&lean_info, &full_info, &varies_info};
  pg_kernels kernels{PG_SIZE(pg_kernels, release), 3, "lean_sync", infos, supports, prepare, launch, release, nullptr};
  pg_kernels others{PG_SIZE(pg_kernels, release), 3, "lean_async", infos, supports, prepare, launch, release, nullptr};
};

const Op& op_named(const char* name) {
  static Plugin& plugin = *new Plugin;
  (void)plugin;
  return *find_op(name);
}

// Calls of one operator over tensors of a size of the test's own, so that each begins without signatures.
struct Calls {
  Calls(const char* name, bool synchronous) : op(op_named(name)) {
    FakeOptions options;
    options.synchronous = synchronous;
    options.type = synchronous ? "lean_sync" : "lean_async";
    static std::vector<std::unique_ptr<FakePlugin>> plugins;  // signatures of theirs are kept
    static std::vector<std::unique_ptr<Device>> devices;
    plugins.push_back(std::make_unique<FakePlugin>(options));
    devices.push_back(make_device(*plugins.back()));
    int64_t shape[] = {3};
    for (TensorRef& x : x) x = make_dense(*devices.back(), intern_meta(PG_F32, 1, shape));
    seen = {};
  }
  // What the kernel was given.
  std::string run(uint32_t output_count = 1, uint32_t flags = 0) {
    const uint32_t groups[] = {1, 2};
    Tensor* raw[] = {x[0].get(), x[1].get(), x[2].get()};
    made.assign(5, nullptr);
    call(op, raw, 3, groups, nullptr, flags, made.data(), output_count);
    return seen.launched.back();
  }
  const Op& op;
  TensorRef x[3];
  std::vector<TensorRef> made;
};

using Strings = std::vector<std::string>;

}  // namespace lean_calls
}  // namespace

using lean_calls::Calls, lean_calls::seen, lean_calls::Strings;

TEST_CASE("hidden outputs that nobody reads are left out, by declared position") {
  Calls calls("lean_variadic", GENERATE(true, false));
  CHECK(calls.run() == "11001");
  CHECK(calls.made[0]);
  CHECK(calls.run() == "11001");
  CHECK(seen.prepared == Strings{"11001"});
  CHECK(seen.launched.size() == 2);
}

TEST_CASE("a call that is recorded has all its outputs, before and after one that is not") {
  Calls calls("lean_variadic", GENERATE(true, false));
  set_requires_grad(*calls.x[1], true);
  CHECK(calls.run() == "11111");
  CHECK(calls.made[0]->node);
  {
    Scoped<bool> off(ambient().grad_enabled, false);
    CHECK(calls.run() == "11001");
    CHECK_FALSE(calls.made[0]->node);
  }
  CHECK(calls.run() == "11111");
  CHECK(calls.made[0]->node->outputs.size() == 5);
  set_requires_grad(*calls.x[1], false);
  CHECK(calls.run() == "11001");
  CHECK_FALSE(calls.made[0]->node);
  CHECK(seen.prepared == Strings{"11111", "11001"});
}

TEST_CASE("hidden outputs that are asked for are there") {
  Calls calls("lean_variadic", GENERATE(true, false));
  CHECK(calls.run(5) == "11111");
  for (const TensorRef& y : calls.made) CHECK(y);
  CHECK(calls.run(2) == "11111");
  CHECK(calls.run(1) == "11001");
}

TEST_CASE("in place hidden outputs are left out too") {
  Calls calls("lean_variadic", GENERATE(true, false));
  const uint64_t version = calls.x[0]->storage->version;
  CHECK(calls.run(1, emit_in_place) == "11001");
  CHECK(calls.made[0].get() == calls.x[0].get());
  CHECK(calls.x[0]->storage->version == version + 1);
  set_requires_grad(*calls.x[2], true);
  CHECK(calls.run(1, emit_in_place) == "11111");
}

TEST_CASE("a kernel that does not say that it can spare them has all outputs") {
  Calls calls("lean_never", GENERATE(true, false));
  CHECK(calls.run() == "11111");
  set_requires_grad(*calls.x[0], true);
  CHECK(calls.run() == "11111");
}

TEST_CASE("a kernel whose results vary is not asked while everything is to be deterministic") {
  Calls calls("lean_varies", GENERATE(true, false));
  CHECK(calls.run() == "11111");
  struct Deterministic {
    Deterministic() { set_deterministic(true), clear_signatures(); }
    ~Deterministic() { set_deterministic(false), clear_signatures(); }
  };
  {
    Deterministic on;
    CHECK_THROWS_WITH(calls.run(), Catch::Contains("lean_call_test") && Catch::Contains("vary"));
    CHECK(seen.launched.size() == 1);
  }
  CHECK(calls.run() == "11111");
}
