// SPDX-License-Identifier: Apache-2.0
// Drives the CPU plugin's kernels through their table, with a small host of its own: no core, no schemas. Tensors are
// seen as doubles, so that one naive reference serves all dtypes.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "perigee/kernel.hpp"

namespace harness {

using Dims = std::vector<int64_t>;

// How a tensor lies in memory.
enum class Layout { kDense, kReversed, kStepped, kChannelsLast };

struct Tensor {
  uint32_t dtype = PG_F32;
  Dims shape, stride;
  std::vector<unsigned char> storage;

  Tensor() = default;
  Tensor(uint32_t dtype, Dims shape, Layout layout = Layout::kDense);
  int64_t size() const;
  double get(int64_t index) const;  // by row-major position
  void set(int64_t index, double value);
  double at(std::initializer_list<int64_t> index) const;
  int64_t position(int64_t index) const;             // in elements of storage
  Tensor& random(double low = -1, double high = 1);  // integers for integer dtypes
  Tensor& fill(double value);
  Tensor expand(size_t axis, int64_t count) const;  // stride 0 along an axis of size 1
};

std::mt19937& generator();
int64_t between(int64_t low, int64_t high);  // inclusive
Layout any_layout();

struct Attr {
  std::string name;
  uint32_t kind;
  pg_ints ints{};
  double number = 0;
  Attr(std::string name, double number, uint32_t kind = PG_ATTR_FLOAT);
  Attr(std::string name, Dims values);
  static Attr flag(std::string name, bool on) { return {std::move(name), on ? 1.0 : 0.0, PG_ATTR_BOOL}; }
  static Attr integer(std::string name, int64_t value) {
    return {std::move(name), static_cast<double>(value), PG_ATTR_INT};
  }
};

// A kernel prepared for given tensors (absent ones NULL), launched as often as wanted.
class Prepared {
 public:
  Prepared(const std::string& op, std::vector<Attr> attrs, std::vector<Tensor*> inputs, std::vector<Tensor*> outputs);
  ~Prepared();
  Prepared(const Prepared&) = delete;
  void launch();
  void pack();  // every input that has a private layout; later launches use it
  bool packs() const;
  uint64_t workspace() const { return prepared_.workspace; }

 private:
  void describe(const std::vector<Tensor*>& from, std::vector<pg_tensor>& tensors, std::vector<const pg_tensor*>& list);
  uint32_t index_ = 0;
  pg_op_info op_{};
  std::vector<Attr> attrs_;
  std::vector<pg_attr_info> infos_;
  std::vector<const pg_attr_info*> info_list_;
  std::vector<unsigned char> packed_attrs_;
  std::vector<Tensor*> inputs_, outputs_;
  std::vector<pg_tensor> input_tensors_, output_tensors_;
  std::vector<const pg_tensor*> input_list_, output_list_;
  std::vector<pg_address> input_addresses_, output_addresses_, packed_addresses_;
  std::vector<unsigned char> workspace_;
  std::vector<std::vector<unsigned char>> packs_;
  pg_prepared prepared_{};
  pg_launch launch_{};
};

// Prepares, launches, and launches again with packed inputs where the kernel wants them: both must agree to tolerance.
void run(const std::string& op, std::vector<Attr> attrs, std::vector<Tensor*> inputs, std::vector<Tensor*> outputs);

// Largest |got - expected| / (1 + |expected|) allowed for sums of `terms` products.
double tolerance(uint32_t dtype, int64_t terms);
void check_close(const Tensor& got, const std::vector<double>& expected, double tolerance, const std::string& what);

}  // namespace harness
