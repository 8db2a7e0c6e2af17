// SPDX-License-Identifier: Apache-2.0
// safetensors: 8 bytes of header length (little endian), a JSON header, the tensors' bytes.
// https://huggingface.co/docs/safetensors: its limits and checks are kept, since files come from anywhere.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "file.hpp"
#include "safetensors_header.hpp"

namespace {

using nlohmann::json;
using pg::format;
using namespace formats;

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

struct Safetensors {
  static constexpr const char *name = "safetensors", *doc = "Named tensors as PyTorch's world exchanges them",
                              *extensions = ".safetensors .st .pgraph", *options = "";

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
    std::vector<Entry> entries = read_header(file, length, sink);
    check_cover(path, entries, file.size() - 8 - length);
    for (Entry& entry : entries) {
      read_data(file, 8 + length, entry, sink);
      entry = {};  // the sink has its name now
    }
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
    if (header.size() > kMaxHeader)
      pg::fail_support(format("names and notes of %zu bytes; at most %llu are written", header.size(),
                              static_cast<unsigned long long>(kMaxHeader)));
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
    check_limits(order, notes);
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

  // Nothing is written that would not be read.
  static void check_limits(const std::vector<const pg::Item*>& items, const pg::Notes& notes) {
    size_t names = 0;
    for (const pg::Item* item : items) names += item->name.size();
    for (const auto& note : notes) names += note.first.size();
    if (items.size() > kMaxTensors || notes.size() > kMaxNotes || names > kMaxNames)
      pg::fail_support(format("%zu tensors and %zu notes with names of %zu bytes; a file holds at most %zu, %zu, %zu",
                              items.size(), notes.size(), names, kMaxTensors, kMaxNotes, kMaxNames));
  }

  static std::string quoted(const std::string& text) {
    std::string json_text = json(text).dump();
    if (json_text.size() > kMaxText)
      pg::fail_support(format("a name or note of %zu bytes; at most %zu are written", json_text.size(), kMaxText));
    return json_text;
  }

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
