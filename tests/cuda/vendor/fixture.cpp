// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "copy.hpp"
#include "dtypes.hpp"

namespace vendor_test {
namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <class Body>
void with_dtype(uint32_t dtype, Body&& body) {
  cuda::with_any(dtype, [&](auto tag) { body(typename decltype(tag)::type{}); });
}

pg_host make_host() {
  pg_host host{};
  host.size = sizeof host;
  host.log = [](void*, int32_t, const char* text) { log_lines().push_back(text); };
  return host;
}

}  // namespace

std::vector<std::string>& log_lines() {
  static std::vector<std::string> lines;
  return lines;
}
void open_host() {
  static const pg_host table = make_host();
  pg::host = &table;
}

Stream::Stream() { check(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking)); }
Stream::~Stream() { check(cudaStreamDestroy(native)); }
void Stream::finish() const { check(cudaStreamSynchronize(native)); }

Data::Data(uint32_t dtype, int64_t count, uint32_t seed, int64_t skip) : dtype_(dtype) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(-20, 20);
  with_dtype(dtype, [&](auto one) {
    using S = decltype(one);
    check(cudaMalloc(&allocation_, static_cast<size_t>(std::max<int64_t>(count + skip, 1)) * sizeof(S)));
    S* first = static_cast<S*>(allocation_) + skip;
    address_ = first;
    std::vector<S> values(static_cast<size_t>(count));
    bool real = (pg::dtype_class(dtype) & PG_M_FLOAT) != 0;
    for (S& value : values) value = cuda::pack<S>(real ? pick(random) / 16.0 : pick(random));
    if (count == 0) return;
    check(cudaMemcpy(first, values.data(), values.size() * sizeof(S), cudaMemcpyHostToDevice));
  });
}
Data::~Data() { check(cudaFree(allocation_)); }

double Data::at(int64_t i) const {
  double result = 0;
  with_dtype(dtype_, [&](auto one) {
    using S = decltype(one);
    S value;
    check(cudaMemcpy(&value, static_cast<const S*>(address_) + i, sizeof value, cudaMemcpyDeviceToHost));
    result = static_cast<double>(cuda::unpack(value));
  });
  return result;
}

void Data::set(int64_t i, double value) {
  with_dtype(dtype_, [&](auto one) {
    using S = decltype(one);
    S packed = cuda::pack<S>(value);
    check(cudaMemcpy(static_cast<S*>(address_) + i, &packed, sizeof packed, cudaMemcpyHostToDevice));
  });
}

Workspace::Workspace(uint64_t bytes) {
  if (bytes > 0) check(cudaMalloc(&address_, bytes));
}
Workspace::~Workspace() { check(cudaFree(address_)); }

double tolerance(uint32_t dtype, int64_t terms) {
  double step = dtype == PG_F64 ? 0x1p-52 : dtype == PG_F32 ? 0x1p-23 : dtype == PG_F16 ? 0x1p-10 : 0x1p-7;
  bool real = (pg::dtype_class(dtype) & PG_M_FLOAT) != 0;
  return real ? step * (4 + static_cast<double>(terms) * (dtype == PG_F16 || dtype == PG_BF16 ? 0.1 : 1)) : 0;
}

uint64_t calls_of(const char* name) {
  auto all = standin::calls();
  auto found = all.find(name);
  return found == all.end() ? 0 : found->second;
}

}  // namespace vendor_test

// The plugin's copies are tested elsewhere; here plain loops do.
namespace cuda {

void copy_tensor(cudaStream_t stream, const pg_tensor& target, const pg_tensor& source) {
  std::vector<int64_t> shape(target.shape, target.shape + target.rank);
  std::vector<int64_t> to(target.stride, target.stride + target.rank), from(source.stride, source.stride + target.rank);
  auto* out = reinterpret_cast<char*>(target.buffer + target.offset);
  auto* in = reinterpret_cast<const char*>(source.buffer + source.offset);
  auto item = static_cast<size_t>(pg::dtype_bytes(pg::dtype_of(target)));
  int64_t count = pg::element_count(target);
  vendor_test::check(standin::enqueue(stream, "copy", [=] {
    for (int64_t i = 0; i < count; i++) {
      int64_t at_out = 0, at_in = 0, rest = i;
      for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) {
        at_out += rest % shape[d] * to[d], at_in += rest % shape[d] * from[d];
      }
      std::memcpy(out + at_out * static_cast<int64_t>(item), in + at_in * static_cast<int64_t>(item), item);
    }
  }));
}

}  // namespace cuda
