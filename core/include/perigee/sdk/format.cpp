// SPDX-License-Identifier: Apache-2.0
#include "perigee/format.hpp"

#include <algorithm>
#include <cstdlib>

#include "perigee/sdk/declared.hpp"

namespace pg {

void fail_data(const std::string& path, const std::string& message) {
  throw Error(PG_E_DATA_LOSS, path + ": " + message);
}

void* Sink::tensor(const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape) {
  if (shape.size() > PG_MAX_RANK) {
    fail_support(
        format("\"%s\" has %zu dimensions; at most %d are supported", name.c_str(), shape.size(), PG_MAX_RANK));
  }
  bool empty = false;
  for (int64_t dimension : shape) empty |= dimension == 0;
  pg_error error = make_error();
  void* memory =
      raw_->tensor(raw_->context, name.c_str(), dtype, static_cast<uint32_t>(shape.size()), shape.data(), &error);
  if (memory == nullptr && (error.code != PG_OK || !empty)) {
    throw Error(error.code == PG_OK ? PG_E_INTERNAL : error.code, error.message, error.native);
  }
  return memory;
}

void Sink::note(const std::string& key, const std::string& value) {
  pg_error error = make_error();
  check(raw_->note(raw_->context, key.c_str(), value.c_str(), &error), error);
}

namespace {

template <class Visit>
void for_each(const std::string& list, char separator, Visit&& visit) {
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(separator, begin), list.size());
    std::string item = list.substr(begin, end - begin);
    size_t equals = item.find('=');
    if (equals != std::string::npos) visit(item.substr(0, equals), item.substr(equals + 1));
    begin = end + 1;
  }
}

}  // namespace

Options::Options(const char* declared, const char* given) {
  for_each(declared == nullptr ? "" : declared, ' ', [&](std::string key, std::string value) { values_[key] = value; });
  for_each(given == nullptr ? "" : given, '\n', [&](std::string key, std::string value) {
    if (values_.count(key) == 0) {
      fail_argument(format("unknown option \"%s\"; known: %s", key.c_str(), declared == nullptr ? "" : declared));
    }
    values_[key] = value;
  });
}
Options::~Options() = default;

const std::string& Options::text(const char* key) const { return values_.at(key); }
int64_t Options::integer(const char* key) const {
  const std::string& value = text(key);
  char* end = nullptr;
  long long number = std::strtoll(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0')
    fail_argument(format("option %s: expected a whole number, got \"%s\"", key, value.c_str()));
  return number;
}

namespace detail {

Items items_of(uint32_t count, const pg_named_tensor* const* raw) {
  Items items;
  for (uint32_t i = 0; i < count; i++) {
    const pg_tensor& t = *raw[i]->tensor;
    items.push_back({raw[i]->name, dtype_of(t), std::vector<int64_t>(t.shape, t.shape + t.rank),
                     reinterpret_cast<const void*>(t.buffer + t.offset),
                     static_cast<uint64_t>(element_count(t) * dtype_bytes(dtype_of(t)))});
  }
  return items;
}

Notes notes_of(uint32_t count, const char* const* raw) {
  Notes notes;
  for (uint32_t i = 0; i < count; i++) notes.emplace_back(raw[2 * i], raw[2 * i + 1]);
  return notes;
}

}  // namespace detail

// ---- registration ----

void add_format(const pg_format_info& info) { declared<pg_format_info>().push_back(&info); }

const pg_formats* format_table() {
  static pg_formats table{};
  auto& entries = declared<pg_format_info>();
  table = {PG_SIZE(pg_formats, formats), static_cast<uint32_t>(entries.size()), entries.data()};
  return &table;
}

}  // namespace pg
