// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

namespace contract {
namespace {

using pg::reference::Operand;

void pass_log(void*, int32_t level, const char* message) {
  if (on_log != nullptr) on_log(level, message);
}
void inline_for(void*, int64_t count, int64_t, void (*body)(void*, int64_t, int64_t), void* argument) {
  if (count > 0) body(argument, 0, count);
}
int32_t one_thread(void*) { return 1; }
int32_t dim_equal(void*, int64_t a, int64_t b) { return a == b; }
int64_t dim_add(void*, int64_t a, int64_t b) { return a + b; }
int64_t dim_mul(void*, int64_t a, int64_t b) { return a * b; }
int64_t dim_div(void*, int64_t a, int64_t b) { return a / b; }
int64_t dim_max(void*, int64_t a, int64_t b) { return std::max(a, b); }

int32_t op_find(void*, const char* name, uint32_t* op, const pg_op_info** info, pg_error* error) {
  const auto& ops = all_ops();
  for (size_t i = 0; i < ops.size(); i++) {
    if (std::strcmp(ops[i]->name, name) != 0) continue;
    *op = static_cast<uint32_t>(i), *info = ops[i];
    return PG_OK;
  }
  return pg::set_error(error, PG_E_NOT_FOUND, "op_find", name);
}

std::vector<pg_meta> infer(const Call& call, const std::vector<const pg_tensor*>& inputs,
                           const std::vector<uint32_t>& groups) {
  std::vector<pg_meta> metas;
  for (uint32_t i = 0; i < call.op->output_count; i++) {
    const pg_output_info& output = *call.op->outputs[i];
    size_t count = (output.flags & PG_OUTPUT_VARIADIC) != 0 ? groups[output.like] : 1;
    metas.resize(metas.size() + count);
  }
  std::vector<pg_meta*> pointers;
  for (pg_meta& meta : metas) {
    meta.size = PG_SIZE(pg_meta, offset);
    pointers.push_back(&meta);
  }
  pg_infer request{};
  request.size = PG_SIZE(pg_infer, outputs);
  request.user = call.op->user;
  request.input_count = static_cast<uint32_t>(inputs.size());
  request.output_count = static_cast<uint32_t>(metas.size());
  request.inputs = inputs.data();
  request.groups = groups.data();
  request.attrs = call.attrs.data();
  request.outputs = pointers.data();
  Code code;
  code.code = call.op->infer(&request, &code.error);
  INFO(call.op->name << ": " << code.message());
  REQUIRE(code.code == PG_OK);
  return metas;
}

}  // namespace

const pg_host& host() {
  static const pg_host table = [] {
    pg_host h{};
    h.size = PG_SIZE(pg_host, device_of);
    h.abi_minor = PG_ABI_MINOR;
    h.log = pass_log;
    h.parallel_for = inline_for;
    h.thread_count = one_thread;
    h.dim_equal = dim_equal;
    h.dim_add = dim_add;
    h.dim_mul = dim_mul;
    h.dim_div = dim_div;
    h.dim_max = dim_max;
    h.op_find = op_find;
    return h;
  }();
  return table;
}

// Where the plugin lies: a build that was carried elsewhere has it in PERIGEE_PLUGIN_PATH, or beside this program.
static std::string locate(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::exists(path)) return path;
  const char* folder = std::getenv("PERIGEE_PLUGIN_PATH");
  fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  return (folder != nullptr ? fs::path(folder) : program / "../../lib/perigee/plugins") / fs::path(path).filename();
}

const pg_plugin& load(const std::string& wanted) {
  std::string path = locate(wanted);
  static std::map<std::string, const pg_plugin*> loaded;
  const pg_plugin*& entry = loaded[path];
  if (entry == nullptr) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    entry = static_cast<const pg_plugin*>(dlsym(handle, "pg_plugin_v1"));
    if (entry == nullptr) throw std::runtime_error(path + " exports no pg_plugin_v1");
  }
  return *entry;
}

const std::vector<const pg_op_info*>& all_ops() {
  static const auto list = [] {
    const pg_plugin& plugin = load(OPS_PLUGIN);
    void* self = nullptr;
    Code code;
    code.code = plugin.open(&host(), &self, &code.error);
    if (code.code != PG_OK) throw std::runtime_error(code.message());
    auto* ops = static_cast<const pg_ops*>(plugin.iface(self, PG_IFACE_OPS));
    return std::vector<const pg_op_info*>(ops->ops, ops->ops + ops->count);
  }();
  return list;
}

const pg_op_info* find_op(const std::string& name) {
  for (const pg_op_info* op : all_ops()) {
    if (name == op->name) return op;
  }
  return nullptr;
}

// ---- tensors ----

int64_t Tensor::span() const {
  if (count() == 0) return offset;
  int64_t last = offset;
  for (size_t i = 0; i < shape.size(); i++) last += (shape[i] - 1) * stride[i];
  return last + 1;
}

pg_tensor describe(const Tensor& t, uint64_t buffer) {
  pg_tensor out{};
  out.size = PG_SIZE(pg_tensor, components);
  out.dtype_code = static_cast<uint16_t>(t.dtype >> 16), out.dtype_bits = static_cast<uint16_t>(t.dtype & 0xffff);
  out.rank = static_cast<uint32_t>(t.shape.size());
  out.shape = t.shape.data(), out.stride = t.stride.data();
  out.buffer = buffer;
  out.offset = static_cast<uint64_t>(t.offset * pg::dtype_bytes(t.dtype));
  return out;
}

// Gaps are filled with ones in every bit, so that reading them shows.
std::vector<char> to_bytes(const Tensor& t) {
  std::vector<char> bytes(static_cast<size_t>(t.span() * pg::dtype_bytes(t.dtype)), static_cast<char>(0xff));
  pg_tensor meta = describe(t);
  if (t.count() > 0 && !t.values.empty()) pg::reference::write(Operand(meta, bytes.data() + meta.offset), t.values);
  return bytes;
}

Values from_bytes(const Tensor& t, const std::vector<char>& bytes) {
  if (t.count() == 0) return {};
  pg_tensor meta = describe(t);
  return pg::reference::read<double>(Operand(meta, const_cast<char*>(bytes.data()) + meta.offset));
}

// ---- calls ----

Call::Call(const std::string& name) : op(find_op(name)) {
  INFO("operator " << name);
  REQUIRE(op != nullptr);
  auto* from = static_cast<const char*>(op->defaults);
  attrs.assign(from, from + op->attr_size);
}

Call& Call::in(Tensor tensor) {
  inputs.push_back(std::move(tensor));
  return *this;
}

Call& Call::set(const char* name, double value) {
  for (uint32_t i = 0; i < op->attr_count; i++) {
    const pg_attr_info& a = *op->attrs[i];
    if (std::strcmp(a.name, name) != 0) continue;
    auto put = [&](auto number) { std::memcpy(attrs.data() + a.offset, &number, sizeof number); };
    if (a.kind == PG_ATTR_FLOAT) {
      put(value);
    } else if (a.kind == PG_ATTR_NUMBER) {
      put(pg::make_number(value));
    } else if (a.kind == PG_ATTR_INT || a.kind == PG_ATTR_AXIS) {
      put(static_cast<int64_t>(value));
    } else if (a.kind == PG_ATTR_DTYPE) {
      put(static_cast<uint32_t>(value));
    } else {
      put(static_cast<int32_t>(value));
    }
    return *this;
  }
  FAIL(op->name << " has no attribute " << name);
  return *this;
}

Call& Call::set(const char* name, const Shape& list) {
  for (uint32_t i = 0; i < op->attr_count; i++) {
    if (std::strcmp(op->attrs[i]->name, name) != 0) continue;
    pg_ints ints{static_cast<int64_t>(list.size()), {}};
    std::copy(list.begin(), list.end(), ints.value);
    std::memcpy(attrs.data() + op->attrs[i]->offset, &ints, sizeof ints);
    return *this;
  }
  FAIL(op->name << " has no attribute " << name);
  return *this;
}

// ---- plugins ----

Plugin::Plugin(const std::string& path) : entry_(load(path)) {
  Code code;
  code.code = entry_.open(&host(), &self, &code.error);
  if (code.code != PG_OK) throw std::runtime_error(code.message());
  device = static_cast<const pg_device*>(entry_.iface(self, PG_IFACE_DEVICE));
  kernels = static_cast<const pg_kernels*>(entry_.iface(self, PG_IFACE_KERNELS));
}

// In the order that plugin.h prescribes.
Plugin::~Plugin() {
  for (auto [on, handle] : streams_) call(device->stream_sync, on, handle);
  for (auto [on, handle] : buffers_) call(device->free, on, PG_MEMORY_DEVICE, handle);
  for (auto [on, handle] : events_) call(device->event_destroy, on, handle);
  for (auto [on, handle] : streams_) call(device->stream_destroy, on, handle);
  Code code;
  code.code = entry_.close(self, &code.error);
  INFO(code.message());
  CHECK(code.code == PG_OK);
}

uint32_t Plugin::count(std::string* reason) {
  uint32_t number = 0;
  Code code = call(device->count, &number);
  if (reason != nullptr) *reason = code.message();
  return code.code == PG_OK ? number : 0;
}

bool Plugin::synchronous() {
  pg_device_properties properties{};
  properties.size = PG_SIZE(pg_device_properties, reserved);
  ok(device->properties, 0u, &properties);
  return (properties.flags & PG_DEVICE_SYNCHRONOUS) != 0;
}

uint64_t Plugin::alloc(uint64_t bytes, uint32_t on) {
  uint64_t buffer = 0;
  ok(device->alloc, on, PG_MEMORY_DEVICE, bytes, &buffer);
  buffers_.push_back({on, buffer});
  return buffer;
}

void Plugin::free(uint64_t buffer, uint32_t on) {
  buffers_.erase(std::find(buffers_.begin(), buffers_.end(), std::make_pair(on, buffer)));
  ok(device->free, on, PG_MEMORY_DEVICE, buffer);
}

uint64_t Plugin::stream(uint32_t on) {
  uint64_t handle = 0;
  ok(device->stream_create, on, &handle);
  streams_.push_back({on, handle});
  return handle;
}

uint64_t Plugin::event(uint32_t on) {
  uint64_t handle = 0;
  ok(device->event_create, on, &handle);
  events_.push_back({on, handle});
  return handle;
}

void Plugin::upload(uint64_t buffer, const void* from, uint64_t bytes, uint64_t stream, uint32_t on) {
  ok(device->upload, on, buffer, uint64_t{0}, from, bytes, stream, ++sequence);
}

void Plugin::download(void* to, uint64_t buffer, uint64_t bytes, uint64_t stream, uint32_t on) {
  ok(device->download, on, to, buffer, uint64_t{0}, bytes, stream, ++sequence);
}

int Plugin::kernel(const std::string& op) const {
  for (uint32_t i = 0; i < kernels->count; i++) {
    if (op == kernels->kernels[i]->op) return static_cast<int>(i);
  }
  const pg_op_info* info = find_op(op);
  for (uint32_t i = 0; info != nullptr && info->scalar != nullptr && i < kernels->count; i++) {
    if ((kernels->kernels[i]->flags & PG_KERNEL_SCALAR) != 0) return static_cast<int>(i);
  }
  return -1;
}

bool Plugin::spares(const pg_op_info& op, uint32_t output) const {
  const pg_kernel_info& info = *kernels->kernels[kernel(op.name)];
  bool hidden = (op.outputs[output]->flags & PG_OUTPUT_HIDDEN) != 0;
  return hidden && PG_HAS(&info, pg_kernel_info, spares) && (info.spares >> output & 1u) != 0;
}

// A captured call is a plan of this one launch. A kernel that cannot be captured says so here or at the capture's end.
Code Plugin::launch(const Call& how, uint32_t at, void* prepared, const pg_launch& launch) {
  if (!how.captured) return call(kernels->launch, at, prepared, &launch);
  ok(device->capture_begin, 0u, launch.stream);
  Code launched = call(kernels->launch, at, prepared, &launch);
  uint64_t plan = 0;
  Code ended = call(device->capture_end, 0u, launch.stream, &plan);
  if (launched.code != PG_OK || ended.code != PG_OK) {
    if (ended.code == PG_OK) ok(device->plan_destroy, 0u, plan);
    return launched.code != PG_OK ? launched : ended;
  }
  ok(device->plan_launch, 0u, plan, launch.stream, ++sequence);
  Code synced = call(device->stream_sync, 0u, launch.stream);
  ok(device->plan_destroy, 0u, plan);
  return synced;
}

Code Plugin::try_run(const Call& call_info, std::vector<Tensor>* results) {
  std::vector<Tensor> tensors = call_info.inputs;
  size_t input_count = tensors.size();
  std::vector<uint32_t> groups = call_info.groups;
  if (groups.empty()) groups.assign(call_info.op->input_count, 1);

  std::vector<pg_tensor> metas;
  for (const Tensor& t : tensors) metas.push_back(describe(t));
  std::vector<const pg_tensor*> inputs, outputs;
  for (size_t i = 0; i < input_count; i++) inputs.push_back(tensors[i].dtype == 0 ? nullptr : &metas[i]);
  // Whether there is a kernel is known before there is memory.
  int found = kernel(call_info.op->name);
  INFO(call_info.op->name);
  REQUIRE(found >= 0);
  uint32_t output = 0;
  for (const pg_meta& m : infer(call_info, inputs, groups)) {
    bool absent = call_info.lean && spares(*call_info.op, output++);
    tensors.emplace_back(absent ? 0 : PG_DTYPE(m.dtype_code, m.dtype_bits), Shape(m.shape, m.shape + m.rank));
  }
  metas.clear();
  inputs.clear();
  for (const Tensor& t : tensors) metas.push_back(describe(t));
  for (size_t i = 0; i < tensors.size(); i++) {
    (i < input_count ? inputs : outputs).push_back(tensors[i].dtype == 0 ? nullptr : &metas[i]);
  }

  auto at = static_cast<uint32_t>(found);
  pg_call request = {PG_SIZE(pg_call, attrs),
                     0,
                     call_info.op,
                     static_cast<uint32_t>(inputs.size()),
                     static_cast<uint32_t>(outputs.size()),
                     inputs.data(),
                     groups.data(),
                     outputs.data(),
                     call_info.attrs.data()};
  if (Code code = call(kernels->supports, at, &request); code.code != PG_OK) return code;
  pg_prepared prepared{};
  prepared.size = PG_SIZE(pg_prepared, pack_bytes);
  if (Code code = call(kernels->prepare, at, &request, &prepared); code.code != PG_OK) return code;

  uint64_t s = stream();
  std::vector<std::vector<char>> bytes;
  std::vector<pg_address> addresses;
  for (const Tensor& t : tensors) {
    bytes.push_back(t.dtype == 0 ? std::vector<char>() : to_bytes(t));
    addresses.push_back({bytes.back().empty() || t.count() == 0 ? 0 : alloc(bytes.back().size()), 0});
    if (addresses.back().buffer == 0) continue;
    addresses.back().offset = static_cast<uint64_t>(t.offset * pg::dtype_bytes(t.dtype));
    upload(addresses.back().buffer, bytes.back().data(), bytes.back().size(), s);
  }
  uint64_t workspace = prepared.workspace == 0 ? 0 : alloc(prepared.workspace), extents = 0;
  ok(device->alloc, 0u, PG_MEMORY_PINNED, uint64_t{64 * 8}, &extents);
  std::vector<char> attrs = call_info.attrs;
  pg_launch launch = {PG_SIZE(pg_launch, extents),
                      0,
                      s,
                      ++sequence,
                      static_cast<uint32_t>(inputs.size()),
                      static_cast<uint32_t>(outputs.size()),
                      inputs.data(),
                      outputs.data(),
                      groups.data(),
                      addresses.data(),
                      addresses.data() + input_count,
                      nullptr,
                      attrs.data(),
                      {workspace, 0},
                      reinterpret_cast<int64_t*>(extents)};
  Code code = this->launch(call_info, at, prepared.kernel, launch);
  std::fill(attrs.begin(), attrs.end(), static_cast<char>(0x55));  // valid during the call only
  if (Code synced = call(device->stream_sync, 0u, s); code.code == PG_OK) code = synced;
  kernels->release(self, at, prepared.kernel);

  size_t result = 0;
  for (size_t i = 0; i < tensors.size(); i++) {
    bool wanted = i < input_count ? tensors[i].kept : tensors[i].dtype != 0;
    if (code.code == PG_OK && wanted && results != nullptr) {
      if (addresses[i].buffer != 0) download(bytes[i].data(), addresses[i].buffer, bytes[i].size(), s);
      sync(s);
      bool dynamic = i >= input_count && (call_info.op->outputs[i - input_count]->flags & PG_OUTPUT_DYNAMIC) != 0;
      if (dynamic) {
        for (int64_t& extent : tensors[i].shape) extent = reinterpret_cast<int64_t*>(extents)[result++];
      }
      tensors[i].values = from_bytes(tensors[i], bytes[i]);
      results->push_back(tensors[i]);
    }
  }
  for (size_t i = 0; i < tensors.size(); i++) {
    if (addresses[i].buffer != 0) free(addresses[i].buffer);
  }
  if (workspace != 0) free(workspace);
  ok(device->free, 0u, PG_MEMORY_PINNED, extents);
  streams_.erase(std::find(streams_.begin(), streams_.end(), std::make_pair(0u, s)));
  ok(device->stream_destroy, 0u, s);
  return code;
}

std::vector<Tensor> Plugin::run(const Call& call_info) {
  std::vector<Tensor> results;
  Code code = try_run(call_info, &results);
  INFO(call_info.op->name << ": " << code.message());
  REQUIRE(code.code == PG_OK);
  return results;
}

}  // namespace contract
