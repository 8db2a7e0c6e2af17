// SPDX-License-Identifier: Apache-2.0
// What files hold, by position: of plain ones where it lies, of compressed ones as it was unpacked in memory.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "file.hpp"

namespace formats {

constexpr int64_t kMostUnpacked = int64_t{1} << 34;

// Bytes that gzip (RFC 1952) or zlib (RFC 1950) packed, at most `max_bytes` of them.
struct Unpacked {
  std::unique_ptr<char[]> bytes;
  uint64_t size = 0;
};
Unpacked unpack(const File& file, int64_t max_bytes = kMostUnpacked);

bool is_gzip(const File& file);

class FileContents {
 public:
  // `packed`: it is unpacked now, and is an error where it is not compressed.
  FileContents(File file, bool packed);
  const std::string& path() const { return file_.path(); }
  uint64_t size() const { return packed_ ? unpacked_.size : file_.size(); }
  void read(uint64_t offset, void* target, uint64_t bytes) const;

 private:
  File file_;
  bool packed_;
  Unpacked unpacked_;
};
using FileContentsRef = std::shared_ptr<const FileContents>;

// As much of many files: unpacked ones stay in memory, of the others some are open at a time. Thread-safe.
class ManyFiles {
 public:
  explicit ManyFiles(std::vector<std::string> paths) : paths_(std::move(paths)), kept_(paths_.size()) {}
  const std::vector<std::string>& paths() const { return paths_; }
  FileContentsRef get(size_t i);

 private:
  static constexpr size_t kMostOpen = 64;
  const std::vector<std::string> paths_;
  std::mutex mutex_;
  std::vector<FileContentsRef> kept_;
  std::vector<size_t> open_;
};

}  // namespace formats
