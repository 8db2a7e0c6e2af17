// SPDX-License-Identifier: Apache-2.0
// Calls the CPU plugin's kernels through its table, with the schemas, defaults and shape rules of the ops plugin and a
// small host; compares with perigee/kernels/reference.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "perigee/kernel.hpp"
#include "perigee/kernels/reference/operand.hpp"

namespace test {

using pg::reference::Dims;
using pg::reference::Operand;

enum class Layout { dense, reversed, stepped };
inline const Layout kLayouts[] = {Layout::dense, Layout::reversed, Layout::stepped};
inline const uint32_t kAll[] = {PG_F64, PG_F32, PG_F16, PG_BF16, PG_I64, PG_I32, PG_I16, PG_I8, PG_U8, PG_B8};

struct Tensor {
  uint32_t dtype = 0;
  Dims shape, stride;
  std::vector<char> bytes;
  pg_tensor view{};

  Tensor() = default;
  Tensor(uint32_t dtype, Dims shape, Layout layout = Layout::dense);
  Tensor(const Tensor& other) { *this = other; }
  Tensor& operator=(const Tensor& other);
  int64_t count() const { return pg::reference::product(shape); }
  Operand operand() const { return Operand(view, const_cast<char*>(bytes.data())); }
  std::vector<double> values() const { return pg::reference::read<double>(operand()); }
  Tensor& set(const std::vector<double>& values);
  Tensor& random(double low = -2, double high = 2);
  Tensor expand(Dims shape) const;  // stride 0 along axes of size 1
  pg_address address() const { return {count() == 0 ? 0 : reinterpret_cast<uint64_t>(bytes.data()), 0}; }
  pg_tensor placed() const;  // the view with its address
};

struct KernelCall {
  explicit KernelCall(std::string op) : op(std::move(op)) {}
  std::string op;
  std::vector<std::vector<const Tensor*>> inputs;
  std::map<std::string, double> numbers;
  std::map<std::string, Dims> lists;
  int scalar_input = -1;
  double scalar = 0;
  std::vector<uint64_t> seed;  // seed, offset
  bool in_place = false;       // output 0 is input 0
  Layout output_layout = Layout::dense;

  KernelCall& in(const Tensor& t) { return inputs.push_back({&t}), *this; }
  KernelCall& none() { return inputs.push_back({nullptr}), *this; }
  KernelCall& group(std::vector<const Tensor*> g) { return inputs.push_back(std::move(g)), *this; }
  KernelCall& number(int input, double value) { return scalar_input = input, scalar = value, *this; }
  KernelCall& with(const char* name, double value) { return numbers[name] = value, *this; }
  KernelCall& list(const char* name, Dims value) { return lists[name] = std::move(value), *this; }
  // Infers, prepares, launches. Throws pg::Error. Dynamic outputs are cut to their extents.
  std::vector<Tensor> run();
  Tensor one() { return run()[0]; }
};

const pg_device& device();
void* device_self();
const pg_host& host();
bool has_op(const std::string& op);

double tolerance(uint32_t dtype);
void check_close(const Tensor& got, const Tensor& expected, double tolerance, const std::string& what);
void check_values(const Tensor& got, const std::vector<double>& expected, double tolerance = 1e-6);

}  // namespace test
