// SPDX-License-Identifier: Apache-2.0
// safetensors: 8 bytes of header length (little endian), a JSON header, the tensors' bytes.
// https://huggingface.co/docs/safetensors: its limits and checks are kept, since files come from anywhere.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "file.hpp"

namespace {

using formats::File;
using nlohmann::json;
using pg::format;

constexpr uint64_t kMaxHeader = 100'000'000;
constexpr const char* kMetadata = "__metadata__";

struct DtypeName {
  const char* name;
  uint32_t dtype;  // 0: a dtype of the format that Perigee has not
};
constexpr DtypeName kDtypes[] = {
    {"F64", PG_F64}, {"F32", PG_F32}, {"F16", PG_F16}, {"BF16", PG_BF16}, {"I64", PG_I64},
    {"I32", PG_I32}, {"I16", PG_I16}, {"I8", PG_I8},   {"U8", PG_U8},     {"BOOL", PG_B8},
    {"C64", PG_C64}, {"U16", 0},      {"U32", 0},      {"U64", 0},        {"F8_E4M3", 0},
    {"F8_E5M2", 0},  {"F8_E8M0", 0},  {"F6_E2M3", 0},  {"F6_E3M2", 0},    {"F4", 0},
};

struct Entry {
  std::string name;
  uint32_t dtype = 0;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

// Refuses what a JSON parser lets pass: a key twice, and nesting that no header has.
class HeaderGuard {
 public:
  explicit HeaderGuard(const std::string& path) : path_(path) {}
  bool operator()(int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (depth > 3) pg::fail_data(path_, "header: nested too deeply");
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(value.get<std::string>()).second) {
      pg::fail_data(path_, "header: \"" + value.get<std::string>() + "\" stands there twice");
    }
    return true;
  }

 private:
  const std::string& path_;
  std::vector<std::set<std::string>> keys_;
};

json parse_header(const std::string& path, const std::string& text) {
  if (text.empty() || text[0] != '{') pg::fail_data(path, "header: expected a JSON object at byte 8");
  try {
    return json::parse(text, HeaderGuard(path));
  } catch (const json::parse_error& e) {
    pg::fail_data(path, format("header: not valid JSON at byte %zu", e.byte + 7));
  } catch (const json::out_of_range&) {
    pg::fail_data(path, "header: a number is too large");
  }
}

uint32_t dtype_from(const std::string& path, const std::string& where, const json& value) {
  if (!value.is_string()) pg::fail_data(path, where + "dtype is not a string");
  const auto& name = value.get_ref<const std::string&>();
  for (const DtypeName& known : kDtypes) {
    if (name != known.name) continue;
    if (known.dtype == 0) pg::fail_support(path + ": " + where + "dtype " + name + " is not supported");
    return known.dtype;
  }
  pg::fail_data(path, where + "unknown dtype \"" + name + "\"");
}

// Elements, or an error where the product or the bytes overflow.
uint64_t checked_bytes(const std::string& path, const std::string& where, const Entry& entry) {
  int64_t bytes = pg::dtype_bytes(entry.dtype);
  for (int64_t dimension : entry.shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) pg::fail_data(path, where + "the shape overflows");
  }
  return static_cast<uint64_t>(bytes);
}

Entry entry_from(const std::string& path, const std::string& name, const json& value, uint64_t data_bytes) {
  std::string where = "tensor \"" + name.substr(0, 80) + "\": ";
  if (name.find('\0') != std::string::npos) pg::fail_data(path, where + "the name holds a NUL");
  if (!value.is_object()) pg::fail_data(path, where + "expected an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) pg::fail_data(path, where + key + " is missing");
  }
  Entry entry;
  entry.name = name;
  entry.dtype = dtype_from(path, where, value["dtype"]);
  const json &shape = value["shape"], &offsets = value["data_offsets"];
  if (!shape.is_array()) pg::fail_data(path, where + "shape is not a list");
  for (const json& dimension : shape) {
    if (!dimension.is_number_unsigned() || dimension.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
      pg::fail_data(path, where + "a dimension is not a whole number of 0 or more");
    }
    entry.shape.push_back(dimension.get<int64_t>());
  }
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned()) {
    pg::fail_data(path, where + "data_offsets is not a pair of whole numbers");
  }
  entry.begin = offsets[0].get<uint64_t>(), entry.end = offsets[1].get<uint64_t>();
  if (entry.begin > entry.end) pg::fail_data(path, where + "data_offsets end before they begin");
  if (entry.end > data_bytes) {
    pg::fail_data(path,
                  where + format("data_offsets reach byte %llu of %llu", static_cast<unsigned long long>(entry.end),
                                 static_cast<unsigned long long>(data_bytes)));
  }
  uint64_t bytes = checked_bytes(path, where, entry);
  if (bytes != entry.end - entry.begin) {
    pg::fail_data(path, where + format("dtype and shape need %llu bytes, data_offsets give %llu",
                                       static_cast<unsigned long long>(bytes),
                                       static_cast<unsigned long long>(entry.end - entry.begin)));
  }
  return entry;
}

// The bytes must be covered exactly, each once.
void check_cover(const std::string& path, std::vector<Entry>& entries, uint64_t data_bytes) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t expected = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != expected) {
      pg::fail_data(path,
                    format("tensor \"%.80s\" begins at byte %llu, expected %llu: tensors %s", entry.name.c_str(),
                           static_cast<unsigned long long>(entry.begin), static_cast<unsigned long long>(expected),
                           entry.begin < expected ? "overlap" : "leave a hole"));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    pg::fail_data(path, format("the tensors end at byte %llu of %llu", static_cast<unsigned long long>(expected),
                               static_cast<unsigned long long>(data_bytes)));
  }
}

void read_notes(const std::string& path, const json& metadata, pg::Sink& sink) {
  if (!metadata.is_object()) pg::fail_data(path, "header: __metadata__ is not an object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) pg::fail_data(path, "header: __metadata__ \"" + key + "\" is not a string");
    sink.note(key, value.get<std::string>());
  }
}

struct Safetensors {
  static constexpr const char *name = "safetensors", *doc = "Named tensors as PyTorch's world exchanges them",
                              *extensions = ".safetensors .st", *options = "";

  static void read(const std::string& path, const pg::Options&, pg::Sink& sink) {
    File file = File::open_to_read(path);
    if (file.size() < 8)
      pg::fail_data(path, format("%llu bytes are too few for a header", (unsigned long long)file.size()));
    unsigned char raw[8];
    file.read(0, raw, sizeof raw);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--) length = length << 8 | raw[i];
    if (length > kMaxHeader || length > file.size() - 8) {
      pg::fail_data(path, format("a header of %llu bytes does not fit into a file of %llu (limit %llu)",
                                 static_cast<unsigned long long>(length), static_cast<unsigned long long>(file.size()),
                                 static_cast<unsigned long long>(kMaxHeader)));
    }
    std::string text(length, '\0');
    file.read(8, text.data(), length);
    json header = parse_header(path, text);

    uint64_t data_begin = 8 + length, data_bytes = file.size() - data_begin;
    std::vector<Entry> entries;
    for (const auto& [key, value] : header.items()) {
      if (key != kMetadata) entries.push_back(entry_from(path, key, value, data_bytes));
    }
    check_cover(path, entries, data_bytes);
    if (header.contains(kMetadata)) read_notes(path, header[kMetadata], sink);
    for (const Entry& entry : entries) read_data(file, data_begin, entry, sink);
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes& notes) {
    // Wide elements first keeps every tensor aligned to its element, as readers that map the file want.
    std::vector<const pg::Item*> order;
    for (const pg::Item& item : items) order.push_back(&item);
    std::stable_sort(order.begin(), order.end(), [](const pg::Item* a, const pg::Item* b) {
      return pg::dtype_bytes(a->dtype) > pg::dtype_bytes(b->dtype);
    });
    std::string header = header_text(order, notes);
    header.resize((header.size() + 7) / 8 * 8, ' ');
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = static_cast<unsigned char>(header.size() >> (8 * i));

    File file = File::open_to_write(path);
    file.write(length, sizeof length);
    file.write(header.data(), header.size());
    for (const pg::Item* item : order) file.write(item->data, item->bytes);
    file.finish();
  }

 private:
  static void read_data(const File& file, uint64_t data_begin, const Entry& entry, pg::Sink& sink) {
    void* target = sink.tensor(entry.name, entry.dtype, entry.shape);
    uint64_t bytes = entry.end - entry.begin;
    if (bytes == 0) return;
    file.read(data_begin + entry.begin, target, bytes);
    if (entry.dtype != PG_B8) return;
    // Kernels rely on booleans being 0 or 1.
    const auto* values = static_cast<const unsigned char*>(target);
    for (uint64_t i = 0; i < bytes; i++) {
      if (values[i] > 1) {
        pg::fail_data(file.path(), format("tensor \"%.80s\": byte %llu of a BOOL is %d", entry.name.c_str(),
                                          static_cast<unsigned long long>(data_begin + entry.begin + i), values[i]));
      }
    }
  }

  // Written by hand, in the order of the data, which nlohmann::json would not keep.
  static std::string header_text(const std::vector<const pg::Item*>& order, const pg::Notes& notes) {
    std::string header = "{";
    std::set<std::string> names = {kMetadata};
    try {
      for (const auto& [key, value] : notes) {
        header += header.size() == 1 ? quoted(kMetadata) + ":{" : ",";
        header += quoted(key) + ":" + quoted(value);
      }
      if (!notes.empty()) header += "}";
      uint64_t offset = 0;
      for (const pg::Item* item : order) {
        if (!names.insert(item->name).second) {
          pg::fail_argument("a tensor cannot be named \"" + item->name + "\" here: the name is taken");
        }
        header += (header.size() > 1 ? "," : "") + quoted(item->name) + ":{\"dtype\":" + quoted(dtype_text(*item)) +
                  ",\"shape\":" + json(item->shape).dump() + ",\"data_offsets\":[" + std::to_string(offset) + "," +
                  std::to_string(offset + item->bytes) + "]}";
        offset += item->bytes;
      }
    } catch (const json::type_error&) {
      pg::fail_argument("a name or a note is not valid UTF-8");
    }
    return header + "}";
  }

  static std::string quoted(const std::string& text) { return json(text).dump(); }

  static const char* dtype_text(const pg::Item& item) {
    for (const DtypeName& known : kDtypes) {
      if (known.dtype == item.dtype) return known.name;
    }
    pg::fail_support(
        format("tensor \"%s\": safetensors has no dtype %s", item.name.c_str(), pg::dtype_name(item.dtype)));
  }
};

PG_FORMAT(Safetensors);

}  // namespace
