// SPDX-License-Identifier: Apache-2.0
// Options of sources, transforms and codecs: the packed struct of an attribute list, with texts of its own.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "perigee/data.h"

namespace perigee {

// A whole number as text; throws, naming the option.
int64_t whole_number(const std::string& name, const std::string& value);

class Options {
 public:
  // `given`: such a struct, whose texts are copied.
  Options(const pg_attr_info* const* attrs, uint32_t count, uint32_t size, const void* given);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  // One as text; throws, naming the option. false: there is none of that name.
  bool set(const std::string& name, const std::string& value);
  const void* data() const { return words_.data(); }

 private:
  void put(uint32_t offset, const void* value, size_t bytes);
  void put_text(uint32_t offset, std::string value);
  const pg_attr_info* const* attrs_;
  const uint32_t count_;
  std::vector<uint64_t> words_;
  std::deque<std::string> texts_;
};

}  // namespace perigee
