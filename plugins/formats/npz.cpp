// SPDX-License-Identifier: Apache-2.0
// npz: a zip archive of .npy files (numpy.savez, numpy.savez_compressed). Members are stored or deflated; written ones
// are stored. APPNOTE.TXT of PKWARE describes the records.
#include <zlib.h>
#include <new>

#include <cstring>
#include <vector>

#include "file.hpp"
#include "npy.hpp"

namespace {

using formats::File;
using pg::format;

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kNone = 0xffffffff;

uint64_t little(const unsigned char* at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}
void put(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) text += static_cast<char>(value >> 8 * i & 255);
}

struct Member {
  std::string name;
  uint64_t method, packed, size, offset, crc;
};

// Sizes and offset that do not fit into 32 bits stand in extra field 1, those that are needed, in this order.
void widen(Member& m, const unsigned char* extra, uint64_t length, const std::string& path) {
  while (length >= 4) {
    uint64_t id = little(extra, 2), size = little(extra + 2, 2);
    if (size > length - 4) break;
    const unsigned char* at = extra + 4;
    if (id == 1) {
      for (uint64_t* field : {&m.size, &m.packed, &m.offset}) {
        if (*field != kNone) continue;
        if (static_cast<uint64_t>(at - extra) + 8 > size + 4)
          pg::fail_data(path, "'" + m.name + "' lacks its 64-bit sizes");
        *field = little(at, 8), at += 8;
      }
      return;
    }
    extra += size + 4, length -= size + 4;
  }
}

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), file_(File::open_to_read(path)) { find_directory(); }

  std::vector<Member> members() {
    std::vector<Member> list;
    std::vector<unsigned char> directory(length_);
    file_.read(begin_, directory.data(), length_);
    for (uint64_t at = 0; list.size() < count_;) {
      const unsigned char* d = directory.data() + at;
      if (length_ - at < 46 || little(d, 4) != kCentral) damaged("the directory ends early");
      uint64_t name = little(d + 28, 2), extra = little(d + 30, 2), comment = little(d + 32, 2);
      if (length_ - at - 46 < name + extra + comment) damaged("the directory ends inside an entry");
      Member m{std::string(reinterpret_cast<const char*>(d) + 46, name),
               little(d + 10, 2),
               little(d + 20, 4),
               little(d + 24, 4),
               little(d + 42, 4),
               little(d + 16, 4)};
      if ((little(d + 8, 2) & 1) != 0) pg::fail_support(path_ + ": '" + m.name + "' is encrypted");
      widen(m, d + 46 + name, extra, path_);
      list.push_back(m);
      at += 46 + name + extra + comment;
    }
    return list;
  }

  // The contents of a member, whose checksum fits.
  std::vector<unsigned char> contents(const Member& m) {
    unsigned char head[30];
    if (m.offset > file_.size() || file_.size() - m.offset < 30) damaged("'" + m.name + "' begins behind the end");
    file_.read(m.offset, head, 30);
    if (little(head, 4) != kLocal) damaged("'" + m.name + "' is not where the directory says");
    uint64_t data = m.offset + 30 + little(head + 26, 2) + little(head + 28, 2);
    if (data > file_.size() || m.packed > file_.size() - data) damaged("'" + m.name + "' ends behind the end");
    if (m.method != 0 && m.method != 8)
      pg::fail_support(format("%s: compression method %d is not read", path_.c_str(), static_cast<int>(m.method)));
    // deflate never packs more than 1032 to 1: a directory that says so lies, and is not worth the memory.
    if (m.method == 0 ? m.size != m.packed : m.size / 1032 > m.packed + 1)
      damaged("'" + m.name + "' has an impossible size");
    std::vector<unsigned char> packed(m.packed);
    file_.read(data, packed.data(), m.packed);
    std::vector<unsigned char> plain = m.method == 0 ? std::move(packed) : inflated(m, packed);
    uint64_t crc = ::crc32(0, nullptr, 0);
    for (uint64_t at = 0; at < plain.size();) {
      auto n = static_cast<unsigned>(std::min<uint64_t>(plain.size() - at, 1u << 30));
      crc = ::crc32(crc, plain.data() + at, n);
      at += n;
    }
    if (crc != m.crc) damaged("'" + m.name + "' does not have its checksum");
    return plain;
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const { pg::fail_data(path_, what); }

  // The end record lies in the last 64 KiB; where it says so, a 64-bit one before it counts.
  void find_directory() {
    uint64_t tail = std::min<uint64_t>(file_.size(), 65557 + 20), base = file_.size() - tail;
    std::vector<unsigned char> bytes(tail);
    file_.read(base, bytes.data(), tail);
    int64_t at = static_cast<int64_t>(tail) - 22;
    while (at >= 0 && little(&bytes[static_cast<size_t>(at)], 4) != kEnd) at--;
    if (at < 0) damaged("not a zip archive: it has no end record");
    const unsigned char* end = &bytes[static_cast<size_t>(at)];
    count_ = little(end + 10, 2), length_ = little(end + 12, 4), begin_ = little(end + 16, 4);
    if (at >= 20 && little(end - 20, 4) == kLocator64 && (begin_ == kNone || length_ == kNone || count_ == 0xffff)) {
      uint64_t where = little(end - 20 + 8, 8);
      unsigned char wide[56];
      if (where > file_.size() || file_.size() - where < 56) damaged("its end record is not where it should be");
      file_.read(where, wide, 56);
      if (little(wide, 4) != kEnd64) damaged("its end record is not where it should be");
      count_ = little(wide + 32, 8), length_ = little(wide + 40, 8), begin_ = little(wide + 48, 8);
    }
    if (begin_ > file_.size() || length_ > file_.size() - begin_ || count_ > length_ / 46)
      damaged("its directory lies behind the end");
  }

  std::vector<unsigned char> inflated(const Member& m, const std::vector<unsigned char>& packed) const {
    std::vector<unsigned char> plain(m.size);
    z_stream stream{};
    if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    uint64_t in = 0, out = 0;
    int code = Z_OK;
    unsigned char nothing = 0;
    while (code == Z_OK) {
      auto take = static_cast<unsigned>(std::min<uint64_t>(packed.size() - in, 1u << 30));
      auto room = static_cast<unsigned>(std::min<uint64_t>(plain.size() - out, 1u << 30));
      stream.next_in = const_cast<unsigned char*>(packed.data() + in), stream.avail_in = take;
      stream.next_out = room > 0 ? plain.data() + out : &nothing, stream.avail_out = room;
      code = ::inflate(&stream, Z_NO_FLUSH);
      in += take - stream.avail_in, out += room - stream.avail_out;
    }
    ::inflateEnd(&stream);
    if (code != Z_STREAM_END || out != plain.size()) damaged("'" + m.name + "' cannot be unpacked");
    return plain;
  }

  const std::string& path_;
  File file_;
  uint64_t begin_ = 0, length_ = 0, count_ = 0;
};

struct Npz {
  static constexpr const char *name = "npz", *doc = "arrays of NumPy's by name", *extensions = ".npz";
  static constexpr const char* options = "";

  static void read(const std::string& path, const pg::Options&, pg::Sink& sink) {
    Archive archive(path);
    for (const Member& m : archive.members()) {
      if (m.name.size() < 4 || m.name.compare(m.name.size() - 4, 4, ".npy") != 0) continue;
      std::vector<unsigned char> bytes = archive.contents(m);
      formats::read_npy({path + ": '" + m.name + "'", bytes.size(),
                         [&](uint64_t at, void* to, uint64_t n) { std::memcpy(to, bytes.data() + at, n); }},
                        m.name.substr(0, m.name.size() - 4), sink);
    }
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes&) {
    File file = File::open_to_write(path);
    std::string directory;
    uint64_t offset = 0;
    for (const pg::Item& item : items) {
      std::string header = formats::npy_header(item), member = item.name + ".npy";
      uint64_t size = header.size() + item.bytes;
      if (size + offset + (1u << 20) >= kNone || member.size() > 0xffff || items.size() >= 0xffff) {
        pg::fail_support("npz files of 4 GiB or more, or of 65,535 arrays, are not written; use .safetensors");
      }
      uint64_t crc =
          ::crc32(0, reinterpret_cast<const unsigned char*>(header.data()), static_cast<unsigned>(header.size()));
      if (item.bytes > 0) crc = ::crc32_z(crc, static_cast<const unsigned char*>(item.data), item.bytes);
      std::string common;  // of both records: version, flags (names are UTF-8), method, time, date, checksum, sizes
      put(common, 20, 2), put(common, 0x800, 2), put(common, 0, 2), put(common, 0, 2), put(common, 0x21, 2);
      put(common, crc, 4), put(common, size, 4), put(common, size, 4), put(common, member.size(), 2), put(common, 0, 2);
      std::string local;
      put(local, kLocal, 4);
      local += common + member;
      put(directory, kCentral, 4), put(directory, 20, 2);
      directory += common;
      put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, offset, 4);
      directory += member;
      file.write(local.data(), local.size());
      file.write(header.data(), header.size());
      file.write(item.data, item.bytes);
      offset += local.size() + size;
    }
    std::string end;
    put(end, kEnd, 4), put(end, 0, 4), put(end, items.size(), 2), put(end, items.size(), 2);
    put(end, directory.size(), 4), put(end, offset, 4), put(end, 0, 2);
    file.write(directory.data(), directory.size());
    file.write(end.data(), end.size());
    file.finish();
  }
};
PG_FORMAT(Npz);

}  // namespace
