// SPDX-License-Identifier: Apache-2.0
// Files by descriptor: whole reads at an offset, whole writes, fsync. Errors carry errno.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "perigee/format.hpp"

namespace formats {

[[noreturn]] inline void fail_system(const std::string& path, const char* what, int number) {
  const bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
  const int32_t code = full               ? PG_E_OUT_OF_DISK
                       : number == ENOENT ? PG_E_NOT_FOUND
                       : number == EACCES ? PG_E_INVALID_ARGUMENT
                                          : PG_E_INTERNAL;
  throw pg::Error(code, path + ": " + what + ": " + std::strerror(number), number);
}

class File {
 public:
  // Non-blocking, so that a named pipe is refused and not waited for.
  static File open_to_read(const std::string& path) {
    File file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), "cannot open");
    struct stat info {};
    if (::fstat(file.descriptor_, &info) != 0) fail_system(path, "cannot examine", errno);
    if (!S_ISREG(info.st_mode)) pg::fail_argument(path + ": not a regular file");
    file.size_ = static_cast<uint64_t>(info.st_size);
    return file;
  }
  // The host has made the file, under a name of its own choice: what a link there leads to is not meant.
  static File open_to_write(const std::string& path) {
    return File(path, ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666),
                "cannot create");
  }
  File(File&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  // Gives the descriptor away.
  int release() { return std::exchange(descriptor_, -1); }

  void read(uint64_t offset, void* target, uint64_t bytes) const {
    auto* at = static_cast<char*>(target);
    while (bytes > 0) {
      ssize_t got = ::pread(descriptor_, at, std::min<uint64_t>(bytes, 1u << 30), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_system(path_, "cannot read", errno);
      if (got == 0) pg::fail_data(path_, "the file ends at byte " + std::to_string(offset) + ", inside its data");
      at += got, offset += static_cast<uint64_t>(got), bytes -= static_cast<uint64_t>(got);
    }
  }
  void write(const void* source, uint64_t bytes) {
    auto* at = static_cast<const char*>(source);
    while (bytes > 0) {
      ssize_t done = ::write(descriptor_, at, std::min<uint64_t>(bytes, 1u << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_system(path_, "cannot write", errno);
      at += done, bytes -= static_cast<uint64_t>(done);
    }
  }
  // Durable when this returns.
  void finish() {
    if (::fsync(descriptor_) != 0) fail_system(path_, "cannot write", errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_system(path_, "cannot write", errno);
  }

 private:
  File(const std::string& path, int descriptor, const char* what) : path_(path), descriptor_(descriptor) {
    if (descriptor < 0) fail_system(path, what, errno);
  }
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace formats
