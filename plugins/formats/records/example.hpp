// SPDX-License-Identifier: Apache-2.0
// tf.train.Example: named lists of whole numbers, of floats or of byte strings. Example has Features as 1, Features a
// map as 1 (entries of a name, 1, and a Feature, 2), Feature one of three lists: bytes 1, float 2, int64 3.
#pragma once

#include <unordered_map>

#include "kind.hpp"

namespace formats {

class Example {
 public:
  explicit Example(std::vector<RecordField> fields);
  // The fields that a spec asks for, of the bytes of an Example. Throws as RecordKind::give does.
  void give(std::string_view bytes, pg::FieldSink& out) const;

 private:
  enum Type : uint32_t { kBytes = 1, kFloat = 2, kInt64 = 3 };
  struct Rule {
    RecordField field;
    Type type;
    bool any;  // as many as there are
    std::vector<int64_t> shape;
    int64_t count;
  };
  struct Found {
    uint32_t type = 0;  // 0: it is not there
    std::string_view list;
  };
  std::vector<Found> survey(std::string_view bytes) const;
  static void give_bytes(const Rule& rule, std::string_view list, pg::FieldSink& out);
  static void give_numbers(const Rule& rule, std::string_view list, pg::FieldSink& out);
  static void give_preset(const Rule& rule, pg::FieldSink& out);
  static bool is_preset(const Rule& rule, size_t count);
  static void put(const Rule& rule, const void* values, size_t count, pg::FieldSink& out);

  std::vector<Rule> rules_;
  std::unordered_map<std::string_view, size_t> by_name_;
};

}  // namespace formats
