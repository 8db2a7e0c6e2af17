// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

namespace test {
namespace {

void parallel(void*, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument) {
  int64_t pieces = std::min<int64_t>(omp_get_max_threads(), count / std::max<int64_t>(1, grain));
  if (pieces <= 1 || omp_in_parallel()) {
    if (count > 0) body(argument, 0, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(pieces))
  for (int64_t i = 0; i < pieces; i++) body(argument, count * i / pieces, count * (i + 1) / pieces);
}
int32_t threads(void*) { return omp_get_max_threads(); }
void quiet(void*, int32_t, const char*) {}

struct Plugin {
  const pg_plugin* entry;
  void* self = nullptr;
  explicit Plugin(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    entry = static_cast<const pg_plugin*>(dlsym(library, "pg_plugin_v1"));
    pg_error error = pg::make_error();
    if (entry->open(&host(), &self, &error) != PG_OK) throw std::runtime_error(error.message);
  }
  template <class T>
  const T* table(const char* id) const {
    return static_cast<const T*>(entry->iface(self, id));
  }
};

const Plugin& cpu() {
  static const Plugin plugin(PG_CPU_PLUGIN);
  return plugin;
}
const pg_ops& ops() {
  static const Plugin plugin(PG_OPS_PLUGIN);
  static const pg_ops* table = plugin.table<pg_ops>(PG_IFACE_OPS);
  return *table;
}
const pg_op_info* find_op(const std::string& name) {
  for (uint32_t i = 0; i < ops().count; i++) {
    if (name == ops().ops[i]->name) return ops().ops[i];
  }
  return nullptr;
}

void check(int32_t code, const pg_error& error) {
  if (code != PG_OK) throw pg::Error(code, error.message);
}

template <class T>
void put(std::vector<char>& attrs, uint32_t offset, T value) {
  std::memcpy(attrs.data() + offset, &value, sizeof value);
}

std::vector<char> pack(const KernelCall& call, const pg_op_info& op) {
  std::vector<char> attrs(static_cast<const char*>(op.defaults), static_cast<const char*>(op.defaults) + op.attr_size);
  attrs.resize(op.attr_size + 8);
  for (const auto& [name, value] : call.numbers) {
    const pg_attr_info& info = pg::find_attr(op, name.c_str());
    if (info.kind == PG_ATTR_FLOAT || info.kind == PG_ATTR_NUMBER)  // which begins with a double
      put(attrs, info.offset, value);
    else if (info.kind == PG_ATTR_INT || info.kind == PG_ATTR_AXIS)
      put(attrs, info.offset, static_cast<int64_t>(value));
    else if (info.kind == PG_ATTR_DTYPE)
      put(attrs, info.offset, static_cast<uint32_t>(value));
    else
      put(attrs, info.offset, static_cast<int32_t>(value));
  }
  for (const auto& [name, values] : call.lists) {
    pg_ints ints{static_cast<int64_t>(values.size()), {}};
    std::copy(values.begin(), values.end(), ints.value);
    put(attrs, pg::find_attr(op, name.c_str()).offset, ints);
  }
  for (uint32_t i = 0; i < op.attr_count && call.scalar_input >= 0; i++) {
    if (op.attrs[i]->kind != PG_ATTR_SCALAR) continue;
    put(attrs, op.attrs[i]->offset, pg_scalar{PG_SCALAR_FLOAT, call.scalar_input});
    put(attrs, op.attrs[i]->value, call.scalar);
  }
  if (!call.seed.empty()) {
    put(attrs, pg::find_attr(op, "seed").offset, call.seed[0]);
    put(attrs, pg::find_attr(op, "offset").offset, call.seed[1]);
  }
  return attrs;
}

std::vector<Tensor> infer(const KernelCall& call, const pg_op_info& op, const std::vector<const pg_tensor*>& inputs,
                          const std::vector<uint32_t>& groups, const std::vector<char>& attrs) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < op.output_count; i++) {
    bool variadic = (op.outputs[i]->flags & PG_OUTPUT_VARIADIC) != 0;
    count += variadic ? groups[op.outputs[i]->like] : 1;
  }
  std::vector<pg_meta> metas(count);
  std::vector<pg_meta*> list;
  for (pg_meta& meta : metas) meta.size = PG_SIZE(pg_meta, offset), list.push_back(&meta);
  pg_infer ask{PG_SIZE(pg_infer, outputs),
               0,
               op.user,
               static_cast<uint32_t>(inputs.size()),
               count,
               inputs.data(),
               groups.data(),
               attrs.data(),
               list.data()};
  pg_error error = pg::make_error();
  check(op.infer(&ask, &error), error);
  std::vector<Tensor> outputs;
  for (const pg_meta& m : metas) {
    outputs.emplace_back(PG_DTYPE(m.dtype_code, m.dtype_bits), Dims(m.shape, m.shape + m.rank), call.output_layout);
  }
  return outputs;
}

struct Prepared {
  const pg_kernels& table;
  uint32_t index;
  pg_prepared prepared{};
  ~Prepared() {
    if (prepared.kernel != nullptr) table.release(cpu().self, index, prepared.kernel);
  }
};

std::mt19937& generator() {
  static std::mt19937 g(1);
  return g;
}

}  // namespace

const pg_host& host() {
  static const pg_host table = [] {
    pg_host h{};
    h.size = PG_SIZE(pg_host, device_of);
    h.log = quiet;
    h.parallel_for = parallel;
    h.thread_count = threads;
    h.dim_equal = [](void*, int64_t a, int64_t b) -> int32_t { return a == b; };
    h.dim_add = [](void*, int64_t a, int64_t b) { return a + b; };
    h.dim_mul = [](void*, int64_t a, int64_t b) { return a * b; };
    h.dim_div = [](void*, int64_t a, int64_t b) { return a / b; };
    h.dim_max = [](void*, int64_t a, int64_t b) { return std::max(a, b); };
    return h;
  }();
  return table;
}
const pg_device& device() { return *cpu().table<pg_device>(PG_IFACE_DEVICE); }
void* device_self() { return cpu().self; }
bool has_op(const std::string& op) { return find_op(op) != nullptr; }

Tensor::Tensor(uint32_t dtype, Dims dims, Layout layout) : dtype(dtype), shape(std::move(dims)), stride(shape.size()) {
  int64_t step = layout == Layout::stepped ? 2 : 1;
  for (size_t i = 0; i < shape.size(); i++) {
    size_t at = layout == Layout::reversed ? i : shape.size() - 1 - i;
    stride[at] = step;
    step *= std::max<int64_t>(shape[at], 1);
  }
  bytes.assign(static_cast<size_t>(step * pg::dtype_bytes(dtype)), static_cast<char>(0x5a));
  *this = Tensor(*this);
}
Tensor& Tensor::operator=(const Tensor& other) {
  dtype = other.dtype, shape = other.shape, stride = other.stride, bytes = other.bytes;
  view = {PG_SIZE(pg_tensor, components),
          static_cast<uint16_t>(dtype >> 16),
          static_cast<uint16_t>(dtype),
          static_cast<uint32_t>(shape.size()),
          0,
          shape.data(),
          stride.data(),
          0,
          0,
          0,
          0,
          PG_CLASS_DENSE,
          0,
          nullptr};
  return *this;
}
Tensor& Tensor::set(const std::vector<double>& values) {
  pg::reference::write(operand(), values);
  return *this;
}
Tensor& Tensor::random(double low, double high) {
  std::vector<double> values(static_cast<size_t>(count()));
  std::uniform_real_distribution<double> draw(low, high);
  for (double& v : values) v = pg::dtype_class(dtype) == PG_M_FLOAT ? draw(generator()) : std::floor(draw(generator()));
  if (dtype == PG_U8) {
    for (double& v : values) v = std::fabs(v);
  }
  return set(values);
}
Tensor Tensor::expand(Dims to) const {
  Tensor out = *this;
  size_t lead = to.size() - shape.size();
  out.stride.assign(to.size(), 0);
  for (size_t i = 0; i < shape.size(); i++) out.stride[lead + i] = shape[i] == 1 ? 0 : stride[i];
  out.shape = to;
  return Tensor(out);
}
pg_tensor Tensor::placed() const {
  pg_tensor t = view;
  t.buffer = address().buffer;
  return t;
}

std::vector<Tensor> KernelCall::run() {
  const pg_op_info* info = find_op(op);
  if (info == nullptr) throw std::runtime_error("no operator " + op);
  std::vector<const pg_tensor*> metas;
  std::vector<pg_address> addresses;
  std::vector<uint32_t> groups;
  for (const auto& group : inputs) {
    groups.push_back(static_cast<uint32_t>(group.size()));
    for (const Tensor* t : group) {
      metas.push_back(t == nullptr ? nullptr : &t->view);
      addresses.push_back(t == nullptr ? pg_address{0, 0} : t->address());
    }
  }
  std::vector<char> attrs = pack(*this, *info);
  std::vector<Tensor> outputs = infer(*this, *info, metas, groups, attrs);
  if (in_place) outputs[0] = *inputs[0][0];
  std::vector<const pg_tensor*> output_metas;
  std::vector<pg_address> output_addresses;
  for (const Tensor& t : outputs) output_metas.push_back(&t.view), output_addresses.push_back(t.address());
  if (in_place) addresses[0] = output_addresses[0];
  const pg_kernels& table = *cpu().table<pg_kernels>(PG_IFACE_KERNELS);
  uint32_t index = 0;
  while (index < table.count && op != table.kernels[index]->op) index++;
  if (index == table.count && info->scalar != nullptr)
    for (index = 0; index < table.count && (table.kernels[index]->flags & PG_KERNEL_SCALAR) == 0;) index++;
  if (index == table.count) throw std::runtime_error("no kernel for " + op);
  pg_call call{PG_SIZE(pg_call, attrs),
               0,
               info,
               static_cast<uint32_t>(metas.size()),
               static_cast<uint32_t>(outputs.size()),
               metas.data(),
               groups.data(),
               output_metas.data(),
               attrs.data()};
  pg_error error = pg::make_error();
  check(table.supports(cpu().self, index, &call, &error), error);
  Prepared p{table, index};
  p.prepared.size = PG_SIZE(pg_prepared, pack_bytes);
  check(table.prepare(cpu().self, index, &call, &p.prepared, &error), error);
  std::vector<char> workspace(p.prepared.workspace + 64, static_cast<char>(0x5a));
  uint64_t base = (reinterpret_cast<uint64_t>(workspace.data()) + 63) / 64 * 64;
  std::vector<int64_t> extents(outputs.size() * PG_MAX_RANK, -1);
  pg_launch launch{PG_SIZE(pg_launch, extents),
                   0,
                   0,
                   0,
                   call.input_count,
                   call.output_count,
                   metas.data(),
                   output_metas.data(),
                   groups.data(),
                   addresses.data(),
                   output_addresses.data(),
                   nullptr,
                   attrs.data(),
                   {p.prepared.workspace == 0 ? 0 : base, 0},
                   extents.data()};
  check(table.launch(cpu().self, index, p.prepared.kernel, &launch, &error), error);
  if (info->output_count > 0 && (info->outputs[0]->flags & PG_OUTPUT_DYNAMIC) != 0) {
    Dims shape(extents.begin(), extents.begin() + static_cast<int64_t>(outputs[0].shape.size()));
    Tensor cut(outputs[0].dtype, shape);
    std::memcpy(cut.bytes.data(), outputs[0].bytes.data(),
                static_cast<size_t>(cut.count() * pg::dtype_bytes(cut.dtype)));
    outputs[0] = cut;
  }
  return outputs;
}

double tolerance(uint32_t dtype) {
  switch (dtype) {
    case PG_F64: return 1e-14;
    case PG_F32: return 1e-6;
    case PG_F16: return 1.0 / 1024;
    case PG_BF16: return 1.0 / 128;
    default: return 0;
  }
}

void check_values(const Tensor& got, const std::vector<double>& expected, double tolerance) {
  auto values = got.values();
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); i++) {
    double g = values[i], e = expected[i];
    if (g == e || (std::isnan(g) && std::isnan(e)) || std::fabs(g - e) <= tolerance * (1 + std::fabs(e))) continue;
    FAIL("element " << i << " of " << pg::dtype_name(got.dtype) << pg::shape_text(got.view) << " is " << g
                    << ", expected " << e);
  }
}

void check_close(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what) {
  INFO(what);
  REQUIRE(got.shape == expected.shape);
  REQUIRE(got.dtype == expected.dtype);
  check_values(got, expected.values(), tolerance);
}

}  // namespace test
