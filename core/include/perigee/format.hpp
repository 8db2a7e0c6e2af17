// SPDX-License-Identifier: Apache-2.0
// perigee/format.hpp: how a file format is written: a class with the members below, which registers itself.
//
//   struct Safetensors {
//     static constexpr const char *name = "safetensors", *doc = "...", *extensions = ".safetensors";
//     static constexpr const char* options = "";                       // "delimiter=, skip=0": names and defaults
//     static void read(const std::string& path, const pg::Options& options, pg::Sink& sink);
//     static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes);
//   };                                               // without write: read only; without read: write only
//   PG_FORMAT(Safetensors);
//
// Files are not trusted: what is read from one is checked before it is used. pg::fail_data says where and what is
// wrong. A plugin is, or has in its pg::Provides, a pg::FormatTable.
#pragma once

#include <map>
#include <vector>

#include "perigee/plugin.hpp"

namespace pg {

[[noreturn]] void fail_data(const std::string& path, const std::string& message);

// The host's side of reading.
class Sink {
 public:
  explicit Sink(const pg_sink* raw) : raw_(raw) {}

  // Memory for a dense, row-major tensor, to be filled before the next call. NULL only for an empty tensor.
  void* tensor(const std::string& name, uint32_t dtype, const std::vector<int64_t>& shape);

  void note(const std::string& key, const std::string& value);

 private:
  const pg_sink* raw_;
};

// What the caller asked for, over the format's defaults. Unknown names are errors.
class Options {
 public:
  Options(const char* declared, const char* given);
  ~Options();

  const std::string& text(const char* key) const;
  int64_t integer(const char* key) const;

 private:
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

Items items_of(uint32_t count, const pg_named_tensor* const* raw);
Notes notes_of(uint32_t count, const char* const* raw);

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
  return guard(error, Format::name, [&] { Format::write(path, items_of(count, items), notes_of(note_count, notes)); });
}

}  // namespace detail

// ---- registration ----

void add_format(const pg_format_info& info);

template <class Format>
int add_format() {
  static pg_format_info info{};
  info.size = PG_SIZE(pg_format_info, write);
  info.name = Format::name, info.doc = Format::doc;
  info.extensions = Format::extensions, info.options = Format::options;
  if constexpr (requires(const Options& options, Sink& sink) { Format::read(std::string(), options, sink); }) {
    info.read = detail::format_read<Format>;
  }
  if constexpr (requires(const Items& items, const Notes& notes) { Format::write(std::string(), items, notes); }) {
    info.write = detail::format_write<Format>;
  }
  add_format(info);
  return 0;
}

const pg_formats* format_table();

struct FormatTable {
  static constexpr const char* id = PG_IFACE_FORMATS;
  template <class Plugin>
  const void* table() const {
    return format_table();
  }
};

}  // namespace pg

#define PG_FORMAT(Type) [[maybe_unused]] static const int pg_format_##Type = pg::add_format<Type>()
