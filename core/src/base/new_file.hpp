// SPDX-License-Identifier: Apache-2.0
// Files that appear whole or not at all.
#pragma once

#include <signal.h>

#include <filesystem>
#include <optional>
#include <string>

namespace perigee {

// Throws what errno says of `path`, a disk without room as PG_E_OUT_OF_DISK.
[[noreturn]] void fail_system(const std::string& path, const char* what);

// While it lives, a write beyond the process's limit of file sizes fails and no signal ends the process.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t before_{};
  bool was_blocked_;
};

// It is written beside its place, under a name that nobody can foresee, made for it alone, and takes its place once it
// is durable. What goes wrong before leaves the old file as it was, and nothing beside it. A lock says that somebody is
// writing it, so that what a killed process left can be told (remove_unfinished).
class NewFile {
 public:
  // `many`: its calls come from several threads, each within a NoSizeSignal of its own.
  enum class Threads { one, many };
  explicit NewFile(const std::filesystem::path& target, Threads threads = Threads::one);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  // Open, at the file's beginning.
  int descriptor() const { return descriptor_; }
  void write(const void* bytes, uint64_t size);
  // The checksum of what was written.
  uint64_t checksum() const;
  void commit(const std::filesystem::path& target);

 private:
  std::optional<NoSizeSignal> no_signal_;
  std::filesystem::path target_, temporary_;
  int descriptor_ = -1;
  bool done_ = false;
};

// 64 bits over all of a regular file.
uint64_t checksum_of(const std::string& path);

// Removes what a NewFile of a process that is gone left in a folder, where its target's name begins with `prefix`.
void remove_unfinished(const std::string& folder, const std::string& prefix);

}  // namespace perigee
