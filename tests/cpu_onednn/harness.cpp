// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <dlfcn.h>
#include <omp.h>

#include <algorithm>
#include <stdexcept>

namespace harness {
namespace {

void parallel_for(void*, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument) {
  int64_t pieces = std::min<int64_t>(omp_get_max_threads(), count / std::max<int64_t>(1, grain));
  if (pieces <= 1 || omp_in_parallel()) {
    if (count > 0) body(argument, 0, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast <int>(pieces))
  for (int64_t i = 0; i < pieces; i++) body(argument, count * i / pieces, count * (i + 1) / pieces);
}
int32_t thread_count(void*) { return omp_get_max_threads(); }
void log(void*, int32_t, const char*) {}

const pg_kernels* kernels() {
  static const pg_kernels* table = [] {
    static pg_host host{};
    host.size = PG_SIZE(pg_host, thread_count);
    host.log = log;
    host.parallel_for = parallel_for;
    host.thread_count = thread_count;
    void* library = dlopen(PG_CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    auto* plugin = static_cast<const pg_plugin*>(dlsym(library, "pg_plugin_v1"));
    void* self = nullptr;
    pg_error error = pg::make_error();
    if (plugin->open(&host, &self, &error) != PG_OK) throw std::runtime_error(error.message);
    return static_cast<const pg_kernels*>(plugin->iface(self, PG_IFACE_KERNELS));
  }();
  return table;
}

void check(int32_t code, const pg_error& error) {
  if (code != PG_OK) throw pg::Error(code, std::string(error.where) + ": " + error.message);
}

}  // namespace

Attr::Attr(std::string name, double number, uint32_t kind) : name(std::move(name)), kind(kind), number(number) {}
Attr::Attr(std::string name, Dims values) : name(std::move(name)), kind(PG_ATTR_INTS) {
  ints.count = static_cast<int64_t>(values.size());
  std::copy(values.begin(), values.end(), ints.value);
}

void Prepared::describe(const std::vector<Tensor*>& from, std::vector<pg_tensor>& tensors,
                        std::vector<const pg_tensor*>& list) {
  tensors.resize(from.size());
  for (size_t i = 0; i < from.size(); i++) {
    list.push_back(from[i] == nullptr ? nullptr : &tensors[i]);
    if (from[i] == nullptr) continue;
    pg_tensor& t = tensors[i] = {};
    t.size = PG_SIZE(pg_tensor, components);
    t.dtype_code = static_cast<uint16_t>(from[i]->dtype >> 16), t.dtype_bits = static_cast<uint16_t>(from[i]->dtype);
    t.rank = static_cast<uint32_t>(from[i]->shape.size());
    t.shape = from[i]->shape.data(), t.stride = from[i]->stride.data();
  }
}

Prepared::Prepared(const std::string& op, std::vector<Attr> attrs, std::vector<Tensor*> inputs,
                   std::vector<Tensor*> outputs)
    : attrs_(std::move(attrs)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  const pg_kernels* table = kernels();
  while (index_ < table->count && op != table->kernels[index_]->op) index_++;
  if (index_ == table->count) throw std::runtime_error("no kernel for " + op);
  infos_.resize(attrs_.size());
  for (size_t i = 0; i < attrs_.size(); i++) {
    size_t size = attrs_[i].kind == PG_ATTR_INTS ? sizeof(pg_ints) : 8, at = (packed_attrs_.size() + 7) / 8 * 8;
    packed_attrs_.resize(at + size);
    int32_t flag = static_cast<int32_t>(attrs_[i].number);
    int64_t integer = static_cast<int64_t>(attrs_[i].number);
    const void* source = attrs_[i].kind == PG_ATTR_INTS    ? static_cast<const void*>(&attrs_[i].ints)
                         : attrs_[i].kind == PG_ATTR_BOOL  ? static_cast<const void*>(&flag)
                         : attrs_[i].kind == PG_ATTR_FLOAT ? static_cast<const void*>(&attrs_[i].number)
                                                           : static_cast<const void*>(&integer);
    std::memcpy(packed_attrs_.data() + at, source, attrs_[i].kind == PG_ATTR_BOOL ? 4 : size);
    infos_[i] = {PG_SIZE(pg_attr_info, value),
                 attrs_[i].kind,
                 0,
                 static_cast<uint32_t>(at),
                 attrs_[i].name.c_str(),
                 "",
                 nullptr,
                 0,
                 0};
    info_list_.push_back(&infos_[i]);
  }
  op_.size = PG_SIZE(pg_op_info, write_back);
  op_.name = table->kernels[index_]->op;
  op_.attr_count = static_cast<uint32_t>(attrs_.size());
  op_.attrs = info_list_.data();
  describe(inputs_, input_tensors_, input_list_);
  describe(outputs_, output_tensors_, output_list_);
  pg_call call{PG_SIZE(pg_call, attrs),
               0,
               &op_,
               static_cast<uint32_t>(inputs_.size()),
               static_cast<uint32_t>(outputs_.size()),
               input_list_.data(),
               nullptr,
               output_list_.data(),
               packed_attrs_.data()};
  pg_error error = pg::make_error();
  check(table->supports(nullptr, index_, &call, &error), error);
  prepared_.size = PG_SIZE(pg_prepared, pack_bytes);
  check(table->prepare(nullptr, index_, &call, &prepared_, &error), error);
  workspace_.assign(prepared_.workspace + 64, 0xFF);
  for (auto* t : inputs_) {
    bool absent = t == nullptr || t->size() == 0;
    input_addresses_.push_back({absent ? 0 : reinterpret_cast<uint64_t>(t->storage.data()), 0});
  }
  for (auto* t : outputs_) {
    bool absent = t == nullptr || t->size() == 0;
    output_addresses_.push_back({absent ? 0 : reinterpret_cast<uint64_t>(t->storage.data()), 0});
  }
  uint64_t base = reinterpret_cast<uint64_t>(workspace_.data());
  launch_ = {PG_SIZE(pg_launch, extents),
             0,
             0,
             0,
             call.input_count,
             call.output_count,
             input_list_.data(),
             output_list_.data(),
             nullptr,
             input_addresses_.data(),
             output_addresses_.data(),
             nullptr,
             packed_attrs_.data(),
             {prepared_.workspace == 0 ? 0 : base, (64 - base % 64) % 64},
             nullptr};
}

Prepared::~Prepared() {
  if (prepared_.kernel != nullptr) kernels()->release(nullptr, index_, prepared_.kernel);
}

void Prepared::launch() {
  pg_error error = pg::make_error();
  check(kernels()->launch(nullptr, index_, prepared_.kernel, &launch_, &error), error);
}

bool Prepared::packs() const {
  return std::any_of(std::begin(prepared_.pack_bytes), std::end(prepared_.pack_bytes),
                     [](uint64_t b) { return b > 0; });
}

void Prepared::pack() {
  packed_addresses_.assign(8, {0, 0});
  packs_.resize(8);
  pg_error error = pg::make_error();
  for (uint32_t i = 0; i < 8; i++) {
    if (prepared_.pack_bytes[i] == 0) continue;
    packs_[i].assign(prepared_.pack_bytes[i] + 64, 0xFF);
    uint64_t base = reinterpret_cast<uint64_t>(packs_[i].data());
    packed_addresses_[i] = {base, (64 - base % 64) % 64};
    check(kernels()->pack(nullptr, index_, prepared_.kernel, i, &launch_, packed_addresses_[i], &error), error);
  }
  launch_.packed = packed_addresses_.data();
}

}  // namespace harness
