// SPDX-License-Identifier: Apache-2.0
// Reading and writing files of tensors through format plugins.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "api.hpp"

using namespace perigee;
using namespace perigee::api;

struct pgc_file {
  std::vector<std::pair<std::string, TensorRef>> items;
  std::map<std::string, std::string> notes;
};

namespace {

void* sink_tensor(void* context, const char* name, uint32_t dtype, uint32_t rank, const int64_t* shape,
                  pg_error* error) {
  void* data = nullptr;
  int32_t code = pg::guard(error, "read", [&] {
    TensorRef t = make_dense(default_device(), intern_meta(dtype, rank, shape));
    pg_address a = t->address();
    // An empty tensor has no memory, but NULL means failure.
    static char nothing[8];
    data = a.buffer != 0 ? reinterpret_cast<void*>(a.buffer + a.offset) : nothing;
    static_cast<pgc_file*>(context)->items.emplace_back(name, std::move(t));
  });
  return code == PG_OK ? data : nullptr;
}

int32_t sink_note(void* context, const char* key, const char* value, pg_error* error) {
  return pg::guard(error, "read", [&] { static_cast<pgc_file*>(context)->notes[key] = value; });
}

[[noreturn]] void fail_system(const std::string& what) {
  pg::fail(PG_E_INTERNAL, what + ": " + std::error_code(errno, std::generic_category()).message());
}

// A rename is only durable once its folder is.
void sync_folder(const std::filesystem::path& folder) {
  int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_system("cannot open folder " + folder.string());
  int failed = ::fsync(fd);
  ::close(fd);
  if (failed != 0) fail_system("cannot sync folder " + folder.string());
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

}  // namespace

int32_t pgc_read(const char* path, const char* options, pgc_file** output) {
  return run("load", [&] {
    const pg_format_info* format = find_format(path);
    std::error_code code;
    if (!std::filesystem::exists(path, code)) pg::fail(PG_E_NOT_FOUND, pg::format("there is no file '%s'", path));
    auto file = std::make_unique<pgc_file>();
    pg_sink sink{PG_SIZE(pg_sink, note), 0, file.get(), sink_tensor, sink_note};
    pg_error error = pg::make_error();
    int32_t result = format->read(format->user, path, options != nullptr ? options : "", &sink, &error);
    if (result != PG_OK) throw pg::Error(result, std::string(path) + ": " + error.message, error.native, error.flags);
    *output = file.release();
  });
}
uint32_t pgc_file_count(const pgc_file* file) { return static_cast<uint32_t>(file->items.size()); }
const char* pgc_file_name(const pgc_file* file, uint32_t index) { return file->items[index].first.c_str(); }
pgc_tensor* pgc_file_tensor(const pgc_file* file, uint32_t index) { return give(file->items[index].second); }
const char* pgc_file_note(const pgc_file* file, const char* key) {
  auto it = file->notes.find(key);
  return it == file->notes.end() ? nullptr : it->second.c_str();
}
void pgc_file_close(pgc_file* file) { delete file; }

int32_t pgc_write(const char* path, uint32_t count, const char* const* names, pgc_tensor* const* tensors,
                  uint32_t note_count, const char* const* notes) {
  return run("save", [&] {
    const pg_format_info* format = find_format(path);
    if (format->write == nullptr) pg::fail(PG_E_NOT_SUPPORTED, pg::format("%s files can only be read", format->name));
    HostTensors host = gather(count, names, tensors);
    std::filesystem::path target(path);
    std::filesystem::path temporary =
        target.parent_path() /
        ("." + target.filename().string() + "." + std::to_string(::getpid()) + ".tmp" + target.extension().string());
    pg_error error = pg::make_error();
    int32_t result =
        format->write(format->user, temporary.c_str(), count, host.pointers.data(), note_count, notes, &error);
    std::error_code code;
    if (result != PG_OK) {
      std::filesystem::remove(temporary, code);
      throw pg::Error(result, std::string(path) + ": " + error.message, error.native, error.flags);
    }
    if (::rename(temporary.c_str(), path) != 0) {
      int saved = errno;
      std::filesystem::remove(temporary, code);
      errno = saved;
      fail_system("cannot rename to " + target.string());
    }
    sync_folder(target.parent_path());
  });
}
