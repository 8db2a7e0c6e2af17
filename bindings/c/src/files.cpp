// SPDX-License-Identifier: Apache-2.0
// Reading and writing files of tensors through the formats and codecs of plugins.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <string_view>
#include <unordered_set>

#include "api.hpp"
#include "base/new_file.hpp"
#include "data/codec.hpp"

using namespace perigee;
using namespace perigee::api;

struct pgc_file {
  std::deque<std::pair<std::string, TensorRef>> items;  // which do not move: `names` looks at them
  std::unordered_set<std::string_view> names;
  std::map<std::string, std::string> notes;
  std::vector<const char*> note_keys;  // of notes, which do not move
};

namespace {

void* sink_tensor(void* context, const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                  pg_error* error) {
  void* data = nullptr;
  int32_t code = pg::guard(error, "read", [&] {
    auto& file = *static_cast<pgc_file*>(context);
    if (file.names.count(name) > 0) pg::fail(PG_E_DATA_LOSS, pg::format("it has two tensors named '%.80s'", name));
    TensorRef t = make_dense(default_device(), intern_meta(dtype, rank, shape));
    pg_address a = t->address();
    // An empty tensor has no memory, but NULL means failure.
    static char nothing[8];
    data = a.buffer != 0 ? reinterpret_cast<void*>(a.buffer + a.offset) : nothing;
    file.names.insert(file.items.emplace_back(name, std::move(t)).first);
  });
  return code == PG_OK ? data : nullptr;
}

int32_t sink_note(void* context, const char* key, const char* value, pg_error* error) {
  return pg::guard(error, "read", [&] {
    auto& file = *static_cast<pgc_file*>(context);
    auto [note, is_new] = file.notes.insert_or_assign(key, value);
    if (is_new) file.note_keys.push_back(note->first.c_str());
  });
}

struct HostTensors {
  std::vector<TensorRef> kept;
  std::vector<pg_tensor> views;
  std::vector<pg_named_tensor> items;
  std::vector<const pg_named_tensor*> pointers;
};

HostTensors gather(uint32_t count, const char* const* names, pgc_tensor* const* tensors) {
  HostTensors h;
  h.views.resize(count);
  h.items.resize(count);
  for (uint32_t i = 0; i < count; i++) {
    Tensor& x = *get(tensors[i]);
    if (x.is_graph()) pg::fail(PG_E_FAILED_PRECONDITION, pg::format("'%s' is a tensor of a graph", names[i]));
    TensorRef here = x.device->host_visible ? TensorRef::share(&x) : move_to(x, default_device());
    if (!here->meta->contiguous) here = copy_dense(*here, here->meta->dtype);
    h.views[i] = with_address(*here);
    h.views[i].buffer += h.views[i].offset;
    h.views[i].offset = 0;
    h.items[i] = {PG_SIZE(pg_named_tensor, tensor), 0, names[i], &h.views[i]};
    h.kept.push_back(std::move(here));
  }
  for (pg_named_tensor& item : h.items) h.pointers.push_back(&item);
  return h;
}

// What a format says begins with the path that it was given, if it is the format that says so; users know `shown`.
std::string with_path(const std::string& shown, const std::string& given, const std::string& message) {
  const size_t own = message.starts_with(given + ": ") ? given.size() + 2 : 0;
  return shown + ": " + message.substr(own);
}

}  // namespace

namespace {

// What a format reads of `path`, which users know as `shown`.
void read_format(const pg_format_info* format, const std::string& path, const std::string& shown, const char* options,
                 const pg_sink& sink) {
  if (format->read == nullptr) pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s files can only be written", format->name));
  pg_error error = pg::make_error();
  int32_t result = format->read(format->user, path.c_str(), options != nullptr ? options : "", &sink, &error);
  if (result != PG_OK)
    throw pg::Error(result, with_path(shown, path, pg::message_of(result, error)), error.native, error.flags);
}

// What `fill` puts into a sink.
template <class Fill>
pgc_file* read_file(Fill&& fill) {
  auto file = std::make_unique<pgc_file>();
  fill(pg_sink{PG_SIZE(pg_sink, note), 0, file.get(), sink_tensor, sink_note});
  return file.release();
}

constexpr const char* kBytesGiven = "the bytes given";

// Bytes as a file that has no name, so that formats, which take paths, read them as all others.
class MemoryFile {
 public:
  MemoryFile(const void* bytes, uint64_t size) : descriptor_(::memfd_create("perigee", MFD_CLOEXEC)) {
    const auto* at = static_cast<const char*>(bytes);
    bool whole = descriptor_ >= 0;
    while (whole && size > 0) {
      const ssize_t done = ::write(descriptor_, at, std::min<uint64_t>(size, 1u << 30));
      whole = done > 0 || (done < 0 && errno == EINTR);
      if (done > 0) at += done, size -= static_cast<uint64_t>(done);
    }
    if (whole) return;
    const int number = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    pg::fail(PG_E_OUT_OF_MEMORY, pg::format("no memory for a file of bytes: %s", std::strerror(number)));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

int32_t pgc_read(const char* path, const char* options, pgc_file** output) {
  return pgc_read_as(path, nullptr, options, output);
}
int32_t pgc_read_as(const char* path, const char* extension, const char* options, pgc_file** output) {
  return run("load", [&] {
    const FileKind kind = find_file_kind(extension != nullptr ? extension : given(path, "the path"));
    std::error_code code;
    if (!std::filesystem::exists(given(path, "the path"), code))
      pg::fail(PG_E_NOT_FOUND, pg::format("there is no file '%s'", path));
    *output = read_file([&](const pg_sink& sink) {
      if (kind.codec != nullptr) return decode(*kind.codec, FileBytes(path).raw(), path, options, sink);
      read_format(kind.format, path, path, options, sink);
    });
  });
}
int32_t pgc_read_bytes(const char* extension, const void* bytes, uint64_t size, const char* options,
                       pgc_file** output) {
  return run("load", [&] {
    const FileKind kind = find_file_kind(given(extension, "the extension"));
    *output = read_file([&](const pg_sink& sink) {
      if (kind.codec != nullptr) return decode(*kind.codec, bytes_in_memory(bytes, size), kBytesGiven, options, sink);
      const MemoryFile file(bytes, size);
      read_format(kind.format, file.path(), kBytesGiven, options, sink);
    });
  });
}
uint32_t pgc_file_count(const pgc_file* file) { return static_cast<uint32_t>(file->items.size()); }
const char* pgc_file_name(const pgc_file* file, uint32_t index) {
  return index < file->items.size() ? file->items[index].first.c_str() : nullptr;
}
pgc_tensor* pgc_file_tensor(const pgc_file* file, uint32_t index) {
  return index < file->items.size() ? give(file->items[index].second) : nullptr;
}
const char* pgc_file_note(const pgc_file* file, const char* key) {
  auto it = file->notes.find(key);
  return it == file->notes.end() ? nullptr : it->second.c_str();
}
const char* pgc_file_note_key(const pgc_file* file, uint32_t index) {
  return index < file->note_keys.size() ? file->note_keys[index] : nullptr;
}
void pgc_file_close(pgc_file* file) { delete file; }

namespace {

int32_t write_to_file(void* context, const void* bytes, uint64_t count, pg_error* error) {
  return pg::guard(error, "save", [&] { static_cast<NewFile*>(context)->write(bytes, count); });
}

void write_tensors(const char* shown, NewFile& file, uint32_t count, const char* const* names,
                   pgc_tensor* const* tensors, uint32_t note_count, const char* const* notes) {
  const std::string path = file.temporary().string();
  const FileKind kind = find_file_kind(path);
  if (!kind.writes()) pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s files can only be read", kind.name()));
  HostTensors host = gather(count, names, tensors);
  if (kind.codec != nullptr) {
    if (count != 1) pg::fail_argument(pg::format("%s: a %s file is one tensor, got %u", shown, kind.name(), count));
    const pg_byte_sink to{PG_SIZE(pg_byte_sink, write), 0, &file, write_to_file};
    return encode(*kind.codec, host.views[0], shown, note_count, notes, to);
  }
  pg_error error = pg::make_error();
  int32_t result =
      kind.format->write(kind.format->user, path.c_str(), count, host.pointers.data(), note_count, notes, &error);
  if (result != PG_OK)
    throw pg::Error(result, with_path(shown, path, pg::message_of(result, error)), error.native, error.flags);
}

}  // namespace

int32_t pgc_write(const char* path, uint32_t count, const char* const* names, pgc_tensor* const* tensors,
                  uint32_t note_count, const char* const* notes) {
  return run("save", [&] {
    settle();
    find_file_kind(given(path, "the path"));  // before there is a file of another name
    NewFile file(path);
    write_tensors(path, file, count, names, tensors, note_count, notes);
    file.commit(path);
  });
}

int32_t pgc_write_sealed(const char* stem, const char* extension, uint32_t count, const char* const* names,
                         pgc_tensor* const* tensors, uint32_t note_count, const char* const* notes,
                         uint64_t* checksum) {
  return run("save", [&] {
    settle();
    NewFile file(std::string(stem) + "." + extension);
    write_tensors(stem, file, count, names, tensors, note_count, notes);
    *checksum = file.checksum();
    char seal[20];
    std::snprintf(seal, sizeof seal, "%016llx", static_cast<unsigned long long>(*checksum));
    file.commit(std::string(stem) + "." + seal + "." + extension);
  });
}

const char* pgc_codec_of(const void* head, uint64_t size) {
  const Codec* found = nullptr;
  run("load", [&] { found = find_codec_of(head, size); });
  return found == nullptr ? nullptr : found->info->name;
}

int32_t pgc_probe(const char* name, const char* path, const void* bytes, uint64_t size, pg_coded_info* info) {
  return run("load", [&] {
    const FileKind kind = name == nullptr ? find_file_kind(given(path, "the path")) : FileKind{nullptr, nullptr};
    const Codec* named = name == nullptr ? nullptr : find_codec(name);
    const pg_codec_info* codec = named != nullptr ? named->info : kind.codec;
    if (codec == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no codec for %s", name ? name : path));
    *info = path != nullptr ? probe(*codec, FileBytes(path).raw(), path)
                            : probe(*codec, bytes_in_memory(bytes, size), kBytesGiven);
  });
}

namespace {

int32_t append(void* context, const void* bytes, uint64_t count, pg_error* error) {
  return pg::guard(error, "encode",
                   [&] { static_cast<std::string*>(context)->append(static_cast<const char*>(bytes), count); });
}

}  // namespace

int32_t pgc_encode(const char* name, pgc_tensor* tensor, uint32_t note_count, const char* const* notes,
                   const char** bytes, uint64_t* size) {
  return run("encode", [&] {
    settle();
    const Codec* codec = find_codec(given(name, "the name"));
    if (codec == nullptr) pg::fail(PG_E_NOT_FOUND, pg::format("there is no codec '%s'", name));
    const char* shown = "the tensor";
    HostTensors host = gather(1, &shown, &tensor);
    std::string made;
    const pg_byte_sink to{PG_SIZE(pg_byte_sink, write), 0, &made, append};
    encode(*codec->info, host.views[0], shown, note_count, notes, to);
    *size = made.size();
    *bytes = keep_text(std::move(made));
  });
}

int32_t pgc_write_bytes(const char* path, const void* bytes, uint64_t size) {
  return run("save", [&] {
    NewFile file(path);
    file.write(bytes, size);
    file.commit(path);
  });
}

int32_t pgc_checksum(const char* path, uint64_t* checksum) {
  return run("load", [&] { *checksum = checksum_of(path); });
}

int32_t pgc_remove_unfinished(const char* folder, const char* prefix) {
  return run("save", [&] { remove_unfinished(given(folder, "the folder"), given(prefix, "the prefix")); });
}

int32_t pgc_make_folder(const char* path) {
  return run("save", [&] {
    std::error_code code;
    std::filesystem::create_directories(path, code);
    if (code || !std::filesystem::is_directory(path)) {
      pg::fail_argument(
          pg::format("cannot make folder %s: %s", path, code ? code.message().c_str() : "a file is there"));
    }
  });
}

const char* pgc_folder_names(const char* path) {
  const char* names = nullptr;
  run("load", [&] {
    std::error_code code;
    std::string text;
    for (std::filesystem::directory_iterator it(path, code), end; !code && it != end; it.increment(code)) {
      text += it->path().filename().string() + "\n";
    }
    if (code) pg::fail(PG_E_NOT_FOUND, pg::format("cannot list %s: %s", path, code.message().c_str()));
    names = keep_text(std::move(text));
  });
  return names;
}
