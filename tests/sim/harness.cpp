// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <deque>
#include <map>

#include "perigee/kernels/reference/operand.hpp"

namespace test {
namespace {

using pg::reference::Operand;

// The scalar expressions of elementwise operators, over inputs x, y, z; NULL: of another operator.
const char* scalar_of(const std::string& op) {
  static const std::map<std::string, const char*> texts = {
      {"add", "Add(x, y)"},
      {"mul", "Mul(x, y)"},
      {"lt", "Lt(x, y)"},
      {"maximum", "Maximum(x, y)"},
      {"floor_div", "FloorDiv(x, y)"},
      {"remainder", "Remainder(x, y)"},
      {"exp", "Exp(x)"},
      {"neg", "Neg(x)"},
      {"relu", "Relu(x)"},
      {"gelu", "approximate ? GeluTanh(x) : Gelu(x)"},
      {"clamp", "Clamp(x; min, max)"},
      {"floor", "Floor(x)"},
      {"where", "Select(x, y, z)"},
      {"masked_fill", "Select(y, value, x)"},
  };
  auto found = texts.find(op);
  return found == texts.end() ? nullptr : found->second;
}

// A schema whose attributes all have a slot of one size.
class Schema {
 public:
  explicit Schema(const Operation& call) : call_(call) {
    info.size = PG_SIZE(pg_op_info, scalar);
    info.scalar = scalar_of(call_.op);
    if (info.scalar != nullptr) info.traits = PG_OP_ELEMENTWISE;
    info.name = call_.op.c_str();
    for (uint32_t i = 0; i < call_.inputs.size(); i++) {
      static const char* const names[] = {"x", "y", "z"};
      const bool scalar = info.scalar != nullptr, mask = scalar && call_.inputs[i][0].dtype == PG_B8;
      uint32_t flags = scalar ? 0 : PG_INPUT_VARIADIC | (i == call_.meta_input ? PG_INPUT_META : 0);
      inputs_.push_back(
          {PG_SIZE(pg_input_info, doc), flags, mask ? PG_M_BOOL : PG_M_ANY, 0, scalar ? names[i] : "x", "", nullptr});
      input_list_.push_back(&inputs_.back());
    }
    for (size_t i = 0; i < call_.outputs.size(); i++) {
      outputs_.push_back({PG_SIZE(pg_output_info, doc), call_.dynamic ? PG_OUTPUT_DYNAMIC : 0, 0, 0, "y", ""});
      output_list_.push_back(&outputs_.back());
    }
    for (const Attr& attr : call_.attrs) {
      uint32_t offset = static_cast<uint32_t>(attrs_.size() * sizeof(pg_ints));
      attrs_.push_back({PG_SIZE(pg_attr_info, value), attr.kind, 0, offset, attr.name.c_str(), "", attr.choices.data(),
                        static_cast<uint32_t>(attr.choices.size()), 0});
      attr_list_.push_back(&attrs_.back());
    }
    info.input_count = static_cast<uint32_t>(inputs_.size());
    info.output_count = static_cast<uint32_t>(outputs_.size());
    info.attr_count = static_cast<uint32_t>(attrs_.size());
    info.attr_size = static_cast<uint32_t>(attrs_.size() * sizeof(pg_ints));
    info.inputs = input_list_.data();
    info.outputs = output_list_.data();
    info.attrs = attr_list_.data();
    pack();
  }
  pg_op_info info{};
  std::vector<char> packed;

 private:
  template <class T>
  void put(size_t slot, T value) {
    std::memcpy(packed.data() + slot * sizeof(pg_ints), &value, sizeof value);
  }
  void pack() {
    packed.resize(attrs_.size() * sizeof(pg_ints));
    for (size_t i = 0; i < call_.attrs.size(); i++) {
      const Attr& attr = call_.attrs[i];
      if (attr.kind == PG_ATTR_FLOAT)
        put(i, attr.number);
      else if (attr.kind == PG_ATTR_INT || attr.kind == PG_ATTR_AXIS)
        put(i, static_cast<int64_t>(attr.number));
      else if (attr.kind == PG_ATTR_INTS) {
        pg_ints ints{static_cast<int64_t>(attr.list.size()), {}};
        std::copy(attr.list.begin(), attr.list.end(), ints.value);
        put(i, ints);
      } else
        put(i, static_cast<int32_t>(attr.number));
    }
  }

  Operation call_;
  std::deque<pg_input_info> inputs_;
  std::deque<pg_output_info> outputs_;
  std::deque<pg_attr_info> attrs_;
  std::vector<const pg_input_info*> input_list_;
  std::vector<const pg_output_info*> output_list_;
  std::vector<const pg_attr_info*> attr_list_;
};

struct Placed {  // a tensor on the device
  Placed(Sim& sim, Tensor of, uint64_t stream) : tensor(std::move(of)), stride(pg::reference::dense(tensor.shape)) {
    meta = {PG_SIZE(pg_tensor, components),
            static_cast<uint16_t>(tensor.dtype >> 16),
            static_cast<uint16_t>(tensor.dtype & 0xffff),
            static_cast<uint32_t>(tensor.shape.size()),
            0,
            tensor.shape.data(),
            stride.data(),
            0,
            0,
            0,
            0,
            PG_CLASS_DENSE,
            0,
            nullptr};
    host.resize(static_cast<size_t>(pg::element_count(meta) * pg::dtype_bytes(tensor.dtype)));
    if (host.empty()) return;
    buffer = sim.alloc(host.size());
    if (tensor.values.empty()) return;
    pg::reference::write(Operand(meta, host.data()), tensor.values);
    sim.upload(buffer, host.data(), host.size(), stream);
  }
  Placed(const Placed&) = delete;
  Tensor tensor;
  Shape stride;
  pg_tensor meta{};
  std::vector<char> host;
  uint64_t buffer = 0;
};

struct Sides {  // inputs or outputs of a launch
  std::deque<Placed> placed;
  std::vector<const pg_tensor*> metas;
  std::vector<pg_address> addresses;
  void add(Sim& sim, const Tensor& tensor, uint64_t stream) {
    if (tensor.dtype == 0) return metas.push_back(nullptr), addresses.push_back({0, 0});
    placed.emplace_back(sim, tensor, stream);
    metas.push_back(&placed.back().meta);
    addresses.push_back({placed.back().buffer, 0});
  }
};

void quiet_log(void*, int32_t, const char*) {}
void inline_for(void*, int64_t count, int64_t, void (*body)(void*, int64_t, int64_t), void* argument) {
  body(argument, 0, count);
}
int32_t one_thread(void*) { return 1; }

}  // namespace

const pg_host& fake_host() {
  static const pg_host host = [] {
    pg_host h{};
    h.size = PG_SIZE(pg_host, device_of);
    h.abi_minor = PG_ABI_MINOR;
    h.log = quiet_log;
    h.parallel_for = inline_for;
    h.thread_count = one_thread;
    return h;
  }();
  return host;
}

const pg_plugin& library() {
  static const auto* entry = [] {
    void* handle = dlopen(SIM_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    return static_cast<const pg_plugin*>(dlsym(handle, "pg_plugin_v1"));
  }();
  return *entry;
}

Sim::Sim(std::initializer_list<Setting> settings) {
  auto variable = [](const Setting& setting) { return std::string("PERIGEE_SIM_") + setting.name; };
  for (const Setting& setting : settings) setenv(variable(setting).c_str(), setting.value, 1);
  pg_error error = pg::make_error();
  int32_t code = library().open(&fake_host(), &self, &error);
  for (const Setting& setting : settings) unsetenv(variable(setting).c_str());
  if (code != PG_OK) throw std::runtime_error(error.message);
  device = static_cast<const pg_device*>(library().iface(self, PG_IFACE_DEVICE));
  kernels = static_cast<const pg_kernels*>(library().iface(self, PG_IFACE_KERNELS));
}

// In the order that plugin.h prescribes.
Sim::~Sim() {
  for (auto [on, handle] : streams_) call(device->stream_sync, on, handle);
  for (auto [on, handle] : buffers_) call(device->free, on, PG_MEMORY_DEVICE, handle);
  for (auto [on, handle] : events_) call(device->event_destroy, on, handle);
  for (auto [on, handle] : streams_) call(device->stream_destroy, on, handle);
  pg_error error = pg::make_error();
  CHECK(library().close(self, &error) == PG_OK);
}

uint64_t Sim::alloc(uint64_t bytes, uint32_t on) {
  uint64_t buffer = 0;
  ok(device->alloc, on, PG_MEMORY_DEVICE, bytes, &buffer);
  buffers_.push_back({on, buffer});
  return buffer;
}

uint64_t Sim::stream(uint32_t on) {
  uint64_t handle = 0;
  ok(device->stream_create, on, &handle);
  streams_.push_back({on, handle});
  return handle;
}

uint64_t Sim::event(uint32_t on) {
  uint64_t handle = 0;
  ok(device->event_create, on, &handle);
  events_.push_back({on, handle});
  return handle;
}

void Sim::upload(uint64_t buffer, const void* from, uint64_t bytes, uint64_t stream, uint32_t on) {
  ok(device->upload, on, buffer, uint64_t{0}, from, bytes, stream, ++sequence);
}

void Sim::download(void* to, uint64_t buffer, uint64_t bytes, uint64_t stream, uint32_t on) {
  ok(device->download, on, to, buffer, uint64_t{0}, bytes, stream, ++sequence);
}

void Sim::occupy(uint64_t stream, uint32_t on) {
  int64_t shape = 1 << 22, stride = 1;
  pg_tensor t = {PG_SIZE(pg_tensor, components), PG_FLOAT, 32, 1, 0, &shape, &stride,
                 alloc(uint64_t{4} << 22, on),   0,        0,  0, 0, 0,      nullptr};
  const pg_number one = pg::make_number(1.0);
  for (int i = 0; i < 3; i++) ok(device->fill, on, &t, &one, stream, ++sequence);
}

int Sim::kernel(const std::string& op) const {
  for (uint32_t i = 0; i < kernels->count; i++) {
    const pg_kernel_info& info = *kernels->kernels[i];
    const bool scalar = (info.flags & PG_KERNEL_SCALAR) != 0 && scalar_of(op) != nullptr;
    if (op == info.op || scalar) return static_cast<int>(i);
  }
  return -1;
}

Code Sim::try_run(const Operation& operation, std::vector<Tensor>* results) {
  uint64_t s = stream();
  static std::deque<Schema> schemas;  // they live as long as the process
  const Schema& schema = schemas.emplace_back(operation);
  Sides in, to;
  std::vector<uint32_t> groups;
  for (const auto& group : operation.inputs) {
    groups.push_back(static_cast<uint32_t>(group.size()));
    for (const Tensor& tensor : group) in.add(*this, tensor, s);
  }
  for (const Tensor& tensor : operation.outputs) to.add(*this, tensor, s);
  ok(device->stream_sync, 0u, s);  // a call that is refused drops the bytes that were sent

  int index = kernel(operation.op);
  INFO(operation.op);
  REQUIRE(index >= 0);
  auto at = static_cast<uint32_t>(index);
  auto inputs = static_cast<uint32_t>(in.metas.size()), outputs = static_cast<uint32_t>(to.metas.size());
  pg_call call_info = {
      PG_SIZE(pg_call, attrs), 0, &schema.info, inputs, outputs, in.metas.data(), groups.data(), to.metas.data(),
      schema.packed.data()};
  if (Code code = call(kernels->supports, at, &call_info); code.code != PG_OK) return code;
  pg_prepared prepared{};
  prepared.size = PG_SIZE(pg_prepared, pack_bytes);
  ok(kernels->prepare, at, &call_info, &prepared);

  std::vector<int64_t> extents(8, -1);
  std::vector<char> attrs = schema.packed;
  pg_launch launch = {PG_SIZE(pg_launch, extents),
                      0,
                      s,
                      ++sequence,
                      inputs,
                      outputs,
                      in.metas.data(),
                      to.metas.data(),
                      groups.data(),
                      in.addresses.data(),
                      to.addresses.data(),
                      nullptr,
                      attrs.data(),
                      {0, 0},
                      operation.dynamic ? extents.data() : nullptr};
  Code launched = call(kernels->launch, at, prepared.kernel, &launch);
  // All of this was valid during the call only.
  kernels->release(self, at, prepared.kernel);
  std::fill(attrs.begin(), attrs.end(), 0x55);
  launch = {};
  if (launched.code != PG_OK) return launched;
  if (Code code = call(device->stream_sync, 0u, s); code.code != PG_OK) return code;

  Sides& wanted = operation.writes_inputs ? in : to;
  for (Placed& p : wanted.placed) {
    if (!p.host.empty()) download(p.host.data(), p.buffer, p.host.size(), s);
    ok(device->stream_sync, 0u, s);
    if (operation.dynamic)
      std::copy(extents.begin(), extents.begin() + static_cast<ptrdiff_t>(p.tensor.shape.size()),
                p.tensor.shape.begin());
    p.tensor.values = pg::reference::read<double>(Operand(p.meta, p.host.data()));
    if (results != nullptr) results->push_back(p.tensor);
  }
  return {PG_OK, pg::make_error()};
}

std::vector<Tensor> Sim::run(const Operation& operation) {
  std::vector<Tensor> results;
  Code code = try_run(operation, &results);
  INFO(operation.op << ": " << code.message());
  REQUIRE(code.code == PG_OK);
  return results;
}

void check(const Tensor& result, const Values& expected, double tolerance) {
  REQUIRE(result.values.size() == expected.size());
  for (size_t i = 0; i < expected.size(); i++) {
    INFO("element " << i);
    if (std::isnan(expected[i]))
      CHECK(std::isnan(result.values[i]));
    else
      CHECK(result.values[i] == Approx(expected[i]).margin(tolerance).epsilon(tolerance));
  }
}

}  // namespace test
