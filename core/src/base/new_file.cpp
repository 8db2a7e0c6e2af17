// SPDX-License-Identifier: Apache-2.0
#include "base/new_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <vector>

#include "perigee/plugin.hpp"

namespace perigee {

namespace fs = std::filesystem;

namespace {

int32_t code_of(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return PG_E_OUT_OF_DISK;
    case ENOENT: return PG_E_NOT_FOUND;
    case ENOMEM: return PG_E_OUT_OF_MEMORY;
    case EACCES:
    case EPERM:
    case EROFS:
    case EISDIR:
    case EBUSY:
    case EINVAL:
    case ENOTDIR:
    case ENOTEMPTY:
    case ELOOP:
    case ENAMETOOLONG: return PG_E_INVALID_ARGUMENT;
    default: return PG_E_INTERNAL;
  }
}

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

int open_file(const char* path, int flags, mode_t mode = 0) {
  int number;
  do number = ::open(path, flags | O_CLOEXEC, mode);
  while (number < 0 && errno == EINTR);
  return number;
}

// ".NAME.RANDOM.tmp.EXTENSION": a format is found by the extension.
fs::path temporary_name(const fs::path& target) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) fail_system(target, "cannot name");
  const std::string name = target.filename().string().substr(0, 100);
  return target.parent_path() / ("." + name + pg::format(".%016llx.tmp", static_cast<unsigned long long>(random)) +
                                 target.extension().string());
}

bool is_same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// A rename is only durable once its folder is.
void sync_folder(const fs::path& folder) {
  Descriptor opened{open_file(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY)};
  if (opened.number < 0) fail_system(folder, "cannot open");
  if (::fsync(opened.number) != 0) fail_system(folder, "cannot sync");
}

// Each 8 bytes (the last ones filled with zeros) are mixed in by multiplication, the length last. It finds damage, not
// malice.
uint64_t checksum_of(int descriptor, const std::string& path) {
  std::vector<uint64_t> words(size_t{1} << 16);
  uint64_t sum = 0x243f6a8885a308d3, length = 0;
  for (off_t at = 0;;) {
    auto* bytes = reinterpret_cast<char*>(words.data());
    size_t filled = 0, room = words.size() * 8;
    while (filled < room) {
      ssize_t got = ::pread(descriptor, bytes + filled, room - filled, at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_system(path, "cannot read");
      if (got == 0) break;
      filled += static_cast<size_t>(got), at += got;
    }
    while (filled % 8 != 0) bytes[filled++] = 0, length--;
    length += filled;
    for (size_t i = 0; i < filled / 8; i++) {
      sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
      sum ^= sum >> 29;
    }
    if (filled < room) break;
  }
  sum = (sum ^ length) * 0x9e3779b97f4a7c15;
  return sum ^ sum >> 32;
}

}  // namespace

void fail_system(const std::string& path, const char* what) {
  const int number = errno;
  std::string text = path + ": " + what + ": " + std::error_code(number, std::generic_category()).message();
  if (number == EFBIG) text += " (a limit of the process, as ulimit -f says, or of the file system)";
  throw pg::Error(code_of(number), text, number);
}

NoSizeSignal::NoSizeSignal() {
  sigset_t size;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &size, &before_);
  was_blocked_ = sigismember(&before_, SIGXFSZ) == 1;
}

NoSizeSignal::~NoSizeSignal() {
  if (was_blocked_) return;
  sigset_t size;
  sigemptyset(&size);
  sigaddset(&size, SIGXFSZ);
  const timespec now{};
  while (sigtimedwait(&size, nullptr, &now) > 0 || errno == EINTR) {  // what has come goes
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

NewFile::NewFile(const fs::path& target, Threads threads) : target_(target) {
  if (threads == Threads::one) no_signal_.emplace();
  constexpr int kTries = 16;
  for (int i = 0; i < kTries && descriptor_ < 0; i++) {
    temporary_ = temporary_name(target);
    descriptor_ = open_file(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail_system(target, "cannot create");
    // Between the two calls somebody may have taken it for one that was left, and removed it.
    struct stat made {};
    if (descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX) == 0 && ::fstat(descriptor_, &made) == 0 &&
        made.st_nlink == 0) {
      ::close(std::exchange(descriptor_, -1));
    }
  }
  if (descriptor_ < 0) fail_system(target, "cannot create a temporary file beside it");
}

NewFile::~NewFile() {
  if (!done_) ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

void NewFile::write(const void* bytes, uint64_t size) {
  for (auto* at = static_cast<const char*>(bytes); size > 0;) {
    ssize_t done = ::write(descriptor_, at, std::min<uint64_t>(size, 1u << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_system(target_, "cannot write");
    at += done, size -= static_cast<uint64_t>(done);
  }
}

uint64_t NewFile::checksum() const { return checksum_of(descriptor_, target_); }

void NewFile::commit(const fs::path& target) {
  struct stat own {
  }, there{};
  if (::fsync(descriptor_) != 0 || ::fstat(descriptor_, &own) != 0) fail_system(target, "cannot write");
  // Whoever may write to the folder may put another file in its place.
  if (::lstat(temporary_.c_str(), &there) != 0) fail_system(target, "its temporary file is gone");
  if (!is_same(own, there))
    pg::fail(PG_E_FAILED_PRECONDITION, target.string() + ": somebody has replaced its temporary file");
  if (::rename(temporary_.c_str(), target.c_str()) != 0) fail_system(target, "cannot rename to it");
  done_ = true;
  sync_folder(target.parent_path());
}

uint64_t checksum_of(const std::string& path) {
  Descriptor file{open_file(path.c_str(), O_RDONLY | O_NONBLOCK)};  // a pipe is refused, not waited for
  struct stat info {};
  if (file.number < 0 || ::fstat(file.number, &info) != 0) fail_system(path, "cannot open");
  if (!S_ISREG(info.st_mode)) pg::fail_argument(path + ": not a regular file");
  return checksum_of(file.number, path);
}

void remove_unfinished(const std::string& folder, const std::string& prefix) {
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    const size_t random = name.rfind(".tmp");
    if (name.compare(0, prefix.size() + 1, "." + prefix) != 0 || random == std::string::npos || random < 17) continue;
    if (name[random - 17] != '.' || name.find_first_not_of("0123456789abcdef", random - 16) != random) continue;
    Descriptor file{open_file(it->path().c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW)};
    struct stat info {};
    if (file.number < 0 || ::fstat(file.number, &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (::flock(file.number, LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
  }
}

}  // namespace perigee
