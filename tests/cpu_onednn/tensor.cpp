// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "harness.hpp"

namespace harness {
namespace {

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

Tensor::Tensor(uint32_t dtype, Dims shape_, Layout layout)
    : dtype(dtype), shape(std::move(shape_)), stride(shape.size()) {
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
    case PG_BF16:
      element<uint16_t>(storage, p) = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
      break;
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

}  // namespace harness
