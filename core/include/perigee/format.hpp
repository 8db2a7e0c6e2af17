// SPDX-License-Identifier: Apache-2.0
// perigee/format.hpp: how a file format is written: a class with the members below, which registers itself.
//
//   struct Safetensors {
//     static constexpr const char *name = "safetensors", *doc = "...", *extensions = ".safetensors";
//     static constexpr const char* options = "";                       // "delimiter=, skip=0": names and defaults
//     static void read(const std::string& path, const pg::Options& options, pg::Sink& sink);
//     static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes);
//   };                                                               // without write: read only
//   PG_FORMAT(Safetensors);
//
// Files are not trusted: what is read from one is checked before it is used. pg::fail_data says where and what is
// wrong. A plugin is, or has in its pg::Provides, a pg::FormatTable.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg {

[[noreturn]] inline void fail_data(const std::string& path, const std::string& message) {
  throw Error(PG_E_DATA_LOSS, path + ": " + message);
}

// The host's side of reading.
class Sink {
 public:
  explicit Sink(const pg_sink* raw) : raw_(raw) {}

  // Memory for a dense, row-major tensor, to be filled before the next call. NULL only for an empty tensor.
  void* tensor(const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape) {
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

  void note(const std::string& key, const std::string& value) {
    pg_error error = make_error();
    check(raw_->note(raw_->context, key.c_str(), value.c_str(), &error), error);
  }

 private:
  const pg_sink* raw_;
};

// What the caller asked for, over the format's defaults. Unknown names are errors.
class Options {
 public:
  Options(const char* declared, const char* given) {
    for_each(declared == nullptr ? "" : declared, ' ',
             [&](std::string key, std::string value) { values_[key] = value; });
    for_each(given == nullptr ? "" : given, '\n', [&](std::string key, std::string value) {
      if (values_.count(key) == 0) {
        fail_argument(format("unknown option \"%s\"; known: %s", key.c_str(), declared == nullptr ? "" : declared));
      }
      values_[key] = value;
    });
  }

  const std::string& text(const char* key) const { return values_.at(key); }
  int64_t integer(const char* key) const {
    const std::string& value = text(key);
    char* end = nullptr;
    long long number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0')
      fail_argument(format("option %s: expected a whole number, got \"%s\"", key, value.c_str()));
    return number;
  }

 private:
  template <class Visit>
  static void for_each(const std::string& list, char separator, Visit&& visit) {
    for (size_t begin = 0; begin < list.size();) {
      size_t end = std::min(list.find(separator, begin), list.size());
      std::string item = list.substr(begin, end - begin);
      size_t equals = item.find('=');
      if (equals != std::string::npos) visit(item.substr(0, equals), item.substr(equals + 1));
      begin = end + 1;
    }
  }
  std::map<std::string, std::string> values_;
};

// A tensor to write: dense, row-major, in host memory.
struct Item {
  std::string name;
  uint32_t dtype;
  std::vector<int64_t> shape;
  const void* data;
  uint64_t bytes;
};
using Items = std::vector<Item>;
using Notes = std::vector<std::pair<std::string, std::string>>;

namespace detail {

inline Items items_of(uint32_t count, const pg_named_tensor* const* raw) {
  Items items;
  for (uint32_t i = 0; i < count; i++) {
    const pg_tensor& t = *raw[i]->tensor;
    items.push_back({raw[i]->name, dtype_of(t), std::vector<int64_t>(t.shape, t.shape + t.rank),
                     reinterpret_cast<const void*>(t.buffer + t.offset),
                     static_cast<uint64_t>(element_count(t) * dtype_bytes(dtype_of(t)))});
  }
  return items;
}

template <class Format>
int32_t format_read(void*, const char* path, const char* options, const pg_sink* sink, pg_error* error) noexcept {
  return guard(error, Format::name, [&] {
    Sink target(sink);
    Format::read(path, Options(Format::options, options), target);
  });
}

template <class Format>
int32_t format_write(void*, const char* path, uint32_t count, const pg_named_tensor* const* items, uint32_t note_count,
                     const char* const* notes, pg_error* error) noexcept {
  return guard(error, Format::name, [&] {
    Notes pairs;
    for (uint32_t i = 0; i < note_count; i++) pairs.emplace_back(notes[2 * i], notes[2 * i + 1]);
    Format::write(path, items_of(count, items), pairs);
  });
}

}  // namespace detail

// ---- registration ----

inline std::vector<const pg_format_info*>& format_entries() {
  static auto* entries = new std::vector<const pg_format_info*>();  // never destroyed: tables point into it
  return *entries;
}

template <class Format>
int add_format() {
  static pg_format_info info{};
  info = {
      PG_SIZE(pg_format_info, write), 0,      Format::name, Format::doc, Format::extensions, nullptr, Format::options,
      detail::format_read<Format>,    nullptr};
  if constexpr (requires(const Items& items, const Notes& notes) { Format::write(std::string(), items, notes); }) {
    info.write = detail::format_write<Format>;
  }
  format_entries().push_back(&info);
  return 0;
}

inline const pg_formats* format_table() {
  static pg_formats table{};
  table = {PG_SIZE(pg_formats, formats), static_cast<uint32_t>(format_entries().size()), format_entries().data()};
  return &table;
}

struct FormatTable {
  static constexpr const char* id = PG_IFACE_FORMATS;
  template <class Plugin>
  const void* table() const {
    return format_table();
  }
};

}  // namespace pg

#define PG_FORMAT(Type) [[maybe_unused]] static const int pg_format_##Type = pg::add_format<Type>()
