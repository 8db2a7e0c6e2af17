// SPDX-License-Identifier: Apache-2.0
// Loads the operators' plugin and asks its shape rules. Symbols are plain negative ids; any arithmetic makes a new one.
#pragma once

#include <string>
#include <vector>

#include "perigee/plugin.hpp"

namespace fake {

constexpr int64_t kBatch = PG_DIM_SYMBOLIC - 1, kWidth = PG_DIM_SYMBOLIC - 2;

struct Tensor {
  uint32_t dtype = PG_F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> stride = {};  // empty: dense
  bool absent = false;
};

struct Result {
  int32_t code = 0;
  std::string message;
  std::vector<pg_meta> outputs;
  std::vector<int64_t> shape(size_t i = 0) const {
    return {outputs.at(i).shape, outputs.at(i).shape + outputs.at(i).rank};
  }
  std::vector<int64_t> stride(size_t i = 0) const {
    return {outputs.at(i).stride, outputs.at(i).stride + outputs.at(i).rank};
  }
  uint32_t dtype(size_t i = 0) const { return PG_DTYPE(outputs.at(i).dtype_code, outputs.at(i).dtype_bits); }
};

const pg_ops& table();
const pg_op_info& op(const std::string& name);

// Attributes of one call, by name.
class Attrs {
 public:
  explicit Attrs(const std::string& name);
  Attrs& number(const std::string& attr, double value);
  Attrs& list(const std::string& attr, std::vector<int64_t> values);
  const pg_op_info& info;
  std::vector<uint64_t> bytes;

 private:
  const pg_attr_info& find(const std::string& attr) const;
  void write(uint32_t offset, const void* value, size_t size);
};

// One tensor for each declared input; `groups` where they are variadic.
Result infer(const Attrs& attrs, std::vector<Tensor> inputs, std::vector<uint32_t> groups = {});

}  // namespace fake
