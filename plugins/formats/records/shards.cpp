// SPDX-License-Identifier: Apache-2.0
// WebDataset's shards: tar archives in which files of one name, up to its first dot, are one sample, and what follows
// the dot is the name of a field.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "../npy.hpp"
#include "../picture.hpp"
#include "../tar.hpp"
#include "kind.hpp"

namespace formats {

namespace {

using pg::format;

// A file's sample and field; false for one that belongs to none.
bool parts_of(const std::string& name, std::string& key, std::string& field) {
  const size_t folder = name.rfind('/') + 1, dot = name.find('.', folder);
  const bool about = name.size() >= folder + 4 && name.compare(folder, 2, "__") == 0 && name.ends_with("__");
  if (about || dot == std::string::npos || dot == folder || dot + 1 == name.size()) return false;
  key = name.substr(0, dot);
  field = name.substr(dot + 1);
  for (char& c : field)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  return true;
}

struct Part {
  std::string field;
  std::string_view bytes;
};

struct Sample {
  std::string key;
  uint64_t at = 0;  // its first header
  std::vector<Part> parts;
  std::string twice;  // a field that it has twice

  const Part* find(const std::string& field) const {
    const auto found = std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.field == field; });
    return found == parts.end() ? nullptr : &*found;
  }
};

// What is in the bytes of a sample; nothing of it is damaged, or it would have no place.
Sample read_sample(std::string_view bytes, Place place) {
  Sample sample;
  const TarBytes archive{bytes.size(), [&](uint64_t offset, void* target, uint64_t count) {
                           std::memcpy(target, bytes.data() + offset, count);
                         }};
  const auto damage = each_member(archive, [&](const TarMember& member) {
    std::string key, field;
    if (!parts_of(member.name, key, field)) return;
    if (sample.parts.empty()) sample.key = std::move(key), sample.at = place.begin + member.data - 512;
    if (sample.find(field) != nullptr)
      sample.twice = field;
    else
      sample.parts.push_back({std::move(field), bytes.substr(member.data, member.size)});
  });
  if (damage) fail_record(damage->problem);
  return sample;
}

void give_int64(const char* name, std::string_view text, pg::FieldSink& out) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  const size_t first = std::min(text.find_first_not_of(kBlank), text.size());
  text = text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  constexpr int64_t kMost = int64_t{1} << 53;
  if (text.empty() || code != std::errc() || stop != text.data() + text.size() || value > kMost || value < -kMost)
    fail_record("no whole number");
  *out.tensor<int64_t>(name, PG_I64, {}) = value;
}

// The one tensor of an array's file as a field.
struct ArraySink {
  const char* name;
  pg::FieldSink& out;

  static void* tensor(void* context, const char*, uint32_t dtype, uint32_t rank, const int64_t* shape,
                      pg_error* error) noexcept {
    auto& self = *static_cast<ArraySink*>(context);
    void* memory = nullptr;
    pg::guard(error, "npy", [&] { memory = self.out.tensor(self.name, dtype, rank, shape); });
    return memory;
  }
  static int32_t note(void*, const char*, const char*, pg_error*) noexcept { return PG_OK; }
};

void give_npy(const char* name, std::string_view bytes, pg::FieldSink& out) {
  uint64_t at = 0;
  const auto next = [&](void* target, uint64_t count) {
    if (count > bytes.size() - at) fail_record("the file ends inside its data");
    std::memcpy(target, bytes.data() + at, count);
    at += count;
  };
  ArraySink to{name, out};
  pg_sink raw{};
  raw.size = PG_SIZE(pg_sink, note);
  raw.context = &to, raw.tensor = ArraySink::tensor, raw.note = ArraySink::note;
  pg::Sink sink(&raw);
  read_npy({"the bytes given", bytes.size(), next}, "data", sink);
}

class Shards : public RecordKind {
 public:
  Shards(std::vector<RecordField> fields, bool raw) : raw_(raw) {
    for (RecordField& field : fields) {
      Rule rule{std::move(field), {}, 0};
      const std::string& type = rule.field.type;
      if (type != "bytes" && type != "int64" && type != "npy" && type != "image")
        pg::fail_argument("types must be bytes, int64, npy or image, got \"" + type + "\"");
      const std::string from = rule.field.from + ";";
      for (size_t at = 0, end = 0; (end = from.find(';', at)) != std::string::npos; at = end + 1)
        if (end > at) rule.from.push_back(from.substr(at, end - at));
      take_channels(rule);
      rules_.push_back(std::move(rule));
    }
  }

  bool is_packed(const File& file) const override { return is_gzip(file); }

  RecordIndex index(const FileContents& file) const override {
    RecordIndex made;
    std::string last, key, field;
    const TarBytes archive{file.size(),
                           [&](uint64_t offset, void* target, uint64_t n) { file.read(offset, target, n); }};
    const auto damage = each_member(archive, [&](const TarMember& member) {
      if (!parts_of(member.name, key, field)) return;
      if (made.places.empty() || key != last) made.places.push_back({member.begin, 0});
      last = key;
      made.places.back().end = member.end;
    });
    if (!damage) return made;
    if (!made.places.empty()) made.places.pop_back();  // it may lack fields
    made.damage = told(static_cast<int64_t>(made.places.size()) + 1, last.empty() ? "none" : last, damage->at) + ": " +
                  damage->problem;
    return made;
  }

  std::string describe(std::string_view bytes, Place place, int64_t number) const override {
    try {
      const Sample sample = read_sample(bytes, place);
      return told(number, sample.key, sample.at);
    } catch (const pg::Error&) {
      return told(number, "", place.begin);
    }
  }

  void give(std::string_view bytes, Place place, pg::FieldSink& out) const override {
    const Sample sample = read_sample(bytes, place);
    if (!sample.twice.empty()) fail_record("it has the field \"" + sample.twice + "\" twice");
    out.text("__key__", sample.key);
    if (raw_) {
      for (const Part& part : sample.parts) out.bytes(part.field.c_str(), part.bytes.data(), part.bytes.size());
      return;
    }
    for (const Rule& rule : rules_) give_field(rule, sample, out);
  }

 private:
  struct Rule {
    RecordField field;
    std::vector<std::string> from;  // the first of them that is there
    int64_t channels;               // of a picture; 0: as many as there are
  };

  static std::string told(int64_t number, const std::string& key, uint64_t at) {
    return format("sample %lld (%.80s) at byte %llu", static_cast<long long>(number), key.c_str(),
                  static_cast<unsigned long long>(at));
  }

  // The one option of a picture that no codec takes.
  static void take_channels(Rule& rule) {
    std::string& options = rule.field.options;
    const std::string wanted = "channels=";
    const size_t at = options.starts_with(wanted) ? 0 : options.find("\n" + wanted);
    if (at == std::string::npos) return;
    const size_t begin = at + (at == 0 ? 0 : 1), end = std::min(options.find('\n', begin), options.size());
    const std::string value = options.substr(begin + wanted.size(), end - begin - wanted.size());
    if (value.size() != 1 || value[0] < '1' || value[0] > '4')
      pg::fail_argument("channels must be 1, 2, 3 or 4, got " + value);
    rule.channels = value[0] - '0';
    options.erase(begin, end - begin + (end < options.size() ? 1 : 0));
  }

  static void give_field(const Rule& rule, const Sample& sample, pg::FieldSink& out) {
    const char* name = rule.field.name.c_str();
    const Part* part = nullptr;
    for (size_t i = 0; part == nullptr && i < rule.from.size(); i++) part = sample.find(rule.from[i]);
    if (part == nullptr) {
      if (rule.field.optional) return;
      std::string all;
      for (const std::string& from : rule.from) all += (all.empty() ? "" : ";") + from;
      fail_record(format("it has no field \"%s\", and spec.%s no default", all.c_str(), name));
    }
    try {
      if (rule.field.type == "bytes")
        out.bytes(name, part->bytes.data(), part->bytes.size());
      else if (rule.field.type == "int64")
        give_int64(name, part->bytes, out);
      else if (rule.field.type == "npy")
        give_npy(name, part->bytes, out);
      else
        give_picture(rule, part->bytes, out);
    } catch (const pg::Error& error) {
      fail_record("field \"" + part->field + "\": " + error.what());
    }
  }

  static void give_picture(const Rule& rule, std::string_view bytes, pg::FieldSink& out) {
    pg::Coded coded;
    coded.data = bytes.data(), coded.count = bytes.size();
    coded.options = rule.field.options;
    const pg::Decoded picture = out.decode(rule.field.name.c_str(), coded);
    place_picture(rule.field.name.c_str(), "", picture, rule.channels, out);
  }

  std::vector<Rule> rules_;
  const bool raw_;
};

}  // namespace

std::unique_ptr<RecordKind> sharded_records(std::vector<RecordField> fields, bool raw) {
  return std::make_unique<Shards>(std::move(fields), raw);
}

}  // namespace formats
