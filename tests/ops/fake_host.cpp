// SPDX-License-Identifier: Apache-2.0
#include "fake_host.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace fake {
namespace {

bool symbolic(int64_t a, int64_t b) { return PG_DIM_IS_SYMBOLIC(a) || PG_DIM_IS_SYMBOLIC(b); }

int64_t fresh() {
  static int64_t next = PG_DIM_SYMBOLIC - 100;
  return next--;
}

const pg_host& host() {
  static pg_host h = [] {
    pg_host t{};
    t.size = PG_SIZE(pg_host, device_of);
    t.dim_equal = [](void*, int64_t a, int64_t b) -> int32_t { return a == b || symbolic(a, b); };
    t.dim_add = [](void*, int64_t a, int64_t b) { return b == 0 ? a : a == 0 ? b : symbolic(a, b) ? fresh() : a + b; };
    t.dim_mul = [](void*, int64_t a, int64_t b) { return a == 0 || b == 0 ? 0 : symbolic(a, b) ? fresh() : a * b; };
    t.dim_div = [](void*, int64_t a, int64_t b) { return symbolic(a, b) ? fresh() : a / b; };
    t.dim_max = [](void*, int64_t a, int64_t b) { return a == b ? a : symbolic(a, b) ? fresh() : std::max(a, b); };
    return t;
  }();
  return h;
}

const pg_ops* load() {
  void* library = dlopen(PG_OPS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  auto* plugin = static_cast<const pg_plugin*>(dlsym(library, "pg_plugin_v1"));
  pg_error error = pg::make_error();
  void* self = nullptr;
  if (plugin->open(&host(), &self, &error) != PG_OK) throw std::runtime_error(error.message);
  return static_cast<const pg_ops*>(plugin->iface(self, PG_IFACE_OPS));
}

}  // namespace

const pg_ops& table() {
  static const pg_ops* ops = load();
  return *ops;
}

const pg_op_info& op(const std::string& name) {
  for (uint32_t i = 0; i < table().count; i++)
    if (name == table().ops[i]->name) return *table().ops[i];
  throw std::runtime_error("no operator " + name);
}

Attrs::Attrs(const std::string& name) : info(op(name)), bytes(info.attr_size / 8 + 1) {
  if (info.attr_size > 0) std::memcpy(bytes.data(), info.defaults, info.attr_size);
}

const pg_attr_info& Attrs::find(const std::string& attr) const {
  for (uint32_t i = 0; i < info.attr_count; i++)
    if (attr == info.attrs[i]->name) return *info.attrs[i];
  throw std::runtime_error(std::string(info.name) + " has no attribute " + attr);
}

void Attrs::write(uint32_t offset, const void* value, size_t size) {
  std::memcpy(reinterpret_cast<char*>(bytes.data()) + offset, value, size);
}

Attrs& Attrs::number(const std::string& attr, double value) {
  const pg_attr_info& a = find(attr);
  auto narrow = static_cast<int32_t>(value);
  auto wide = static_cast<int64_t>(value);
  if (a.kind == PG_ATTR_FLOAT || a.kind == PG_ATTR_NUMBER)  // which begins with a double
    write(a.offset, &value, 8);
  else if (a.kind == PG_ATTR_INT || a.kind == PG_ATTR_AXIS)
    write(a.offset, &wide, 8);
  else
    write(a.offset, &narrow, 4);
  return *this;
}

Attrs& Attrs::list(const std::string& attr, std::vector<int64_t> values) {
  pg_ints ints{};
  for (int64_t v : values) ints.value[ints.count++] = v;
  write(find(attr).offset, &ints, sizeof ints);
  return *this;
}

Result infer(const Attrs& attrs, std::vector<Tensor> inputs, std::vector<uint32_t> groups) {
  std::vector<pg_tensor> tensors(inputs.size());
  std::vector<const pg_tensor*> pointers;
  bool symbols = false;
  for (size_t i = 0; i < inputs.size(); i++) {
    Tensor& in = inputs[i];
    for (int64_t d : in.shape) symbols = symbols || PG_DIM_IS_SYMBOLIC(d);
    int64_t step = 1;
    bool dense = in.stride.empty();
    in.stride.resize(in.shape.size());
    for (size_t k = in.shape.size(); dense && !symbols && k-- > 0; step *= in.shape[k]) in.stride[k] = step;
    tensors[i].size = PG_SIZE(pg_tensor, components);
    tensors[i].dtype_code = static_cast<uint16_t>(in.dtype >> 16);
    tensors[i].dtype_bits = static_cast<uint16_t>(in.dtype & 0xffff);
    tensors[i].rank = static_cast<uint32_t>(in.shape.size());
    tensors[i].shape = in.shape.data();
    tensors[i].stride = in.stride.data();
  }
  if (groups.empty()) groups.assign(attrs.info.input_count, 1);
  for (size_t i = 0; i < inputs.size(); i++) {
    if (symbols) tensors[i].stride = nullptr;
    pointers.push_back(inputs[i].absent ? nullptr : &tensors[i]);
  }
  uint32_t count = 0;
  for (uint32_t i = 0; i < attrs.info.output_count; i++) {
    const pg_output_info& out = *attrs.info.outputs[i];
    count += (out.flags & PG_OUTPUT_VARIADIC) != 0 ? groups[out.like] : 1;
  }
  Result result;
  result.outputs.assign(count, pg_meta{});
  std::vector<pg_meta*> metas;
  for (pg_meta& m : result.outputs) metas.push_back(&m);
  pg_error error = pg::make_error();
  pg_infer call{PG_SIZE(pg_infer, outputs),
                symbols,
                attrs.info.user,
                static_cast<uint32_t>(pointers.size()),
                count,
                pointers.data(),
                groups.data(),
                attrs.bytes.data(),
                metas.data()};
  result.code = attrs.info.infer(&call, &error);
  result.message = error.message;
  return result;
}

}  // namespace fake
