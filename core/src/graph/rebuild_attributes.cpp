// SPDX-License-Identifier: Apache-2.0
// Attributes of calls as JSON documents have them.
#include <cmath>
#include <cstring>

#include "graph/checked_json.hpp"
#include "graph/document.hpp"

namespace perigee::document {
namespace {

template <class T>
void put(std::vector<uint8_t>& attrs, uint32_t offset, const T& value) {
  std::memcpy(attrs.data() + offset, &value, sizeof value);
}

// What is read: a call's packed struct.
struct State {
  const Attributes& about;
  const Op& op;
  std::vector<uint8_t> attrs{};
};

// An integer where it stands without a point.
pg_number tagged(const Json& value, const std::string& what) {
  if (is_int64(value)) return pg::make_number(value.get<int64_t>());
  if (!value.is_array()) return pg::make_number(number_of(value, what));
  if (value.size() != 2) fail(what + ": a complex number has two parts");
  return pg::make_complex(number_of(value[0], what), number_of(value[1], what));
}

int32_t choice(const pg_attr_info& a, const Json& value, const std::string& what) {
  const std::string name = text_of(value, "value", what);
  for (uint32_t i = 0; i < a.choice_count; i++)
    if (name == a.choices[i]) return static_cast<int32_t>(i);
  fail(what + " cannot be " + shown(name));
}

void read_scalar(State& c, const pg_attr_info& a, const Json& value, const std::string& what) {
  check_object(value, what, {"kind", "input", "number"});
  const std::string kind = text_in(value, "kind", what);
  pg_scalar scalar{};
  if (kind == "bool")
    scalar.kind = PG_SCALAR_BOOL;
  else if (kind == "int")
    scalar.kind = PG_SCALAR_INT;
  else if (kind == "float")
    scalar.kind = PG_SCALAR_FLOAT;
  else
    fail(what + ": there is no kind " + shown(kind));
  scalar.input =
      static_cast<int32_t>(index_of(member(value, "input", what), c.op.info->input_count, what + ": \"input\""));
  // A number stands for an input that is not there and would take part in promotion.
  uint32_t flat = 0;
  for (int32_t i = 0; i < scalar.input; i++) flat += c.about.groups[static_cast<size_t>(i)];
  if (c.about.groups[static_cast<size_t>(scalar.input)] != 1 || c.about.present[flat])
    fail(what + ": the input that it stands for is there");
  const pg_number number = tagged(member(value, "number", what), what);
  if (number.kind == PG_SCALAR_COMPLEX) fail(what + ": its number is complex");
  const double real = number.real;
  const bool whole = pg::is_whole(number) || (real == std::floor(real) && std::abs(real) < 0x1p63);
  if ((scalar.kind == PG_SCALAR_INT && !whole) || (scalar.kind == PG_SCALAR_BOOL && real != 0 && real != 1))
    fail(what + ": its number is no " + kind);
  put(c.attrs, a.offset, scalar);
  put(c.attrs, a.value, number);
}

pg_ints ints(const State& c, const pg_attr_info& a, const Json& value, const std::string& what) {
  if (!value.is_array() || value.size() > PG_MAX_RANK)
    fail(what + pg::format(" is not a list of at most %d", PG_MAX_RANK));
  pg_ints list{};
  list.count = static_cast<int64_t>(value.size());
  for (size_t i = 0; i < value.size(); i++) {
    if (a.kind != PG_ATTR_DIMS && !is_int64(value[i])) fail(what + " has an entry that is no whole number");
    list.value[i] = a.kind == PG_ATTR_DIMS ? c.about.dimension(value[i], what) : value[i].get<int64_t>();
  }
  return list;
}

void read_attribute(State& c, const pg_attr_info& a, const Json& value, const std::string& what) {
  switch (a.kind) {
    case PG_ATTR_BOOL:
      if (!value.is_boolean()) fail(what + " is not true or false");
      return put(c.attrs, a.offset, int32_t{value.get<bool>()});
    case PG_ATTR_INT:
    case PG_ATTR_AXIS:
      if (!is_int64(value)) fail(what + " is no whole number that int64 holds");
      return put(c.attrs, a.offset, value.get<int64_t>());
    case PG_ATTR_FLOAT: return put(c.attrs, a.offset, number_of(value, what));
    case PG_ATTR_DTYPE: return put(c.attrs, a.offset, value.is_null() ? 0 : dtype_of(value, what));
    case PG_ATTR_CHOICE: return put(c.attrs, a.offset, choice(a, value, what));
    case PG_ATTR_DEVICE:
      return put(c.attrs, a.offset, value.is_null() ? -1 : c.about.device(text_of(value, "value", what)));
    case PG_ATTR_SCALAR: return read_scalar(c, a, value, what);
    case PG_ATTR_NUMBER: return put(c.attrs, a.offset, tagged(value, what));
    default: return put(c.attrs, a.offset, ints(c, a, value, what));
  }
}

}  // namespace

std::vector<uint8_t> Attributes::read(const Json& json, const std::string& where) const {
  const pg_op_info& info = *op.info;
  State c{*this, op};
  const auto* defaults = static_cast<const uint8_t*>(info.defaults);
  if (info.attr_size > 0) c.attrs.assign(defaults, defaults + info.attr_size);
  const Json& all = member(json, "attributes", where);
  if (!all.is_object()) fail(where + ": \"attributes\" is not an object");
  size_t taken = 0;
  for (uint32_t i = 0; i < info.attr_count; i++) {
    const pg_attr_info& a = *info.attrs[i];
    auto it = all.find(a.name);
    const bool settable =
        !is_draw(c.op, a) && !(c.op.scalar_attr >= 0 && info.attrs[c.op.scalar_attr]->value == a.offset);
    if (it == all.end()) {
      if (a.flags & PG_ATTR_REQUIRED) fail(where + ": the attribute " + a.name + " is missing");
      continue;
    }
    const std::string what = where + ": the attribute " + a.name;
    if (!settable) fail(what + " is not the file's to say");
    check_object(*it, what, {"type", "value"});
    const std::string type = text_in(*it, "type", what);
    if (type != attr_kind_name(a.kind) && !(type == "float" && a.kind == PG_ATTR_NUMBER))  // what it was before
      fail(what + " is no " + attr_kind_name(a.kind) + " there");
    read_attribute(c, a, member(*it, "value", what), what);
    taken++;
  }
  if (taken == all.size()) return c.attrs;
  for (auto& [key, value] : all.items()) {
    bool known = false;
    for (uint32_t i = 0; i < info.attr_count; i++) known = known || key == info.attrs[i]->name;
    if (!known) fail(where + ": the operator has no attribute " + shown(key));
  }
  return c.attrs;
}

}  // namespace perigee::document
