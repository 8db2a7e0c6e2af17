// SPDX-License-Identifier: Apache-2.0
// Options of sources, transforms and codecs: the packed struct of an attribute list, with texts, lists and tensors of
// its own.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "perigee/data.h"
#include "tensor/tensor.hpp"

namespace perigee {

// A tensor among options.
struct OptionTensor {
  std::string name;
  TensorRef tensor;
  MetaRef piece;  // of a slice along its first axis; null: it has no axes
  pg_field field;
};

// Slices of it: one, which is not copied, and many, one behind the other, which are. Throw on what is not inside.
TensorRef slice_of(const OptionTensor& option, int64_t index);
TensorRef slices_of(const OptionTensor& option, const int64_t* indices, int64_t count);

// A whole number as text; throws, naming the option.
int64_t whole_number(const std::string& name, const std::string& value);

class Options {
 public:
  // `given`: such a struct, whose texts are copied. Tensors are not looked for in it.
  Options(const pg_attr_info* const* attrs, uint32_t count, uint32_t size, const void* given);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  // One as text, of a list one text more; throws, naming the option. false: there is none of that name.
  bool set(const std::string& name, const std::string& value);
  // A tensor: the one of a PG_ATTR_TENSOR, or, in the order of names, one of a PG_ATTR_TENSORS; `key` is its name
  // there.
  void set_tensor(const std::string& name, const std::string& key, const Tensor& tensor);
  const void* data() const { return words_.data(); }
  // The one that a plugin was shown as `field`; NULL: none.
  const OptionTensor* tensor_of(const pg_field* field) const;

 private:
  struct Texts {
    uint32_t offset = 0;
    std::deque<std::string> kept;
    std::vector<const char*> list;
    pg_texts raw{};
  };
  struct Tensors {
    uint32_t offset = 0;
    std::vector<const pg_field*> list;
    pg_tensors raw{};
  };
  void put(uint32_t offset, const void* value, size_t bytes);
  void put_text(uint32_t offset, std::string value);
  void put_texts(uint32_t offset, const pg_texts* given);
  void add_text(Texts& texts, std::string text);
  const pg_attr_info* find(const std::string& name) const;
  const pg_attr_info* const* attrs_;
  const uint32_t count_;
  std::vector<uint64_t> words_;
  std::deque<std::string> texts_;
  std::deque<Texts> lists_;
  std::deque<OptionTensor> tensors_;
  std::deque<Tensors> tables_;
};

using OptionsRef = std::shared_ptr<const Options>;

}  // namespace perigee
