// SPDX-License-Identifier: Apache-2.0
#include "data/options.hpp"

#include <charconv>
#include <cstring>

#include "perigee/plugin.hpp"

namespace perigee {

namespace {

template <class Number>
Number number_of(const std::string& name, const std::string& value, const char* what) {
  Number number{};
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size())
    pg::fail_argument(pg::format("option %s: expected %s, got \"%s\"", name.c_str(), what, value.c_str()));
  return number;
}

int32_t choice_of(const pg_attr_info& attr, const std::string& value) {
  std::string known;
  for (uint32_t i = 0; i < attr.choice_count; i++) {
    if (value == attr.choices[i]) return static_cast<int32_t>(i);
    known += (i == 0 ? "\"" : i + 1 == attr.choice_count ? " or \"" : ", \"") + std::string(attr.choices[i]) + "\"";
  }
  pg::fail_argument(pg::format("option %s: expected %s, got \"%s\"", attr.name, known.c_str(), value.c_str()));
}

}  // namespace

int64_t whole_number(const std::string& name, const std::string& value) {
  return number_of<int64_t>(name, value, "a whole number");
}

Options::Options(const pg_attr_info* const* attrs, uint32_t count, uint32_t size, const void* given)
    : attrs_(attrs), count_(count), words_((size + 7) / 8 + 1) {
  if (size != 0) std::memcpy(words_.data(), given, size);
  for (uint32_t i = 0; i < count; i++) {
    if (attrs[i]->kind != PG_ATTR_TEXT) continue;
    const char* text;
    std::memcpy(&text, static_cast<const char*>(given) + attrs[i]->offset, sizeof text);
    put_text(attrs[i]->offset, text);
  }
}

void Options::put(uint32_t offset, const void* value, size_t bytes) {
  std::memcpy(reinterpret_cast<char*>(words_.data()) + offset, value, bytes);
}

void Options::put_text(uint32_t offset, std::string value) {
  const char* text = texts_.emplace_back(std::move(value)).c_str();
  put(offset, &text, sizeof text);
}

bool Options::set(const std::string& name, const std::string& value) {
  for (uint32_t i = 0; i < count_; i++) {
    const pg_attr_info& attr = *attrs_[i];
    if (name != attr.name || (attr.flags & PG_ATTR_INTERNAL) != 0) continue;
    switch (attr.kind) {
      case PG_ATTR_TEXT: put_text(attr.offset, value); break;
      case PG_ATTR_INT: {
        const int64_t number = whole_number(name, value);
        put(attr.offset, &number, sizeof number);
        break;
      }
      case PG_ATTR_FLOAT: {
        const auto number = number_of<double>(name, value, "a number");
        put(attr.offset, &number, sizeof number);
        break;
      }
      case PG_ATTR_BOOL: {
        if (value != "true" && value != "false")
          pg::fail_argument(pg::format("option %s: expected true or false, got \"%s\"", name.c_str(), value.c_str()));
        const int32_t on = value == "true";
        put(attr.offset, &on, sizeof on);
        break;
      }
      case PG_ATTR_CHOICE: {
        const int32_t index = choice_of(attr, value);
        put(attr.offset, &index, sizeof index);
        break;
      }
      default: pg::fail_support(pg::format("option %s: it is of a kind that cannot be given as text", name.c_str()));
    }
    return true;
  }
  return false;
}

}  // namespace perigee
