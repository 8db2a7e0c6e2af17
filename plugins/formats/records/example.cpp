// SPDX-License-Identifier: Apache-2.0
#include "example.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace formats {

namespace {

using pg::format;

constexpr uint64_t kVarint = 0, kEight = 1, kLength = 2, kFour = 5;  // kinds on the wire
constexpr const char* kTypes[] = {"", "bytes", "float32", "int64"};

struct WireDamage {};

// Takes a varint off the front. Bits beyond 64 are dropped, and said by `over`.
uint64_t take_varint(std::string_view& text, bool* over = nullptr) {
  uint64_t value = 0;
  for (size_t i = 0; i < 10 && i < text.size(); i++) {
    const auto byte = static_cast<unsigned char>(text[i]);
    value |= static_cast<uint64_t>(byte & 127) << 7 * i;
    if (i == 9 && (byte & 127) > 1 && over != nullptr) *over = true;
    if (byte >= 128) continue;
    text.remove_prefix(i + 1);
    return value;
  }
  throw WireDamage{};
}

struct WireField {
  uint64_t number, kind;
  std::string_view value;
};

// Takes a field off the front of a message.
WireField take_field(std::string_view& text) {
  bool over = false;
  const uint64_t word = take_varint(text, &over);
  WireField field{word >> 3, word & 7, {}};
  uint64_t bytes = 0;
  if (field.kind == kLength) {
    bytes = take_varint(text, &over);
  } else if (field.kind == kVarint) {
    std::string_view rest = text;
    take_varint(rest);
    bytes = text.size() - rest.size();
  } else if (field.kind == kEight || field.kind == kFour) {
    bytes = field.kind == kEight ? 8 : 4;
  } else {
    throw WireDamage{};
  }
  if (over || bytes > text.size()) throw WireDamage{};
  field.value = text.substr(0, bytes);
  text.remove_prefix(bytes);
  return field;
}

}  // namespace

Example::Example(std::vector<RecordField> fields) {
  for (RecordField& field : fields) {
    Rule rule{std::move(field), kBytes, false, {}, 1};
    const std::string &type = rule.field.type, &shape = rule.field.shape;
    if (type == "float32")
      rule.type = kFloat;
    else if (type == "int64")
      rule.type = kInt64;
    else if (type != "bytes")
      pg::fail_argument("types must be int64, float32 or bytes, got \"" + type + "\"");
    rule.any = shape == "any";
    for (const char *at = shape.data(), *end = at + shape.size(); !rule.any && at < end;) {
      int64_t side = 0;
      const auto [stop, code] = std::from_chars(at, end, side);
      if (code != std::errc() || side < 0 || (stop != end && *stop != ','))
        pg::fail_argument("shapes must be such as \"28,28\", or any; got \"" + shape + "\"");
      rule.shape.push_back(side);
      if (__builtin_mul_overflow(rule.count, side, &rule.count)) pg::fail_argument("a shape of too many elements");
      at = stop == end ? end : stop + 1;
    }
    if (rule.shape.size() > (rule.type == kBytes ? 1u : PG_MAX_RANK))
      pg::fail_argument(format("%zu axes are too many for %s", rule.shape.size(), kTypes[rule.type]));
    rules_.push_back(std::move(rule));
  }
  for (size_t i = 0; i < rules_.size(); i++) by_name_[rules_[i].field.name] = i;
}

// Where the lists of the fields are that are wanted.
std::vector<Example::Found> Example::survey(std::string_view bytes) const {
  std::vector<Found> found(rules_.size());
  while (!bytes.empty()) {
    const WireField features = take_field(bytes);
    if (features.number != 1) continue;
    if (features.kind != kLength) throw WireDamage{};
    for (std::string_view entries = features.value; !entries.empty();) {
      const WireField entry = take_field(entries);
      if (entry.number != 1) continue;
      if (entry.kind != kLength) throw WireDamage{};
      std::string_view name, feature;
      for (std::string_view parts = entry.value; !parts.empty();) {
        const WireField part = take_field(parts);
        if (part.number > 2) continue;
        if (part.kind != kLength) throw WireDamage{};
        (part.number == 1 ? name : feature) = part.value;
      }
      const auto wanted = by_name_.find(name);
      while (!feature.empty()) {
        const WireField list = take_field(feature);
        if (list.number < 1 || list.number > 3) continue;
        if (list.kind != kLength) throw WireDamage{};
        if (wanted != by_name_.end()) found[wanted->second] = {static_cast<uint32_t>(list.number), list.value};
      }
    }
  }
  return found;
}

void Example::give(std::string_view bytes, pg::FieldSink& out) const {
  std::vector<Found> found;
  try {
    found = survey(bytes);
  } catch (WireDamage) {
    fail_record("it is no tf.train.Example");
  }
  for (size_t i = 0; i < rules_.size(); i++) {
    const Rule& rule = rules_[i];
    const char* name = rule.field.name.c_str();
    if (found[i].type == 0) {
      if (rule.field.preset == nullptr)
        fail_record(rule.any ? format("it has no field \"%s\"", name)
                             : format("it has no field \"%s\", and spec.%s no default", name, name));
      give_preset(rule, out);
      continue;
    }
    if (found[i].type != rule.type)
      fail_record(format("field \"%s\" is %s, expected %s", name, kTypes[found[i].type], kTypes[rule.type]));
    try {
      if (rule.type == kBytes)
        give_bytes(rule, found[i].list, out);
      else
        give_numbers(rule, found[i].list, out);
    } catch (WireDamage) {
      fail_record(format("field \"%s\" is damaged", name));
    }
  }
}

// Whether the default is to be taken in place of so many values; throws where they are too few or many.
bool Example::is_preset(const Rule& rule, size_t count) {
  if (rule.any || count == static_cast<uint64_t>(rule.count)) return false;
  if (count > 0 || rule.field.preset == nullptr)
    fail_record(format("field \"%s\" has %zu values, expected %lld", rule.field.name.c_str(), count,
                       static_cast<long long>(rule.count)));
  return true;
}

void Example::give_bytes(const Rule& rule, std::string_view list, pg::FieldSink& out) {
  std::vector<std::string_view> values;
  while (!list.empty()) {
    const WireField field = take_field(list);
    if (field.number != 1) continue;
    if (field.kind != kLength) throw WireDamage{};
    values.push_back(field.value);
  }
  if (is_preset(rule, values.size())) return give_preset(rule, out);
  const char* name = rule.field.name.c_str();
  if (rule.any || rule.shape.size() == 1)
    out.texts(name, {values.begin(), values.end()});
  else
    out.bytes(name, values[0].data(), values[0].size());
}

void Example::give_numbers(const Rule& rule, std::string_view list, pg::FieldSink& out) {
  thread_local std::vector<int64_t> whole;
  thread_local std::string floats;
  whole.clear(), floats.clear();
  while (!list.empty()) {
    WireField field = take_field(list);
    if (field.number != 1) continue;
    if (rule.type == kFloat) {
      if ((field.kind != kFour && field.kind != kLength) || field.value.size() % 4 != 0) throw WireDamage{};
      floats += field.value;
      continue;
    }
    if (field.kind != kVarint && field.kind != kLength) throw WireDamage{};
    while (!field.value.empty()) whole.push_back(static_cast<int64_t>(take_varint(field.value)));
  }
  const size_t count = rule.type == kFloat ? floats.size() / 4 : whole.size();
  if (is_preset(rule, count)) return give_preset(rule, out);
  put(rule, rule.type == kFloat ? static_cast<const void*>(floats.data()) : whole.data(), count, out);
}

// Numbers as the tensor that they are.
void Example::put(const Rule& rule, const void* values, size_t count, pg::FieldSink& out) {
  const char* name = rule.field.name.c_str();
  const uint32_t dtype = rule.type == kFloat ? PG_F32 : PG_I64;
  const auto any = static_cast<int64_t>(count);
  void* target = rule.any ? out.tensor(name, dtype, 1, &any)
                          : out.tensor(name, dtype, static_cast<uint32_t>(rule.shape.size()), rule.shape.data());
  if (count != 0) std::memcpy(target, values, count * (rule.type == kFloat ? 4 : 8));
}

void Example::give_preset(const Rule& rule, pg::FieldSink& out) {
  const pg_field& preset = *rule.field.preset;
  const char* name = rule.field.name.c_str();
  if (rule.type != kBytes)
    return put(rule, preset.data, static_cast<size_t>(preset.bytes) / (rule.type == kFloat ? 4 : 8), out);
  const auto* text = static_cast<const char*>(preset.data);
  const pg_field& ends = *rule.field.preset_ends;
  std::vector<std::string> values;
  for (int64_t k = 0, begin = 0; k < ends.shape[0]; k++) {
    const int64_t end = static_cast<const int64_t*>(ends.data)[k];
    values.push_back(end > begin ? std::string(text + begin, text + end) : "");
    begin = end;
  }
  if (rule.any || rule.shape.size() == 1)
    out.texts(name, values);
  else
    out.text(name, values[0]);
}

}  // namespace formats
