// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <dlfcn.h>
#include <omp.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace harness {
namespace {

void parallel_for(void*, int64_t count, int64_t grain, void (*body)(void*, int64_t, int64_t), void* argument) {
  int64_t pieces = std::min<int64_t>(omp_get_max_threads(), count / std::max<int64_t>(1, grain));
  if (pieces <= 1 || omp_in_parallel()) {
    if (count > 0) body(argument, 0, count);
    return;
  }
#pragma omp parallel for num_threads(static_cast<int>(pieces))
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

float half_to_float(uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) value = mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

uint16_t float_to_half(double x) {  // inputs of tests are far from the limits
  if (x == 0) return 0;
  int exponent;
  double fraction = std::frexp(std::fabs(x), &exponent);
  int biased = std::max(exponent + 14, 0);
  auto mantissa = static_cast<int>(std::nearbyint(std::ldexp(fraction, biased == 0 ? exponent + 24 : 11)));
  int bits = biased == 0 ? mantissa : ((biased - 1) << 10) + mantissa;
  return static_cast<uint16_t>(bits | (x < 0 ? 0x8000 : 0));
}

template <class T>
T& element(std::vector<unsigned char>& storage, int64_t position) {
  return reinterpret_cast<T*>(storage.data())[position];
}

}  // namespace

std::mt19937& generator() {
  static std::mt19937 generator(7);
  return generator;
}
int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator()); }
Layout any_layout() { return static_cast<Layout>(between(0, 3)); }

Tensor::Tensor(uint32_t dtype, Dims shape_, Layout layout) : dtype(dtype), shape(std::move(shape_)), stride(shape.size()) {
  std::vector<size_t> order;  // innermost first
  for (size_t i = shape.size(); i-- > 0;) order.push_back(i);
  if (layout == Layout::kReversed) std::reverse(order.begin(), order.end());
  if (layout == Layout::kChannelsLast && shape.size() == 4) order = {1, 3, 2, 0};
  int64_t step = layout == Layout::kStepped ? 2 : 1;
  for (size_t i : order) stride[i] = step, step *= std::max<int64_t>(shape[i], 1);
  storage.assign(static_cast<size_t>(step * pg::dtype_bytes(dtype)) + 64, 0xFF);
}

int64_t Tensor::size() const {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

int64_t Tensor::position(int64_t index) const {
  int64_t at = 0;
  for (size_t i = shape.size(); i-- > 0; index /= shape[i]) at += index % shape[i] * stride[i];
  return at;
}

double Tensor::get(int64_t index) const {
  int64_t p = position(index);
  auto& bytes = const_cast<std::vector<unsigned char>&>(storage);
  switch (dtype) {
    case PG_F64: return element<double>(bytes, p);
    case PG_F32: return element<float>(bytes, p);
    case PG_BF16: return std::bit_cast<float>(static_cast<uint32_t>(element<uint16_t>(bytes, p)) << 16);
    case PG_F16: return half_to_float(element<uint16_t>(bytes, p));
    case PG_I64: return static_cast<double>(element<int64_t>(bytes, p));
    case PG_I32: return element<int32_t>(bytes, p);
    case PG_I8: return element<int8_t>(bytes, p);
    case PG_U8: return element<uint8_t>(bytes, p);
    default: throw std::runtime_error("dtype");
  }
}

void Tensor::set(int64_t index, double value) {
  int64_t p = position(index);
  switch (dtype) {
    case PG_F64: element<double>(storage, p) = value; break;
    case PG_F32: element<float>(storage, p) = static_cast<float>(value); break;
    case PG_BF16: element<uint16_t>(storage, p) = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16); break;
    case PG_F16: element<uint16_t>(storage, p) = float_to_half(value); break;
    case PG_I64: element<int64_t>(storage, p) = static_cast<int64_t>(value); break;
    case PG_I32: element<int32_t>(storage, p) = static_cast<int32_t>(value); break;
    case PG_I8: element<int8_t>(storage, p) = static_cast<int8_t>(value); break;
    case PG_U8: element<uint8_t>(storage, p) = static_cast<uint8_t>(value); break;
    default: throw std::runtime_error("dtype");
  }
}

double Tensor::at(std::initializer_list<int64_t> index) const {
  int64_t flat = 0;
  size_t axis = 0;
  for (int64_t i : index) flat = flat * shape[axis++] + i;
  return get(flat);
}

Tensor& Tensor::random(double low, double high) {
  std::uniform_real_distribution<double> real(low, high);
  bool integers = dtype == PG_I64 || dtype == PG_I32 || dtype == PG_I8 || dtype == PG_U8;
  for (int64_t i = 0; i < size(); i++) set(i, integers ? static_cast<double>(between(0, 3)) : real(generator()));
  return *this;
}

Tensor& Tensor::fill(double value) {
  for (int64_t i = 0; i < size(); i++) set(i, value);
  return *this;
}

Tensor Tensor::expand(size_t axis, int64_t count) const {
  Tensor other = *this;
  other.shape[axis] = count, other.stride[axis] = 0;
  return other;
}

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
    infos_[i] = {PG_SIZE(pg_attr_info, value), attrs_[i].kind, 0, static_cast<uint32_t>(at), attrs_[i].name.c_str(), "",
                 nullptr,                      0,              0};
    info_list_.push_back(&infos_[i]);
  }
  op_.size = PG_SIZE(pg_op_info, write_back);
  op_.name = table->kernels[index_]->op;
  op_.attr_count = static_cast<uint32_t>(attrs_.size());
  op_.attrs = info_list_.data();
  describe(inputs_, input_tensors_, input_list_);
  describe(outputs_, output_tensors_, output_list_);
  pg_call call{PG_SIZE(pg_call, attrs), 0, &op_, static_cast<uint32_t>(inputs_.size()),
               static_cast<uint32_t>(outputs_.size()), input_list_.data(), nullptr, output_list_.data(),
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
  launch_ = {PG_SIZE(pg_launch, extents), 0, 0, 0, call.input_count, call.output_count, input_list_.data(),
             output_list_.data(), nullptr, input_addresses_.data(), output_addresses_.data(), nullptr,
             packed_attrs_.data(), {prepared_.workspace == 0 ? 0 : base, (64 - base % 64) % 64}, nullptr};
}

Prepared::~Prepared() {
  if (prepared_.kernel != nullptr) kernels()->release(nullptr, index_, prepared_.kernel);
}

void Prepared::launch() {
  pg_error error = pg::make_error();
  check(kernels()->launch(nullptr, index_, prepared_.kernel, &launch_, &error), error);
}

bool Prepared::packs() const {
  return std::any_of(std::begin(prepared_.pack_bytes), std::end(prepared_.pack_bytes), [](uint64_t b) { return b > 0; });
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

void run(const std::string& op, std::vector<Attr> attrs, std::vector<Tensor*> inputs, std::vector<Tensor*> outputs) {
  Prepared kernel(op, std::move(attrs), std::move(inputs), outputs);
  kernel.launch();
  if (!kernel.packs()) return;
  std::vector<Tensor> before;
  for (Tensor* t : outputs) before.push_back(*t);
  kernel.pack();
  kernel.launch();
  for (size_t i = 0; i < outputs.size(); i++) {
    for (int64_t j = 0; j < outputs[i]->size(); j++) {
      if (std::fabs(outputs[i]->get(j) - before[i].get(j)) > 1e-3 * (1 + std::fabs(before[i].get(j)))) {
        FAIL(op << ": packed and plain launches differ at " << j);
      }
    }
  }
}

double tolerance(uint32_t dtype, int64_t terms) {
  double scale = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
  switch (dtype) {
    case PG_F64: return 1e-13 * scale;
    case PG_F32: return 1e-6 * scale;
    case PG_BF16: return 1.0 / 128;
    case PG_F16: return 1.0 / 1024;
    default: return 0;
  }
}

void check_close(const Tensor& got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  REQUIRE(static_cast<size_t>(got.size()) == expected.size());
  for (int64_t i = 0; i < got.size(); i++) {
    double g = got.get(i), e = expected[static_cast<size_t>(i)];
    if (std::isnan(g) && std::isnan(e)) continue;
    if (g == e || std::fabs(g - e) <= tolerance * (1 + std::fabs(e))) continue;
    FAIL(what << " " << pg::dtype_name(got.dtype) << ": element " << i << " is " << g << ", expected " << e);
  }
  SUCCEED();
}

}  // namespace harness
