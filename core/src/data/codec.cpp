// SPDX-License-Identifier: Apache-2.0
#include "data/codec.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/new_file.hpp"
#include "data/options.hpp"
#include "perigee/plugin.hpp"
#include "registry/registry.hpp"

namespace perigee {

namespace {

constexpr int64_t kMaxPixels = int64_t{1} << 28;

[[noreturn]] void fail_end(uint64_t end) {
  pg::fail(PG_E_DATA_LOSS,
           pg::format("the file ends at byte %llu, inside its data", static_cast<unsigned long long>(end)));
}

int32_t read_memory(void* context, uint64_t offset, void* target, uint64_t count, pg_error* error) {
  return pg::guard(error, "read", [&] {
    const pg_bytes& bytes = *static_cast<const pg_bytes*>(context);
    if (offset > bytes.count || count > bytes.count - offset) fail_end(bytes.count);
    if (count != 0) std::memcpy(target, static_cast<const char*>(bytes.data) + offset, count);
  });
}

template <class Call>
void run_codec(const std::string& shown, Call&& call) {
  pg_error error = pg::make_error();
  const int32_t code = call(&error);
  if (code != PG_OK) throw pg::Error(code, shown + ": " + pg::message_of(code, error), error.native, error.flags);
}

template <class Visit>
void for_each_line(const char* lines, Visit&& visit) {
  const std::string text = lines == nullptr ? "" : lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const size_t equals = line.find('=');
    if (equals != std::string::npos) visit(line.substr(0, equals), line.substr(equals + 1));
    begin = end + 1;
  }
}

// The options that the host gives to all codecs alike.
struct Common {
  int64_t max_pixels = kMaxPixels, scale = 1, top = 0, left = 0, height = 0, width = 0;

  std::vector<std::pair<const char*, int64_t*>> names(uint32_t flags) {
    std::vector<std::pair<const char*, int64_t*>> list = {{"max_pixels", &max_pixels}};
    if ((flags & PG_DECODE_SCALE) != 0) list.emplace_back("scale", &scale);
    if ((flags & PG_DECODE_PART) != 0)
      list.insert(list.end(), {{"top", &top}, {"left", &left}, {"height", &height}, {"width", &width}});
    return list;
  }
};

void set_option(const pg_codec_info& codec, Common& common, Options& own, const std::string& key,
                const std::string& value) {
  std::string known;
  for (const auto& [name, number] : common.names(codec.flags)) {
    known += (known.empty() ? "" : ", ") + std::string(name);
    if (key != name) continue;
    *number = whole_number(key, value);
    return;
  }
  if (own.set(key, value)) return;
  for (uint32_t i = 0; i < codec.decode_attr_count; i++) known += std::string(", ") + codec.decode_attrs[i]->name;
  pg::fail_argument(pg::format("unknown option \"%s\"; known: %s", key.c_str(), known.c_str()));
}

}  // namespace

pg_bytes bytes_in_memory(const void* data, uint64_t count) {
  static const char nothing = 0;
  pg_bytes bytes{};
  bytes.size = PG_SIZE(pg_bytes, read);
  bytes.count = count;
  bytes.data = count == 0 ? &nothing : data;
  bytes.read = read_memory;
  return bytes;
}

// Non-blocking, so that a named pipe is refused and not waited for.
FileBytes::FileBytes(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  struct stat info {};
  if (descriptor_ < 0) fail_system(path, "cannot open");
  if (::fstat(descriptor_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    pg::fail_argument(path + ": not a regular file");
  }
  raw_.size = PG_SIZE(pg_bytes, read);
  raw_.count = static_cast<uint64_t>(info.st_size);
  raw_.context = this;
  raw_.read = read;
}

FileBytes::~FileBytes() { ::close(descriptor_); }

int32_t FileBytes::read(void* context, uint64_t offset, void* target, uint64_t count, pg_error* error) {
  return pg::guard(error, "read", [&] {
    const int descriptor = static_cast<FileBytes*>(context)->descriptor_;
    for (auto* at = static_cast<char*>(target); count > 0;) {
      const ssize_t got = ::pread(descriptor, at, std::min<uint64_t>(count, 1u << 30), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw pg::Error(PG_E_INTERNAL, std::string("cannot read: ") + std::strerror(errno), errno);
      if (got == 0) fail_end(offset);
      at += got, offset += static_cast<uint64_t>(got), count -= static_cast<uint64_t>(got);
    }
  });
}

void decode(const pg_codec_info& codec, const pg_bytes& given, const std::string& shown, const char* options,
            const pg_sink& sink) {
  pg_bytes from = given;
  if (from.read == read_memory) from.context = &from;
  Common common;
  Options own(codec.decode_attrs, codec.decode_attr_count, codec.decode_attr_size, codec.decode_defaults);
  try {
    for_each_line(
        options, [&](const std::string& key, const std::string& value) { set_option(codec, common, own, key, value); });
    if (common.max_pixels < 1)
      pg::fail_argument(
          pg::format("option max_pixels: expected 1 or more, got %lld", static_cast<long long>(common.max_pixels)));
    if (common.scale < 1 || common.scale > INT32_MAX)
      pg::fail_argument(pg::format("option scale: expected 1 or more, got %lld", static_cast<long long>(common.scale)));
  } catch (const pg::Error& error) {
    throw pg::Error(error.code, shown + ": " + error.what());
  }
  const pg_decode how{PG_SIZE(pg_decode, attrs), static_cast<uint32_t>(common.scale), common.max_pixels,
                      {common.top, common.left}, {common.height, common.width},       own.data()};
  run_codec(shown, [&](pg_error* error) { return codec.decode(codec.user, &from, &how, &sink, error); });
}

pg_coded_info probe(const pg_codec_info& codec, const pg_bytes& given, const std::string& shown) {
  pg_bytes from = given;
  if (from.read == read_memory) from.context = &from;
  pg_coded_info info{};
  info.size = PG_SIZE(pg_coded_info, shape);
  run_codec(shown, [&](pg_error* error) { return codec.probe(codec.user, &from, &info, error); });
  if (info.rank > PG_MAX_RANK || std::any_of(info.shape, info.shape + info.rank, [](int64_t n) { return n < 0; }))
    pg::fail(PG_E_INTERNAL, pg::format("the codec %s answers a shape that there cannot be", codec.name));
  info.scales |= 1;
  return info;
}

namespace {

// Bytes that plugins ask to have decoded, and who does it.
class Coded {
 public:
  explicit Coded(const pg_coded& what) {
    if (what.path != nullptr) {
      shown = what.path;
      file_.emplace(shown);
      bytes = &file_->raw();
    } else {
      if (what.bytes == nullptr) pg::fail_argument("neither a path nor bytes are given to be decoded");
      shown = "the bytes given";
      bytes = what.bytes;
    }
    if (what.codec != nullptr) {
      const Codec* found = find_codec(what.codec);
      if (found == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no codec '%s'", what.codec));
      codec = found->info;
    } else {
      codec = what.path != nullptr ? find_file_kind(what.path).codec : of_head();
      if (codec == nullptr) pg::fail(PG_E_NOT_SUPPORTED, shown + ": no codec reads such files");
    }
  }
  std::string shown;
  const pg_bytes* bytes;
  const pg_codec_info* codec = nullptr;

 private:
  const pg_codec_info* of_head() const {
    char head[64];
    const uint64_t count = std::min<uint64_t>(bytes->count, sizeof head);
    run_codec(shown, [&](pg_error* error) { return bytes->read(bytes->context, 0, head, count, error); });
    const Codec* found = find_codec_of(head, count);
    if (found == nullptr) pg::fail(PG_E_DATA_LOSS, shown + ": they begin like nothing that a codec is there for");
    return found->info;
  }
  std::optional<FileBytes> file_;
};

}  // namespace

void decode(const pg_coded& what, const pg_sink& sink) {
  const Coded coded(what);
  decode(*coded.codec, *coded.bytes, coded.shown, what.options, sink);
}

pg_coded_info probe(const pg_coded& what) {
  const Coded coded(what);
  return probe(*coded.codec, *coded.bytes, coded.shown);
}

void encode(const pg_codec_info& codec, const pg_tensor& what, const std::string& shown, uint32_t note_count,
            const char* const* notes, const pg_byte_sink& to) {
  if (codec.encode == nullptr) pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s files can only be read", codec.name));
  Options own(codec.encode_attrs, codec.encode_attr_count, codec.encode_attr_size, codec.encode_defaults);
  std::vector<const char*> kept;
  for (uint32_t i = 0; i < note_count; i++) {
    if (!own.set(notes[2 * i], notes[2 * i + 1])) kept.insert(kept.end(), {notes[2 * i], notes[2 * i + 1]});
  }
  run_codec(shown, [&](pg_error* error) {
    return codec.encode(codec.user, &what, own.data(), static_cast<uint32_t>(kept.size() / 2), kept.data(), &to, error);
  });
}

}  // namespace perigee
