// SPDX-License-Identifier: Apache-2.0
// TFRecord files: length (8 bytes), its checksum (4), the data, their checksum (4).
#include <cstring>

#include "crc32c.hpp"
#include "example.hpp"

namespace formats {

namespace {

constexpr uint64_t kHead = 12, kTail = 4;
constexpr uint64_t kLargestRecord = uint64_t{1} << 31;  // bytes: a length beyond this is damage, not a record
constexpr const char* kFileEnds = "the file ends inside of it";

template <class Number>
Number number_at(const char* at) {
  Number value = 0;
  for (size_t i = 0; i < sizeof(Number); i++) value |= static_cast<Number>(static_cast<unsigned char>(at[i])) << 8 * i;
  return value;
}

// The length of a record's data; false where its head is damaged.
bool read_head(const char* head, uint64_t& length) {
  length = number_at<uint64_t>(head);
  return masked_crc32c(head, 8) == number_at<uint32_t>(head + 8) && length <= kLargestRecord;
}

// Heads that follow one another closely are read together.
class Heads {
 public:
  explicit Heads(const FileContents& file) : file_(file) {}
  const char* at(uint64_t offset) {
    if (offset < begin_ || offset + kHead > begin_ + count_) {
      begin_ = offset;
      count_ = std::min<uint64_t>(sizeof block_, file_.size() - offset);
      file_.read(begin_, block_, count_);
    }
    return block_ + (offset - begin_);
  }

 private:
  const FileContents& file_;
  uint64_t begin_ = 0, count_ = 0;
  char block_[4096];
};

std::string place_of(uint64_t at, int64_t number) {
  return pg::format("record %lld at byte %llu", static_cast<long long>(number), static_cast<unsigned long long>(at));
}

class Framed : public RecordKind {
 public:
  Framed(std::vector<RecordField> fields, bool raw) : example_(std::move(fields)), raw_(raw) {}

  // By gzip, or by zlib, which its first byte and a sum tell.
  bool is_packed(const File& file) const override {
    char head[kHead] = {};
    uint64_t length = 0;
    if (file.size() >= 2) file.read(0, head, std::min<uint64_t>(file.size(), kHead));
    if (file.size() >= kHead && read_head(head, length)) return false;
    const unsigned first = static_cast<unsigned char>(head[0]), second = static_cast<unsigned char>(head[1]);
    return (first == 0x1f && second == 0x8b) || (first == 0x78 && (first * 256 + second) % 31 == 0);
  }

  RecordIndex index(const FileContents& file) const override {
    RecordIndex made;
    Heads heads(file);
    const uint64_t size = file.size();
    for (uint64_t at = 0; at < size;) {
      uint64_t length = 0;
      const char* problem = nullptr;
      if (size - at < kHead)
        problem = kFileEnds;
      else if (!read_head(heads.at(at), length))
        problem = "wrong checksum of its length";
      else if (size - at < kHead + length + kTail)
        problem = kFileEnds;
      if (problem != nullptr) {
        made.damage = place_of(at, static_cast<int64_t>(made.places.size()) + 1) + ": " + problem;
        break;
      }
      made.places.push_back({at, at + kHead + length + kTail});
      at = made.places.back().end;
    }
    return made;
  }

  std::string describe(std::string_view, Place place, int64_t number) const override {
    return place_of(place.begin, number);
  }

  void give(std::string_view bytes, Place, pg::FieldSink& out) const override {
    uint64_t length = 0;
    if (bytes.size() < kHead || !read_head(bytes.data(), length)) fail_record("wrong checksum of its length");
    if (bytes.size() < kHead + length + kTail) fail_record(kFileEnds);
    const char* data = bytes.data() + kHead;
    if (masked_crc32c(data, length) != number_at<uint32_t>(data + length)) fail_record("wrong checksum of its content");
    if (raw_)
      out.bytes("data", data, length);
    else
      example_.give({data, length}, out);
  }

 private:
  const Example example_;
  const bool raw_;
};

}  // namespace

std::unique_ptr<RecordKind> framed_records(std::vector<RecordField> fields, bool raw) {
  return std::make_unique<Framed>(std::move(fields), raw);
}

}  // namespace formats
