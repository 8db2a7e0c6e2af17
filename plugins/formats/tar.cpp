// SPDX-License-Identifier: Apache-2.0
#include "tar.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "perigee/format.hpp"

namespace formats {

namespace {

constexpr uint64_t kTarBlock = 512, kLargestNumber = uint64_t{1} << 53;
constexpr uint64_t kLongestName = 1 << 16;  // of what extends a header
constexpr const char* kArchiveEnds = "the archive ends inside of it";

struct TarStop {
  const char* problem;
};

std::string text_at(const char* block, size_t from, size_t length) {
  return std::string(block + from, ::strnlen(block + from, length));
}

// Digits of base 8, or, after a byte of 128, a number of base 256; false where it is none.
bool number_at(const char* block, size_t from, size_t length, uint64_t& value) {
  const char* at = block + from;
  const char* end = at + length;
  value = 0;
  if (static_cast<unsigned char>(*at) == 128) {
    for (at++; at < end; at++) {
      if (value >= kLargestNumber >> 8) return false;
      value = value << 8 | static_cast<unsigned char>(*at);
    }
    return true;
  }
  while (at < end && *at == ' ') at++;
  for (; at < end && *at >= '0' && *at <= '7'; at++) value = value << 3 | static_cast<uint64_t>(*at - '0');
  return std::all_of(at, end, [](char c) { return c == ' ' || c == '\0'; });
}

// Bytes of a header added up, those of the sum itself as blanks.
uint64_t sum_of(const char* block) {
  uint64_t sum = 8 * ' ';
  for (size_t i = 0; i < kTarBlock; i++)
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(block[i]);
  return sum;
}

uint64_t whole_blocks(uint64_t size) { return (size + kTarBlock - 1) / kTarBlock * kTarBlock; }

// What extensions say of the next file.
struct Extension {
  std::optional<std::string> name;
  std::optional<uint64_t> size;

  // Names and values: "length name=value\n".
  void read_pax(std::string_view text) {
    std::optional<std::string_view> path, bytes;
    while (!text.empty()) {
      uint64_t length = 0;
      const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto digits = static_cast<size_t>(stop - text.data());
      if (code != std::errc() || text[0] == '-' || digits == text.size() || text[digits] != ' ' ||
          length < digits + 4 || length > text.size() || text[length - 1] != '\n')
        throw TarStop{"damaged names of pax"};
      const std::string_view entry = text.substr(digits + 1, length - digits - 2);
      const size_t equals = entry.find('=');
      if (equals == std::string_view::npos || equals == 0) throw TarStop{"damaged names of pax"};
      if (entry.substr(0, equals) == "path") path = entry.substr(equals + 1);
      if (entry.substr(0, equals) == "size") bytes = entry.substr(equals + 1);
      text.remove_prefix(length);
    }
    if (path) name = *path;
    if (!bytes) return;
    uint64_t value = 0;
    const auto [stop, code] = std::from_chars(bytes->data(), bytes->data() + bytes->size(), value);
    if (code != std::errc() || stop != bytes->data() + bytes->size() || value > kLargestNumber)
      throw TarStop{"a size that is no number"};
    size = value;
  }
};

class TarReader {
 public:
  explicit TarReader(const TarBytes& archive) : archive_(archive) {}

  // The next file; false at the end.
  bool next(TarMember& member) {
    Extension extension;
    member.begin = at_;
    while (header()) {
      const char kind = block_[156];
      const bool extends = std::strchr("xgLK", kind) != nullptr && kind != '\0';
      if (!extends && extension.size) size_ = *extension.size;
      const uint64_t data = at_ + kTarBlock;
      if (size_ > archive_.size - data) throw TarStop{kArchiveEnds};
      const uint64_t end = data + std::min(whole_blocks(size_), archive_.size - data);
      if (extends) {
        extend(kind, data, extension);
        at_ = end;
        continue;
      }
      if (kind == 'S') throw TarStop{"a sparse file, which is not served"};
      if (kind == '0' || kind == '\0' || kind == '7') {
        member.name = extension.name ? *extension.name : name();
        member.data = data, member.size = size_, member.end = end;
        at_ = end;
        return true;
      }
      extension = {};
      member.begin = at_ = end;
    }
    return false;
  }
  uint64_t at() const { return at_; }

 private:
  // False at the end of the archive: zeros, or nothing.
  bool header() {
    const uint64_t some = std::min(kTarBlock, archive_.size - at_);
    std::memset(block_, 0, kTarBlock);
    if (some != 0) archive_.read(at_, block_, some);
    const bool zeros = std::all_of(block_, block_ + some, [](char c) { return c == '\0'; });
    if (zeros && (some == kTarBlock || some == 0)) return false;
    if (some < kTarBlock) throw TarStop{kArchiveEnds};
    uint64_t sum = 0;
    if (!number_at(block_, 148, 8, sum) || sum != sum_of(block_)) throw TarStop{"wrong checksum of its header"};
    if (!number_at(block_, 124, 12, size_)) throw TarStop{"a size that is no number"};
    if (block_[156] >= '1' && block_[156] <= '6') size_ = 0;  // links, folders and devices
    return true;
  }
  // GNU's archives have other things in the place of the prefix.
  std::string name() const {
    const std::string own = text_at(block_, 0, 100);
    if (std::memcmp(block_ + 257, "ustar", 5) != 0 || std::memcmp(block_ + 257, "ustar  ", 7) == 0) return own;
    const std::string prefix = text_at(block_, 345, 155);
    return prefix.empty() ? own : prefix + "/" + own;
  }
  void extend(char kind, uint64_t data, Extension& extension) const {
    if (size_ > kLongestName) throw TarStop{"a name that is longer than any"};
    std::string text(size_, '\0');
    if (size_ != 0) archive_.read(data, text.data(), size_);
    if (kind == 'L') extension.name = text.substr(0, text.find('\0'));
    if (kind == 'x') extension.read_pax(text);
  }

  const TarBytes& archive_;
  uint64_t at_ = 0, size_ = 0;
  char block_[kTarBlock];
};

}  // namespace

std::optional<TarDamage> each_member(const TarBytes& archive, const std::function<void(const TarMember&)>& see) {
  TarReader reader(archive);
  try {
    for (TarMember member; reader.next(member);) see(member);
  } catch (const TarStop& damage) {
    return TarDamage{reader.at(), damage.problem};
  }
  return std::nullopt;
}

}  // namespace formats
