// SPDX-License-Identifier: Apache-2.0
// Values of a JSON document that nobody vouches for. What is not as asked throws PG_E_DATA_LOSS; `where` begins the
// message.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "registry/registry.hpp"

namespace perigee::document {

using Json = nlohmann::json;

[[noreturn]] inline void fail(const std::string& what) { pg::fail(PG_E_DATA_LOSS, what); }

inline std::string shown(const std::string& name) { return "'" + name.substr(0, 80) + "'"; }

inline const Json& member(const Json& object, const char* key, const std::string& where) {
  auto it = object.find(key);
  if (it == object.end()) fail(where + ": it has no \"" + key + "\"");
  return *it;
}

inline void check_object(const Json& json, const std::string& where, std::initializer_list<const char*> keys) {
  if (!json.is_object()) fail(where + " is not an object");
  for (auto& [key, value] : json.items()) {
    bool known = false;
    for (const char* k : keys) known = known || key == k;
    if (!known) fail(where + ": it has an unknown " + shown(key));
  }
}

inline const Json& list_of(const Json& object, const char* key, const std::string& where) {
  const Json& list = member(object, key, where);
  if (!list.is_array()) fail(where + ": \"" + key + "\" is not a list");
  return list;
}

inline std::string text_of(const Json& json, const char* key, const std::string& where) {
  if (!json.is_string()) fail(where + ": \"" + key + "\" is not a text");
  std::string text = json.get<std::string>();
  if (text.empty() || text.find('\0') != std::string::npos) fail(where + ": \"" + key + "\" is empty or has a NUL");
  return text;
}

inline std::string text_in(const Json& object, const char* key, const std::string& where) {
  return text_of(member(object, key, where), key, where);
}

inline bool flag_in(const Json& object, const char* key, bool otherwise, const std::string& where) {
  auto it = object.find(key);
  if (it == object.end()) return otherwise;
  if (!it->is_boolean() || it->get<bool>() == otherwise)
    fail(where + ": \"" + key + "\" is not " + (otherwise ? "false" : "true"));
  return !otherwise;
}

inline bool is_int64(const Json& json) {
  return json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
}

inline uint32_t index_of(const Json& json, size_t limit, const std::string& what) {
  if (!is_int64(json) || json.get<int64_t>() < 0 || static_cast<uint64_t>(json.get<int64_t>()) >= limit)
    fail(what + pg::format(" is not a whole number below %zu", limit));
  return static_cast<uint32_t>(json.get<int64_t>());
}

inline uint32_t dtype_of(const Json& json, const std::string& where) {
  static constexpr uint32_t kAll[] = {PG_F64, PG_F32, PG_F16, PG_BF16, PG_I64, PG_I32,
                                      PG_I16, PG_I8,  PG_U8,  PG_B8,   PG_C64, PG_C128};
  const std::string name = text_of(json, "dtype", where);
  for (uint32_t dtype : kAll)
    if (name == pg::dtype_name(dtype)) return dtype;
  fail(where + ": there is no dtype " + shown(name));
}

inline double number_of(const Json& json, const std::string& where) {
  if (json.is_number()) return json.get<double>();
  const std::string text = json.is_string() ? json.get<std::string>() : "";
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "-0") return -0.0;
  fail(where + " is not a number");
}

// The attributes of a call.
struct Attributes {
  const Op& op;
  const std::vector<uint32_t>& groups;  // tensors in each declared input
  const std::vector<bool>& present;     // by flat input
  std::function<int64_t(const Json&, const std::string& where)> dimension;
  std::function<int32_t(const std::string& name)> device;

  // The packed struct that a node's "attributes" tell; what they do not is as the operator has it.
  std::vector<uint8_t> read(const Json& node, const std::string& where) const;
};

}  // namespace perigee::document
