// SPDX-License-Identifier: Apache-2.0
// npz: a zip archive of .npy files (numpy.savez, numpy.savez_compressed). Members are stored or deflated; written ones
// are stored.
#include <zlib.h>

#include <vector>

#include "file.hpp"
#include "npy.hpp"
#include "zip.hpp"

namespace {

using formats::File;
using formats::Member;
using pg::format;

void put(std::string& text, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) text += static_cast<char>(value >> 8 * i & 255);
}

struct Npz {
  static constexpr const char *name = "npz", *doc = "arrays of NumPy's by name", *extensions = ".npz";
  static constexpr const char* options = "";

  static void read(const std::string& path, const pg::Options&, pg::Sink& sink) {
    const File file = File::open_to_read(path);
    const std::vector<Member> members = formats::read_directory(file);
    for (const Member& m : members) {
      // A name that lost its ending would be an array that is missed nowhere.
      if (!m.name.ends_with(".npy")) pg::fail_support(path + ": '" + m.name.substr(0, 80) + "' is no array (.npy)");
    }
    for (const Member& m : members) {
      formats::Contents contents(file, m);
      auto next = [&](void* target, uint64_t bytes) { contents.read(target, bytes); };
      formats::read_npy({path + ": '" + m.name + "'", m.size, next}, m.name.substr(0, m.name.size() - 4), sink);
      contents.finish();
    }
  }

  static void write(const std::string& path, const pg::Items& items, const pg::Notes&) {
    File file = File::open_to_write(path);
    std::string directory;
    uint64_t offset = 0;
    for (const pg::Item& item : items) {
      std::string header = formats::npy_header(item), member = item.name + ".npy";
      uint64_t size = header.size() + item.bytes;
      if (size + offset + (1u << 20) >= UINT32_MAX || member.size() > 0xffff || items.size() >= 0xffff) {
        pg::fail_support("npz files of 4 GiB or more, or of 65,535 arrays, are not written; use .safetensors");
      }
      uint64_t crc =
          ::crc32(0, reinterpret_cast<const unsigned char*>(header.data()), static_cast<unsigned>(header.size()));
      if (item.bytes > 0) crc = ::crc32_z(crc, static_cast<const unsigned char*>(item.data), item.bytes);
      std::string common;  // of both records: version, flags (names are UTF-8), method, time, date, checksum, sizes
      put(common, 20, 2), put(common, 0x800, 2), put(common, 0, 2), put(common, 0, 2), put(common, 0x21, 2);
      put(common, crc, 4), put(common, size, 4), put(common, size, 4), put(common, member.size(), 2), put(common, 0, 2);
      std::string local;
      put(local, formats::kLocal, 4);
      local += common + member;
      put(directory, formats::kCentral, 4), put(directory, 20, 2);
      directory += common;
      put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4), put(directory, offset, 4);
      directory += member;
      file.write(local.data(), local.size());
      file.write(header.data(), header.size());
      file.write(item.data, item.bytes);
      offset += local.size() + size;
    }
    std::string end;
    put(end, formats::kEnd, 4), put(end, 0, 4), put(end, items.size(), 2), put(end, items.size(), 2);
    put(end, directory.size(), 4), put(end, offset, 4), put(end, 0, 2);
    file.write(directory.data(), directory.size());
    file.write(end.data(), end.size());
    file.finish();
  }
};
PG_FORMAT(Npz);

}  // namespace
