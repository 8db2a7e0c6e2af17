// SPDX-License-Identifier: Apache-2.0
#include "zip.hpp"

#include <algorithm>
#include <new>

namespace formats {

namespace {

using pg::format;

constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kNone = 0xffffffff;
constexpr uint64_t kEncrypted = 1, kSizesBehind = 8;  // flags

uint64_t little(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}

[[noreturn]] void damaged(const File& file, const std::string& what) { pg::fail_data(file.path(), what); }
std::string shown(const std::string& name) { return "'" + name.substr(0, 80) + "'"; }

// Numbers that do not fit into 32 bits stand in extra field 1, those that are needed, in this order.
void widen(const File& file, const std::string& name, const unsigned char* extra, uint64_t length,
           std::initializer_list<uint64_t*> fields) {
  const unsigned char *at = nullptr, *end = nullptr;
  for (; length >= 4 && at == nullptr;) {
    const uint64_t bytes = little(extra + 2, 2);
    if (bytes > length - 4) break;
    if (little(extra, 2) == 1) at = extra + 4, end = at + bytes;
    extra += bytes + 4, length -= bytes + 4;
  }
  for (uint64_t* field : fields) {
    if (*field != kNone) continue;
    if (end - at < 8) damaged(file, shown(name) + " lacks its 64-bit sizes");
    *field = little(at, 8), at += 8;
  }
}

struct Directory {
  uint64_t begin, length, count;
};

// What a 64-bit end record says, which lies right before its locator.
Directory wide_directory(const File& file, uint64_t locator_at, uint64_t where) {
  unsigned char record[56];
  if (where > locator_at || locator_at - where < sizeof record)
    damaged(file, "its end record is not where it should be");
  file.read(where, record, sizeof record);
  if (little(record, 4) != kEnd64 || little(record + 4, 8) != locator_at - where - 12)
    damaged(file, "its end record is not where it should be");
  const Directory directory{little(record + 48, 8), little(record + 40, 8), little(record + 32, 8)};
  if (little(record + 16, 8) != 0 || little(record + 24, 8) != directory.count)
    pg::fail_support(file.path() + ": it is one of several parts");
  if (directory.begin > where || directory.length != where - directory.begin)
    damaged(file, "its directory does not end where its end record begins");
  return directory;
}

// The end record is the last 22 bytes and a comment of the length that it names.
Directory find_directory(const File& file) {
  const uint64_t tail = std::min<uint64_t>(file.size(), 22 + 65535 + 20), base = file.size() - tail;
  std::vector<unsigned char> bytes(tail);
  file.read(base, bytes.data(), tail);
  uint64_t at = tail;
  for (uint64_t comment = 0; at == tail && comment + 22 <= tail && comment <= 65535; comment++) {
    const unsigned char* record = bytes.data() + (tail - 22 - comment);
    if (little(record, 4) == kEnd && little(record + 20, 2) == comment) at = tail - 22 - comment;
  }
  if (at == tail) damaged(file, "not a zip archive: it has no end record");
  const unsigned char* end = bytes.data() + at;
  const Directory directory{little(end + 16, 4), little(end + 12, 4), little(end + 10, 2)};
  const bool wide = directory.begin == kNone || directory.length == kNone || directory.count == 0xffff;
  if (wide && at >= 20 && little(end - 20, 4) == kLocator64)
    return wide_directory(file, base + at - 20, little(end - 20 + 8, 8));
  if (little(end + 4, 4) != 0 || little(end + 8, 2) != directory.count)
    pg::fail_support(file.path() + ": it is one of several parts");
  if (directory.begin > base + at || directory.length != base + at - directory.begin)
    damaged(file, "its directory does not end where its end record begins");
  return directory;
}

std::vector<Member> list_members(const File& file, const Directory& directory) {
  if (directory.count > directory.length / 46) damaged(file, "its directory is too short for its members");
  std::vector<Member> members;
  std::vector<unsigned char> bytes(directory.length);
  file.read(directory.begin, bytes.data(), directory.length);
  uint64_t at = 0;
  while (directory.length - at >= 46) {
    const unsigned char* d = bytes.data() + at;
    if (little(d, 4) != kCentral) damaged(file, "its directory has an entry that is none");
    const uint64_t name = little(d + 28, 2), extra = little(d + 30, 2), comment = little(d + 32, 2);
    if (directory.length - at - 46 < name + extra + comment) damaged(file, "its directory ends inside an entry");
    Member m{std::string(reinterpret_cast<const char*>(d) + 46, name),
             little(d + 8, 2),
             little(d + 10, 2),
             little(d + 16, 4),
             little(d + 20, 4),
             little(d + 24, 4),
             little(d + 42, 4),
             0};
    if (little(d + 34, 2) != 0) pg::fail_support(file.path() + ": it is one of several parts");
    if (m.name.find('\0') != std::string::npos) damaged(file, "a member's name holds a NUL");
    widen(file, m.name, d + 46 + name, extra, {&m.size, &m.packed, &m.offset});
    members.push_back(std::move(m));
    at += 46 + name + extra + comment;
  }
  if (members.size() != directory.count || at != directory.length)
    damaged(file, format("its directory is said to hold %llu members, it lists %zu",
                         static_cast<unsigned long long>(directory.count), members.size()));
  return members;
}

void check_sizes(const File& file, const Member& m) {
  if ((m.flags & kEncrypted) != 0) pg::fail_support(file.path() + ": " + shown(m.name) + " is encrypted");
  if (m.method != 0 && m.method != 8)
    pg::fail_support(format("%s: compression method %d is not read", file.path().c_str(), static_cast<int>(m.method)));
  // deflate never packs more than 1032 to 1.
  if (m.method == 0 ? m.size != m.packed : m.size / 1032 > m.packed + 1)
    damaged(file, shown(m.name) + " has an impossible size");
}

// The record before a member's contents says the same as the directory.
void check_record(const File& file, Member& m, uint64_t limit) {
  unsigned char head[30];
  if (m.offset > limit || limit - m.offset < sizeof head) damaged(file, shown(m.name) + " begins behind the end");
  file.read(m.offset, head, sizeof head);
  if (little(head, 4) != kLocal) damaged(file, shown(m.name) + " is not where the directory says");
  const uint64_t name = little(head + 26, 2), extra = little(head + 28, 2);
  if (limit - m.offset - sizeof head < name + extra) damaged(file, shown(m.name) + " ends behind the end");
  std::vector<unsigned char> text(name + extra);
  file.read(m.offset + sizeof head, text.data(), text.size());
  const std::string own(reinterpret_cast<const char*>(text.data()), name);
  if (own != m.name) damaged(file, shown(m.name) + " is named " + shown(own) + " where it begins");
  uint64_t packed = little(head + 18, 4), size = little(head + 22, 4);
  widen(file, m.name, text.data() + name, extra, {&size, &packed});
  const bool known = (little(head + 6, 2) & kSizesBehind) == 0;
  if (little(head + 6, 2) != m.flags || little(head + 8, 2) != m.method ||
      (known && (little(head + 14, 4) != m.crc || packed != m.packed || size != m.size)))
    damaged(file, shown(m.name) + " begins with another size, method or checksum than the directory's");
  m.data = m.offset + sizeof head + name + extra;
  if (m.packed > limit - m.data) damaged(file, shown(m.name) + " ends behind the end");
}

void check_apart(const File& file, const std::vector<Member>& members) {
  std::vector<const Member*> order;
  for (const Member& m : members) order.push_back(&m);
  std::sort(order.begin(), order.end(), [](const Member* a, const Member* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); i++) {
    const Member &a = *order[i - 1], &b = *order[i];
    if (b.offset < a.data + a.packed) damaged(file, shown(a.name) + " and " + shown(b.name) + " overlap");
  }
}

}  // namespace

std::vector<Member> read_directory(const File& file) {
  const Directory directory = find_directory(file);
  std::vector<Member> members = list_members(file, directory);
  for (Member& m : members) {
    check_sizes(file, m);
    check_record(file, m, directory.begin);
  }
  check_apart(file, members);
  return members;
}

void Contents::End::operator()(z_stream* stream) const {
  ::inflateEnd(stream);
  delete stream;
}

Contents::Contents(const File& file, const Member& member)
    : file_(file), member_(member), crc_(::crc32(0, nullptr, 0)) {
  if (member.method == 0) return;
  auto stream = std::make_unique<z_stream>();
  *stream = {};
  if (::inflateInit2(stream.get(), -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  stream_.reset(stream.release());
  piece_.resize(1 << 16);
  // A size far above the usual is made sure of before somebody takes memory for it.
  if (member.size / 16 > member.packed + (1 << 16)) measure();
}

void Contents::read(void* target, uint64_t bytes) {
  if (bytes > member_.size - out_) damaged(file_, shown(member_.name) + " ends early");
  if (stream_)
    inflate(target, bytes);
  else
    file_.read(member_.data + out_, target, bytes);
  out_ += bytes;
  if (bytes > 0) crc_ = ::crc32_z(crc_, static_cast<const unsigned char*>(target), bytes);
}

void Contents::fill() {
  if (stream_->avail_in > 0 || in_ == member_.packed) return;
  const uint64_t some = std::min<uint64_t>(piece_.size(), member_.packed - in_);
  file_.read(member_.data + in_, piece_.data(), some);
  in_ += some;
  stream_->next_in = piece_.data(), stream_->avail_in = static_cast<unsigned>(some);
}

void Contents::inflate(void* target, uint64_t bytes) {
  auto* at = static_cast<unsigned char*>(target);
  while (bytes > 0) {
    fill();
    const auto room = static_cast<unsigned>(std::min<uint64_t>(bytes, 1u << 30));
    stream_->next_out = at, stream_->avail_out = room;
    const int code = ended_ ? Z_BUF_ERROR : ::inflate(stream_.get(), Z_NO_FLUSH);
    ended_ = ended_ || code == Z_STREAM_END;
    const unsigned got = room - stream_->avail_out;
    if (code != Z_OK && got == 0) damaged(file_, shown(member_.name) + " cannot be unpacked");
    at += got, bytes -= got;
  }
}

void Contents::finish() {
  bool whole = out_ == member_.size;
  if (stream_ && whole && !ended_) {  // its last byte may stand before the end of the stream
    unsigned char none;
    stream_->next_out = &none, stream_->avail_out = 1;
    fill();
    ended_ = ::inflate(stream_.get(), Z_NO_FLUSH) == Z_STREAM_END && stream_->avail_out == 1;
  }
  if (stream_) whole = whole && ended_ && in_ == member_.packed && stream_->avail_in == 0;
  if (!whole) damaged(file_, shown(member_.name) + " cannot be unpacked");
  if (crc_ != member_.crc) damaged(file_, shown(member_.name) + " does not have its checksum");
}

// Unpacks all of it to nowhere.
void Contents::measure() {
  std::vector<unsigned char> nowhere(1 << 16);
  while (out_ < member_.size) read(nowhere.data(), std::min<uint64_t>(nowhere.size(), member_.size - out_));
  finish();
  ::inflateReset(stream_.get());
  stream_->avail_in = 0;
  in_ = 0, out_ = 0, ended_ = false;
  crc_ = ::crc32(0, nullptr, 0);
}

}  // namespace formats
